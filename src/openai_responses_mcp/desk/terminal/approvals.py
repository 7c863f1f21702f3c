"""`approvals list|show|approve|deny|allow|standing|revoke`, in sentences for a person and as JSON for a program."""

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby

from openai_responses_mcp.desk.terminal.console import (
    GAP,
    PROGRAM,
    Console,
    beginning,
    call_shown,
    local,
    name_shown,
    seconds_between,
    span,
)
from openai_responses_mcp.desk.words import on_one_line
from openai_responses_mcp.domain.texts import Sentence
from openai_responses_mcp.gate.approvals.models import (
    ApprovalRecord,
    HumanDecision,
    ResumeToken,
    StandingApproval,
)
from openai_responses_mcp.gate.approvals.standing import StandingTerms, approve_from_now_on
from openai_responses_mcp.gate.calls import GUARD_RUN
from openai_responses_mcp.gate.clock import present
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import JsonValue, shown_json
from openai_responses_mcp.gate.reasons import holds

_PREFIX = "apr_"
_SHORT = 6
_LOOKS, _SECONDS_BETWEEN_LOOKS = 40, 0.05


def short_id(approval_id: str) -> str:
    """The part that a person types."""
    return approval_id.removeprefix(_PREFIX)[:_SHORT]


async def full_id(console: Console, written: str, *, prefers_waiting: bool = False) -> str:
    """A unique beginning of an id is enough, also of a decided request.

    `prefers_waiting` is for looking: the guard prints few characters, and decided requests may begin with them too.
    """
    start = f"{_PREFIX}{written.removeprefix(_PREFIX)}"
    found = await console.parts.requests.ids_beginning(start)
    if start in found:
        return start
    if len(found) > 1 and prefers_waiting:
        waiting = [one.request.approval_id for one in await console.parts.requests.list_pending()]
        found = [one for one in waiting if one.startswith(start)] or found
    if len(found) == 1:
        return found[0]
    text = (
        "More than one request begins with {written}: write more of the id"
        if found
        else "No request begins with {written}; `approvals list` shows those that wait"
    )
    raise AgentsError("AGENTS-E-APPROVAL-NOT-FOUND", Sentence(text, written=shown_json(written)))


# ---------------------------------------------------------------------------------------------------------------------
# Looking


async def show_list(console: Console, arguments: argparse.Namespace) -> int:
    waiting = await waiting_records(console, arguments.run)
    console.show([asdict(one.request) for one in waiting], *listed(console, waiting, arguments.all))
    return 0


async def waiting_records(console: Console, run_id: str | None = None) -> list[ApprovalRecord]:
    """Oldest first. Opens a new request for each approval that has expired."""
    await console.parts.approvals.pending(run_id)
    return await console.parts.requests.list_pending(run_id)


def listed(console: Console, waiting: Sequence[ApprovalRecord], is_each: bool = False) -> list[str]:
    words = console.words
    if not waiting:
        return [words("Nothing waits for a decision.")]
    groups = [[one] for one in waiting] if is_each else alike(waiting)
    rows = [_row(console, group) for group in groups]
    says = "1 call waits for a decision." if len(waiting) == 1 else "{count} calls wait for a decision."
    lines = [words(says, count=len(waiting)), ""]
    lines += [f"{GAP}{line}" for line in console.paper.narrower(len(GAP)).columns(rows)]
    lines += ["", words("To decide:"), *_commands(console, groups[0][0])]
    if len(groups) < len(waiting):
        lines.append(words("To see each of them: {command}", command=f"{PROGRAM} approvals list --all"))
    return lines


def alike(waiting: Sequence[ApprovalRecord]) -> list[list[ApprovalRecord]]:
    """Groups of requests of the same tool for the same reason, by their oldest."""
    order = {one.request.approval_id: at for at, one in enumerate(waiting)}

    def likeness(record: ApprovalRecord) -> tuple[str, str, str, str]:
        request = record.request
        return request.tool_kind, request.tool_name, request.reason, request.definition_change

    groups = [list(group) for _, group in groupby(sorted(waiting, key=likeness), key=likeness)]
    return sorted(groups, key=lambda group: order[group[0].request.approval_id])


def _row(console: Console, group: Sequence[ApprovalRecord]) -> tuple[str, ...]:
    record, words = group[0], console.words
    request = record.request
    count = words("× {count}", count=len(group)) if len(group) > 1 else ""
    return (
        short_id(request.approval_id),
        words("{age} ago", age=span(words, seconds_between(request.created_at, console.now()))),
        left(console, record),
        name_shown(request.tool_name),
        count,
        beginning(request.arguments),
    )


def left(console: Console, record: ApprovalRecord) -> str:
    """The time left to decide; empty if there is no limit."""
    if record.waits_until is None:
        return ""
    seconds = -seconds_between(record.waits_until, console.now())
    words = console.words
    return words("{time} left", time=span(words, seconds)) if seconds > 0 else words("no time left")


def _commands(console: Console, record: ApprovalRecord) -> list[str]:
    words, program, short = console.words, f"{PROGRAM} approvals", short_id(record.request.approval_id)
    rows = [
        (f"{GAP}{program} show {short}", ""),
        (f"{GAP}{program} approve {short}", words("approve it")),
        (f"{GAP}{program} deny {short}", words("deny it")),
        (f"{GAP}{program} allow {short} --for 8h", words("and for 8 hours")),
    ]
    if record.reading:
        rows.append((f"{GAP}{program} allow {short} --always --reads", words("all that reads")))
    return console.paper.columns(rows)


async def show_one(console: Console, arguments: argparse.Namespace) -> int:
    record = await console.parts.approvals.get(arguments.approval_id)
    facts = asdict(record.request)
    facts["arguments"] = facts.pop("arguments")
    console.show(facts, *await request_lines(console, record))
    return 0


STATUS: Mapping[str, str] = {
    "approved": "It was approved at {moment}.",
    "denied": "It was denied at {moment}.",
    "kept": "It was approved at {moment}, when the call did not wait any more;"
    " the identical call may run until ten minutes later.",
    "expired": "It expired at {moment}: it was not decided in time.",
    "withdrawn": "It was withdrawn at {moment}: the caller does not need it any more.",
    "unasked": "No person was asked: the client answered by itself at {moment}.",
}


async def request_lines(console: Console, record: ApprovalRecord, *, with_commands: bool = True) -> list[str]:
    """What will run comes first, then why, and the commands that decide last."""
    request, words, paper = record.request, console.words, console.paper
    arguments = request.arguments if request.changed_arguments is None else request.changed_arguments
    lines = [
        paper.painted(words("What will run: {tool}", tool=name_shown(request.tool_name)), "bold"),
        *(paper.arguments(arguments, words) or [words("without arguments")]),
    ]
    lines += ["", *paper.wrapped(words("Why you are asked: {reason}", reason=on_one_line(console.reason_of(record))))]
    if request.definition_change:
        lines += ["", words("What changed:"), *paper.boxed(request.definition_change)]
    if request.tool_description:
        lines += ["", words("What the tool says about itself:"), *paper.boxed(request.tool_description)]
    if request.run_id.startswith(GUARD_RUN):
        claim = "It claims to read only. That is the server's own word."
        lines += ["", words(claim if record.reading else "It does not claim to read only.")]
    lines += ["", _when(console, record)]
    if not request.run_id.startswith(GUARD_RUN):
        lines.append(words("Run {run}", run=name_shown(request.run_id)))
    if request.caller:
        lines.append(words("Asked for by {caller}", caller=name_shown(request.caller)))
    if request.status == "pending" and await console.parts.approvals.is_guard_gone(request):
        gone = words("The guard that asked is gone. A yes counts for ten minutes, for the identical call.")
        lines += ["", *paper.wrapped(gone)]
    if request.status == "pending" and with_commands:
        lines += ["", words("To decide:"), *_commands(console, record)[1:]]
    elif request.status != "pending":
        lines.append(words(STATUS[request.status], moment=local(request.decided_at or "", console.now())))
    if request.comment:
        lines += paper.wrapped(words("Comment: {comment}", comment=on_one_line(request.comment)))
    return lines


def _when(console: Console, record: ApprovalRecord) -> str:
    created, now = record.request.created_at, console.now()
    ago = console.words("{age} ago", age=span(console.words, seconds_between(created, now)))
    until = left(console, record) if record.request.status == "pending" else ""
    if until:
        return console.words("Asked at {moment} ({ago}), {left}.", moment=local(created, now), ago=ago, left=until)
    return console.words("Asked at {moment} ({ago}).", moment=local(created, now), ago=ago)


# ---------------------------------------------------------------------------------------------------------------------
# Deciding


async def decide(console: Console, arguments: argparse.Namespace) -> int:
    decision: HumanDecision = "approve" if arguments.command == "approve" else "deny"
    before = await console.parts.approvals.get(arguments.approval_id)
    token = await console.parts.approvals.submit_decision(
        arguments.approval_id,
        decision,
        arguments.comment,
        tell_model=getattr(arguments, "tell_model", False),
        arguments=getattr(arguments, "arguments", None),
    )
    after = await console.parts.approvals.get(arguments.approval_id)
    # The token is shown to the approver, who has to pass it on.
    try:
        console.show(token_facts(token, after), *await decided_lines(console, before, after, token))
    except OSError as exc:
        message = Sentence(
            "This is decided. Its token cannot be shown ({why}); the run goes on without one",
            why=exc.strerror,
        )
        raise AgentsError("AGENTS-E-APPROVAL-INVALID", message) from None
    return 0


async def decided_lines(
    console: Console, before: ApprovalRecord, after: ApprovalRecord, token: ResumeToken
) -> list[str]:
    """One sentence, and the token if a run has to be resumed with it."""
    request, words = after.request, console.words
    is_of_guard = token.run_id.startswith(GUARD_RUN)
    if request.status == "denied":
        says = "Denied {call}; it does not run."
    elif request.status == "kept":
        says = "Approved {call}. The guard that asked is gone; the yes counts for ten minutes, for the identical call."
        if before.request.status == "withdrawn":
            says = (
                "Approved {call}. The client has given up on it;"
                " it runs without a question if it comes again within ten minutes."
            )
    elif not is_of_guard:
        says = "Approved {call}; it runs when the run is resumed."
    elif await _is_used(console, after):
        says = "Approved {call}; it runs now."
    elif request.changed_arguments is not None:
        says = "Approved {call}, but its guard has not answered yet. If that guard is gone, the call does not run."
    else:
        says = (
            "Approved {call}, but its guard has not answered yet."
            " If that guard is gone, the yes counts for ten minutes, for the identical call."
        )
    call = call_shown(words, request.tool_name, request.changed_arguments or request.arguments)
    lines = [*console.paper.wrapped(words(says, call=call))]
    if not is_of_guard:
        until = local(token.expires_at, console.now())
        lines += ["", words("The token that resumes the run, once, until {moment}:", moment=until)]
        lines.append(f"{GAP}{token.token}")
    return lines


async def _is_used(console: Console, record: ApprovalRecord) -> bool:
    """Whether the guard uses the yes. It looks twice a second, so that is waited for; a killed one has a lease for a while."""
    guards = await present(console.parts.presence, console.now(), "guard")
    run_id, looks = record.request.run_id, 0 if console.is_json else _LOOKS
    if not any(one.presence_id in (run_id, run_id.rpartition("_")[0]) for one in guards):
        return True
    while record.used_at is None and looks:
        await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
        record, looks = await console.parts.approvals.get(record.request.approval_id), looks - 1
    return record.used_at is not None


def token_facts(token: ResumeToken, after: ApprovalRecord) -> dict[str, JsonValue]:
    """The guard continues by itself: there is no run to resume."""
    if token.run_id.startswith(GUARD_RUN):
        is_kept = after.request.status == "kept"
        decided = "kept for ten minutes, for the identical call" if is_kept else "the guard goes on by itself"
        return {"run_id": token.run_id, "decided": decided}
    return asdict(token)


async def allow(console: Console, arguments: argparse.Namespace) -> int:
    terms = StandingTerms(
        arguments.for_seconds, arguments.session, arguments.always, arguments.same_arguments, arguments.reads
    )
    before = await console.parts.approvals.get(arguments.approval_id)
    token, made, released = await approve_from_now_on(
        console.parts.approvals, console.parts.standing, arguments.approval_id, terms=terms, comment=arguments.comment
    )
    after = await console.parts.approvals.get(arguments.approval_id)
    facts = {
        **token_facts(token, after),
        "standing_id": made[0].standing_id,
        "holds": holds(made[0].reason),
        "released": released,
    }
    if terms.reads:
        facts["tools"] = [one.tool_name for one in made]
    lines = await decided_lines(console, before, after, token)
    console.show(facts, *lines, *standing_lines(console, made, released))
    return 0


def standing_lines(console: Console, made: Sequence[StandingApproval], released: int) -> list[str]:
    """What is allowed from now on: one tool, or every tool that reads."""
    words, first = console.words, made[0]
    says = "From now on these {count} tools, which claim to read only, run unasked, {holds}: {tool}."
    if first.arguments_hash:
        says = "From now on exactly this call of {tool} runs unasked, {holds}."
    elif len(made) == 1:
        says = "From now on {tool} runs unasked, {holds}."
    tools = ", ".join(name_shown(one.tool_name) for one in made)
    lines = [*console.paper.wrapped(words(says, tool=tools, count=len(made), holds=_holds(console, first)))]
    lines += [words("Waiting calls that it covers, and that run now: {count}.", count=released)] if released else []
    return [*lines, words("To end that: {command}", command=f"{PROGRAM} approvals revoke {short_id(first.made_from)}")]


def _holds(console: Console, standing: StandingApproval) -> str:
    if standing.expires_at is not None:
        return console.words("until {moment}", moment=local(standing.expires_at, console.now()))
    return console.words("always" if standing.session_id is None else "for its session")


async def show_standing(console: Console, arguments: argparse.Namespace) -> int:
    standing = await console.parts.standing.list()
    # Those of one decision are one line, with the id that ends them together.
    together: dict[str, list[StandingApproval]] = {}
    for one in standing:
        together.setdefault(one.made_from, []).append(one)
    rows = [
        (
            short_id(made_from),
            _holds(console, made[0]),
            console.words("exactly the same arguments" if made[0].arguments_hash else "any arguments"),
            ", ".join(name_shown(one.tool_name) for one in made)
            + (f": {on_one_line(made[0].comment)}" if made[0].comment else ""),
        )
        for made_from, made in together.items()
    ]
    lines = [console.words("Nothing is allowed from now on.")]
    if rows:
        command = f"{PROGRAM} approvals revoke {rows[0][0]}"
        lines = [*console.paper.columns(rows), "", console.words("To end one: {command}", command=command)]
    console.show([asdict(one) for one in standing], *lines)
    return 0


async def revoke(console: Console, arguments: argparse.Namespace) -> int:
    holding = _named_standing(await console.parts.standing.list(), arguments.standing_id)
    ids = [one.standing_id for one in holding] or [arguments.standing_id]
    ended = [await console.parts.standing.revoke(one, arguments.comment) for one in ids]
    lines = [console.words("Ended: {tool} is asked about again.", tool=name_shown(one.tool_name)) for one in ended]
    facts: list[JsonValue] = [{**asdict(one), "ended_because": "revoked"} for one in ended]
    console.show(facts[0] if len(facts) == 1 else facts, *lines)
    return 0


def _named_standing(holding: Sequence[StandingApproval], written: str) -> list[StandingApproval]:
    """By its own id, or by that of its request; a unique beginning is enough."""
    own, of_request = f"sta_{written.removeprefix('sta_')}", f"{_PREFIX}{written.removeprefix(_PREFIX)}"
    found = [one for one in holding if one.standing_id.startswith(own) or one.made_from.startswith(of_request)]
    exact = [one for one in found if one.standing_id == own]
    if len({one.made_from for one in exact or found}) > 1:
        message = Sentence(
            "Several standing approvals are meant by {written}: write more of the id", written=name_shown(written)
        )
        raise AgentsError("AGENTS-E-APPROVAL-NOT-FOUND", message)
    return exact or found
