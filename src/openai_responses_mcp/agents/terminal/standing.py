"""`agents approvals allow|standing|revoke`: what a person allows from now on.

    agents approvals allow APPROVAL --for 8h|--session|--always [--same-arguments] [--comment TEXT]
    agents approvals standing
    agents approvals revoke STANDING [--comment TEXT]

`allow` approves the request as well.
"""

import argparse
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import asdict

from openai_responses_mcp.agents.approvals.standing import StandingTerms, approve_from_now_on
from openai_responses_mcp.agents.terminal.console import Console, told_of
from openai_responses_mcp.agents.terminal.typed_values import duration


def add_to(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]", shared: argparse.ArgumentParser) -> None:
    allowing = verbs.add_parser("allow", parents=[shared], help="approve a request, and the like of it from now on")
    allowing.add_argument("approval_id")
    terms = allowing.add_mutually_exclusive_group(required=True)
    terms.add_argument("--for", dest="for_seconds", metavar="TIME", type=duration, help="such as 30m, 8h or 7d")
    terms.add_argument("--session", action="store_true", help="as long as its run, or the guard that asks, goes on")
    terms.add_argument("--always", action="store_true", help="until it is revoked")
    allowing.add_argument("--same-arguments", action="store_true", help="only with exactly these arguments")
    allowing.add_argument("--comment", metavar="TEXT")
    verbs.add_parser("standing", parents=[shared], help="what is allowed from now on")
    revoking = verbs.add_parser("revoke", parents=[shared], help="end a standing approval")
    revoking.add_argument("standing_id")
    revoking.add_argument("--comment", metavar="TEXT")


async def _allow(console: Console, arguments: argparse.Namespace) -> int:
    terms = StandingTerms(arguments.for_seconds, arguments.session, arguments.always, arguments.same_arguments)
    token, made = await approve_from_now_on(
        console.approvals, console.standing, arguments.approval_id, terms=terms, comment=arguments.comment
    )
    console.show_fields({**told_of(token), "standing_id": made.standing_id, "holds": made.holds})
    return 0


async def _list(console: Console, arguments: argparse.Namespace) -> int:
    standing = await console.standing.list()
    rows = [
        (
            one.standing_id,
            one.holds,
            f"{one.tool_kind}:{one.tool_name}{' with the same arguments' if one.arguments_hash else ''}"
            f"{f': {one.comment}' if one.comment else ''}",
        )
        for one in standing
    ]
    console.show([asdict(one) for one in standing], ("STANDING", "HOLDS", "TOOL"), rows)
    return 0


async def _revoke(console: Console, arguments: argparse.Namespace) -> int:
    ended = await console.standing.revoke(arguments.standing_id, arguments.comment)
    console.show_fields({**asdict(ended), "ended_because": "revoked"})
    return 0


COMMANDS: Mapping[str, Callable[[Console, argparse.Namespace], Coroutine[object, None, int]]] = {
    "allow": _allow,
    "standing": _list,
    "revoke": _revoke,
}
