"""`log`: one line a call for people, the records with `--records` or `--json`, and whether all is intact. `status`."""

import argparse
import getpass
import shlex
from collections.abc import Sequence
from dataclasses import asdict

from openai_responses_mcp.desk.calls import LoggedCall, calls_in, reason_of
from openai_responses_mcp.desk.terminal.approvals import listed, on_one_line, waiting_records
from openai_responses_mcp.desk.terminal.console import PROGRAM, Console
from openai_responses_mcp.desk.terminal.text import GAP, beginning, local, name_shown
from openai_responses_mcp.domain.texts import Sentence
from openai_responses_mcp.gate.audit.records import ExecutionLog, LogVerification
from openai_responses_mcp.gate.audit.verifying import unfinished
from openai_responses_mcp.gate.clock import Presence, present
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import JsonValue
from openai_responses_mcp.gate.sql.log_files import ArchiveOnDisk


def call_lines(console: Console, calls: Sequence[LoggedCall]) -> list[str]:
    rows = [
        (
            str(call.number),
            local(call.first.timestamp, console.now()),
            name_shown(call.first.tool_name),
            became_of(console, call),
            beginning(call.first.arguments),
        )
        for call in calls
    ]
    return console.paper.columns(rows)


def became_of(console: Console, call: LoggedCall) -> str:
    """What became of it and who decided, short enough for arguments beside it on a narrow terminal."""
    words = console.words
    if call.decided == "asked":
        return words("asked")
    if call.by == "nobody":
        return words("undecided")
    who = name_shown(call.who) if call.who else words("by observer" if call.decided == "observed" else f"by {call.by}")
    if call.decided == "refused":
        return words("refused it", who=who)
    return words("allowed it" if call.outcome == "none" else f"outcome {call.outcome}", who=who)


async def show_log(console: Console, arguments: argparse.Namespace) -> int:
    if arguments.verify:
        return await verify(console, arguments)
    logs = await console.parts.audit.query(arguments.run, arguments.since)
    if arguments.records or console.is_json:
        return await _show_records(console, logs, arguments.run)
    lines = call_lines(console, calls_in(logs)) or [console.words("no calls")]
    console.say(*lines)
    return 0


async def _show_records(console: Console, logs: Sequence[ExecutionLog], run_id: str | None) -> int:
    unknown = {one.sequence for one in unfinished(await console.parts.audit.query(run_id))}
    facts = [asdict(one) | ({"outcome": "unknown"} if one.sequence in unknown else {}) for one in logs]
    console.show(facts, *(_record_lines(console, logs, unknown) or [console.words("no calls")]))
    return 0


def _record_lines(console: Console, logs: Sequence[ExecutionLog], unknown: set[int]) -> list[str]:
    rows = [
        (
            str(one.sequence),
            local(one.timestamp, console.now()),
            name_shown(one.event),
            (console.words("unknown") if one.sequence in unknown else name_shown(one.decision))
            + (f" · {name_shown(one.who)}" if one.who else ""),
            name_shown(one.tool_name or "-"),
            on_one_line(one.comment or reason_of(one, console.words.language)),
        )
        for one in logs
    ]
    return console.paper.columns(rows)


async def show_call(console: Console, arguments: argparse.Namespace) -> int:
    logs = await console.parts.audit.query()
    wanted = arguments.call
    found = [one for one in calls_in(logs) if wanted in (str(one.number), one.first.tool_call_id)]
    if not found:
        raise AgentsError("AGENTS-E-APPROVAL-NOT-FOUND", console.words("no such call", call=name_shown(wanted)))
    call, words, paper = found[-1], console.words, console.paper
    lines = [
        paper.painted(f"{call.number}  {name_shown(call.first.tool_name)}", "bold"),
        *(paper.arguments(call.first.arguments, words) or [words("no arguments")]),
        "",
        *_record_lines(console, call.records, {one.sequence for one in unfinished(logs)}),
    ]
    facts: list[JsonValue] = [asdict(one) for one in call.records]
    console.show(facts, *lines)
    return 0


async def verify(console: Console, arguments: argparse.Namespace) -> int:
    file = getattr(arguments, "file", None)
    if file is None:
        found, is_archive = await console.parts.audit.verify(), False
    else:
        found, is_archive = await console.parts.audit.verify_archive(_records_in(file)), True
    console.show(asdict(found), *verification_lines(console, found, is_archive))
    return 0 if found.is_intact else 1


def _records_in(file: str) -> list[ExecutionLog]:
    records = ArchiveOnDisk(file).read()
    if records is None:
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", Sentence("There is no file {file}", file=file))
    return records


async def archive(console: Console, arguments: argparse.Namespace) -> int:
    record = await console.parts.audit.archive(arguments.before, ArchiveOnDisk(arguments.file), _user())
    moved = _records_in(arguments.file)
    facts = asdict(record)
    words, program, file = console.words, PROGRAM, shlex.quote(arguments.file)
    key = "archived one" if len(moved) == 1 else "archived"
    lines = [words(key, records=len(moved), file=name_shown(arguments.file), record=record.sequence)]
    console.show(facts, *lines, words("to check it", command=f"{program} log verify {file}"))
    return 0


def verification_lines(console: Console, found: LogVerification, is_archive: bool = False) -> list[str]:
    words, paper = console.words, console.paper
    kind = "archive " if is_archive else ""
    if found.is_intact:
        key = "intact one" if found.records == 1 else "intact"
        lines = [paper.painted(words(kind + key, records=found.records), "green")]
    else:
        problems = found.findings or (found.problem,)
        lines = [paper.painted(words(kind + "not intact", records=found.records), "red")]
        lines += [piece for one in problems for piece in paper.wrapped(on_one_line(words.of(one)), "  ")]
        if not is_archive:
            lines.append(words("to accept it", command=f"{PROGRAM} log accept-loss --reason TEXT"))
    if found.accepted:
        lines += [
            words("accepted losses"),
            *(p for one in found.accepted for p in paper.wrapped(on_one_line(words.of(one)), "  ")),
        ]
    return [*lines, *paper.wrapped(on_one_line(words.of(found.uncovered)))] if found.uncovered else lines


async def accept_loss(console: Console, arguments: argparse.Namespace) -> int:
    record = await console.parts.audit.accept_loss(arguments.reason, _user())
    console.show(asdict(record), console.words("accepted", record=record.sequence))
    return 0


def _user() -> str:
    """The name of the user, if the system knows it."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


# ---------------------------------------------------------------------------------------------------------------------
# Status

_LAST_CALLS = 10


async def show_status(console: Console, arguments: argparse.Namespace) -> int:
    words = console.words
    waiting = await waiting_records(console)
    there = await present(console.parts.presence, console.now())
    guards = [one for one in there if one.kind == "guard"]
    desks = [one for one in there if one.kind == "desk"]
    calls = calls_in(await console.parts.audit.query())[-_LAST_CALLS:]
    found = await console.parts.audit.verify()
    facts = {
        "store": arguments.shown_store,
        "guards": [asdict(one) for one in guards],
        "desks": [asdict(one) for one in desks],
        "waiting": [asdict(one.request) for one in waiting],
        "calls": [one.number for one in calls],
        "log": asdict(found),
    }
    lines = [words("store", store=name_shown(arguments.shown_store)), ""]
    lines += [words("guards"), *_there(console, guards)] if guards else [words("no guards")]
    lines += [words("at the desk"), *_there(console, desks)] if desks else [words("nobody at the desk")]
    lines += ["", *listed(console, waiting), ""]
    if calls:
        lines += [words("last calls"), *call_lines(console, calls), ""]
    lines += verification_lines(console, found)
    console.show(facts, *lines)
    return 0 if found.is_intact else 1


def _there(console: Console, present: Sequence[Presence]) -> list[str]:
    rows = [
        (
            f"{GAP}{name_shown(one.name)}",
            console.words("since", moment=local(one.since, console.now())),
            on_one_line(one.detail),
        )
        for one in present
    ]
    return console.paper.columns(rows)
