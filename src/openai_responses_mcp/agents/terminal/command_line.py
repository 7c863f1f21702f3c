"""`openai-responses-mcp agents …`: a person at a terminal decides approvals and reads the log.

    agents approvals list [--run RUN]
    agents approvals show APPROVAL
    agents approvals approve APPROVAL [--comment TEXT] [--arguments JSON|@FILE]
    agents approvals deny APPROVAL [--comment TEXT] [--tell-model]
    agents approvals allow|standing|revoke …                              (`standing`)
    agents approvals serve [--port N] [--open]                            (`desk_page`)
    agents log [--run RUN] [--since TIME] [--verify]
    agents log accept-loss --reason TEXT
    agents doctor [--mcp SERVER]... [--skills FOLDER]...
    agents policy check|test FILE
    agents guard … -- COMMAND                                             (`guard`, which is not started from here)

The store is the one that `--store` or AGENTS_STORE names, else the guard's own. Output is a table on a terminal, and
JSON with `--json` or into a pipe. Exit 0: done; 1: refused, or the log is not intact; 2: wrong usage or a store that
cannot be used.
"""

import argparse
import asyncio
import getpass
import os
import shutil
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict

from openai_responses_mcp.agents.adapters.stores.own_store import store_from, why_no_store
from openai_responses_mcp.agents.approvals.models import HumanApprovalRequest, HumanDecision
from openai_responses_mcp.agents.audit.models import ExecutionLog, LogVerification
from openai_responses_mcp.agents.audit.story import unfinished
from openai_responses_mcp.agents.composition import open_desk_parts
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.json_values import JsonValue
from openai_responses_mcp.agents.terminal import desk_page, doctor, policy, standing
from openai_responses_mcp.agents.terminal.console import Console, as_text, told_of
from openai_responses_mcp.agents.terminal.short_ids import full_id
from openai_responses_mcp.agents.terminal.tables import sheet
from openai_responses_mcp.agents.terminal.typed_values import json_arguments
from openai_responses_mcp.commands.usage import AGENTS
from openai_responses_mcp.domain.texts import visible

_USAGE_CODES = ("AGENTS-E-RUNNER-CONFIG", "AGENTS-E-LOG-STORE")


def main(argv: Sequence[str]) -> int:
    if list(argv[:1]) == ["doctor"]:
        return doctor.main(argv[1:])
    if list(argv[:1]) == ["policy"]:
        return policy.main(argv[1:])
    if list(argv[:2]) == ["approvals", "serve"]:
        return desk_page.main(argv[2:])
    arguments = _parser().parse_args(list(argv))
    store = store_from(arguments.store, os.environ)
    if not store:
        return _complain(why_no_store(), 2)
    try:
        console = _console(store, arguments)
        return asyncio.run(_run(console, arguments))
    except AgentsError as exc:
        return _complain(str(exc), 2 if exc.code in _USAGE_CODES else 1)
    except ModuleNotFoundError as exc:
        return _complain(f'{exc}; this needs the extra: pip install "openai-responses-mcp[agents]"', 2)


async def _run(console: Console, arguments: argparse.Namespace) -> int:
    if hasattr(arguments, "approval_id"):
        arguments.approval_id = await full_id(console.approvals, arguments.approval_id)
    return await _COMMANDS[arguments.command](console, arguments)


def _complain(message: str, code: int) -> int:
    sys.stderr.write(f"openai-responses-mcp agents: {visible(message)}\n")
    return code


def _console(store: str, arguments: argparse.Namespace) -> Console:
    parts = open_desk_parts(store, arguments.audit_head)
    is_json = arguments.json or not sys.stdout.isatty()
    width, encoding = shutil.get_terminal_size().columns, sys.stdout.encoding or "utf-8"
    return Console(parts.approvals, parts.audit, parts.standing, sys.stdout.write, is_json, width, encoding)


def _shared(default: str | None = None) -> argparse.ArgumentParser:
    """What every command takes. A subcommand has no defaults: they would replace what was given before it."""
    shared = argparse.ArgumentParser(add_help=False, argument_default=default)
    shared.add_argument(
        "--store", metavar="URL", help="the store of the runs (else AGENTS_STORE, else the guard's own)"
    )
    shared.add_argument(
        "--audit-head", metavar="FILE", help="where the head of the log is kept, if not beside the file"
    )
    shared.add_argument("--json", action="store_const", const=True, help="JSON instead of tables")
    return shared


def _parser() -> argparse.ArgumentParser:
    shared = _shared()
    parser = argparse.ArgumentParser(
        "openai-responses-mcp agents", description="The guard, approvals and the audit log."
    )
    areas = parser.add_subparsers(dest="area", required=True, metavar="|".join(AGENTS))
    areas.add_parser("guard", help="stand in front of an MCP server: no tool of it runs unchecked")
    approvals = areas.add_parser(
        "approvals", help="list, show, approve, deny, and allow from now on, here or on a page"
    )
    verbs = approvals.add_subparsers(dest="command", required=True, metavar="|".join(AGENTS["approvals"]))
    listing = verbs.add_parser("list", parents=[shared], help="what waits for a human")
    listing.add_argument("--run", metavar="RUN")
    verbs.add_parser("show", parents=[shared], help="one request, with its arguments").add_argument("approval_id")
    for verb in ("approve", "deny"):
        deciding = verbs.add_parser(
            verb, parents=[shared], help=f"{verb} a request; prints the token that resumes the run"
        )
        deciding.add_argument("approval_id")
        deciding.add_argument("--comment", metavar="TEXT")
        if verb == "approve":
            deciding.add_argument(
                "--arguments", metavar="JSON|@FILE", type=json_arguments, help="in the place of the call's own"
            )
        else:
            deciding.add_argument("--tell-model", action="store_true", help="the model is told, and the run goes on")
    standing.add_to(verbs, shared)
    verbs.add_parser("serve", help="decide on a page in the browser, on this machine")
    log = areas.add_parser("log", parents=[shared], help="the audit log")
    log.add_argument("--run", metavar="RUN")
    log.add_argument("--since", metavar="TIME", help="such as 2026-11-16T09:00:00+09:00")
    log.add_argument("--verify", action="store_true", help="check that nothing was changed, removed or inserted")
    log.set_defaults(command="log")
    accepting = log.add_subparsers(dest="verb", metavar="accept-loss").add_parser(
        "accept-loss",
        parents=[_shared(argparse.SUPPRESS)],
        help="take the log as it is for the truth; that is a record itself",
    )
    accepting.add_argument("--reason", metavar="TEXT", required=True, help="why; kept in the log")
    accepting.set_defaults(command="accept-loss")
    areas.add_parser("policy", help="check a policy file, or try it on the log")
    areas.add_parser("doctor", help="check provider, store, MCP servers and skills")
    return parser


async def _list(console: Console, arguments: argparse.Namespace) -> int:
    waiting: list[HumanApprovalRequest] = await console.approvals.pending(arguments.run)
    rows = [
        (
            one.approval_id,
            one.run_id,
            f"{one.tool_kind}:{one.tool_name}",
            str(one.risk_level),
            one.created_at[:19],
            one.reason,
        )
        for one in waiting
    ]
    console.show([_plain(one) for one in waiting], ("APPROVAL", "RUN", "TOOL", "RISK", "ASKED (UTC)", "REASON"), rows)
    return 0


async def _one(console: Console, arguments: argparse.Namespace) -> int:
    request: HumanApprovalRequest = (await console.approvals.get(arguments.approval_id)).request
    facts = _plain(request)
    # The arguments come last: however long they are, their end stands right above the next prompt.
    facts["arguments"] = facts.pop("arguments")
    told = [(name, as_text(value)) for name, value in facts.items() if value not in (None, "", False)]
    console.tell(facts, sheet(told, console.width))
    return 0


async def _decide(console: Console, arguments: argparse.Namespace) -> int:
    decision: HumanDecision = "approve" if arguments.command == "approve" else "deny"
    token = await console.approvals.submit_decision(
        arguments.approval_id,
        decision,
        arguments.comment,
        tell_model=getattr(arguments, "tell_model", False),
        arguments=getattr(arguments, "arguments", None),
    )
    # Shown to the person who decides, who has to pass it on, and to nobody else.
    try:
        console.show_fields(told_of(token))
        sys.stdout.flush()
    except OSError as exc:
        return _complain(f"This is decided. Its token cannot be shown ({exc.strerror}); the run goes on without one", 1)
    return 0


async def _log(console: Console, arguments: argparse.Namespace) -> int:
    if arguments.verify:
        return await _verify(console)
    logs: list[ExecutionLog] = await console.audit.query(arguments.run, arguments.since)
    unknown = {(one.run_id, one.tool_call_id) for one in unfinished(await console.audit.query(arguments.run))}
    rows = [
        (
            str(one.sequence),
            one.timestamp[:19],
            one.run_id,
            one.event,
            _decision_of(one, unknown),
            f"{one.tool_kind}:{one.tool_name}",
            one.comment or one.reason,
        )
        for one in logs
    ]
    facts = [_plain(one) | ({"outcome": "unknown"} if _is_unknown(one, unknown) else {}) for one in logs]
    console.show(facts, ("NO", "TIME (UTC)", "RUN", "EVENT", "DECISION", "TOOL", "WHY"), rows)
    return 0


async def _verify(console: Console) -> int:
    found: LogVerification = await console.audit.verify()
    console.show_fields(asdict(found))
    return 0 if found.is_intact else 1


async def _accept_loss(console: Console, arguments: argparse.Namespace) -> int:
    record: ExecutionLog = await console.audit.accept_loss(arguments.reason, _user())
    console.show_fields(_plain(record))
    return 0


def _user() -> str:
    """The name of the user, if the system knows it."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


_COMMANDS: Mapping[str, Callable[[Console, argparse.Namespace], Coroutine[object, None, int]]] = {
    "list": _list,
    "show": _one,
    "approve": _decide,
    "deny": _decide,
    "log": _log,
    "accept-loss": _accept_loss,
    **standing.COMMANDS,
}


def _is_unknown(log: ExecutionLog, unknown: set[tuple[str, str]]) -> bool:
    return log.event == "started" and (log.run_id, log.tool_call_id) in unknown


def _decision_of(log: ExecutionLog, unknown: set[tuple[str, str]]) -> str:
    return "outcome unknown" if _is_unknown(log, unknown) else log.decision


def _plain(record: HumanApprovalRequest | ExecutionLog) -> dict[str, JsonValue]:
    return asdict(record)
