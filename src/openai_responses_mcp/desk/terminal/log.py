"""`log`: one line per call, the records with `--records` or `--json`, and verification. `status`."""

import argparse
import getpass
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from openai_responses_mcp.desk.page.messages import LoggedCall, calls_in, reason_of, step_of
from openai_responses_mcp.desk.terminal.approvals import listed, waiting_records
from openai_responses_mcp.desk.terminal.console import GAP, PROGRAM, Console, beginning, local, name_shown
from openai_responses_mcp.desk.words import Words, on_one_line
from openai_responses_mcp.domain.texts import Sentence
from openai_responses_mcp.gate.audit.records import ExecutionLog, LogVerification
from openai_responses_mcp.gate.audit.verifying import unfinished
from openai_responses_mcp.gate.clock import Presence, present
from openai_responses_mcp.gate.errors import AgentsError, config_error
from openai_responses_mcp.gate.json_values import JsonValue
from openai_responses_mcp.gate.sql.log_files import ArchiveOnDisk


def call_lines(console: Console, calls: Sequence[LoggedCall]) -> list[str]:
    rows = [
        (
            str(call.number),
            local(call.first.timestamp, console.now()),
            name_shown(call.first.tool_name) + (f" · {name_shown(call.caller)}" if call.caller else ""),
            became_of(console, call),
            beginning(call.first.arguments),
        )
        for call in calls
    ]
    return console.paper.columns(rows)


OUTCOMES: Mapping[str, str] = {
    "none": "allowed ({who})",
    "done": "ran ({who})",
    "failed": "failed ({who})",
    "unknown": "unknown ({who})",
}


def became_of(console: Console, call: LoggedCall) -> str:
    """The outcome and who decided, short enough to leave room for arguments."""
    words = console.words
    if call.decided == "asked":
        return words("waits")
    if call.by == "nobody":
        return words("not decided")
    who = name_shown(call.who) if call.who else words("observed" if call.decided == "observed" else call.by)
    if call.decided == "refused":
        return words("refused ({who})", who=who)
    return words(OUTCOMES[call.outcome], who=who)


async def show_log(console: Console, arguments: argparse.Namespace) -> int:
    if arguments.verify:
        return await verify(console, arguments)
    logs = await console.parts.audit.query(arguments.run, arguments.since)
    if arguments.records or console.is_json:
        unknown = {one.sequence for one in unfinished(await console.parts.audit.query(arguments.run))}
        facts = [asdict(one) | ({"outcome": "unknown"} if one.sequence in unknown else {}) for one in logs]
        lines = _record_lines(console, logs, unknown)
    else:
        facts, lines = [], call_lines(console, calls_in(logs))
    console.show(facts, *(lines or [console.words("The log has no calls yet.")]))
    return 0


def _record_lines(console: Console, logs: Sequence[ExecutionLog], unknown: set[int]) -> list[str]:
    rows = [
        (
            str(one.sequence),
            local(one.timestamp, console.now()),
            name_shown(one.event),
            (console.words("outcome unknown") if one.sequence in unknown else name_shown(one.decision))
            + (f" · {name_shown(one.who)}" if one.who else ""),
            name_shown(one.tool_name or "-"),
            on_one_line(one.comment or reason_of(one, console.words.language)),
        )
        for one in logs
    ]
    return console.paper.columns(rows)


def _step_lines(console: Console, logs: Sequence[ExecutionLog], unknown: set[int]) -> list[str]:
    """The records of one call. A reason is shown with the first record that has it."""
    rows, before = [], ""
    for one in logs:
        step = console.words("outcome unknown") if one.sequence in unknown else on_one_line(step_of(one, console.words))
        why = on_one_line((one.comment or reason_of(one, console.words.language)).replace("\n", " "))
        number, moment = str(one.sequence), local(one.timestamp, console.now())
        who = f" · {name_shown(one.who)}" if one.who else ""
        rows.append((number, moment, f"{step}{who}", "" if why == before else why))
        before = why or before
    return console.paper.columns(rows)


async def show_call(console: Console, arguments: argparse.Namespace) -> int:
    logs = await console.parts.audit.query()
    wanted = arguments.call
    found = [one for one in calls_in(logs) if wanted in (str(one.number), one.first.tool_call_id)]
    if not found:
        says = "The log has no call {call}; the first column of `log` has their numbers"
        raise AgentsError("AGENTS-E-APPROVAL-NOT-FOUND", console.words(says, call=name_shown(wanted)))
    call, words, paper = found[-1], console.words, console.paper
    lines = [
        paper.painted(f"{call.number}  {name_shown(call.first.tool_name)}", "bold"),
        *(paper.arguments(call.first.arguments, words) or [words("without arguments")]),
        "",
        *_step_lines(console, call.records, {one.sequence for one in unfinished(logs)}),
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
        raise config_error(Sentence("There is no file {file}", file=file))
    return records


async def archive(console: Console, arguments: argparse.Namespace) -> int:
    record = await console.parts.audit.archive(arguments.before, ArchiveOnDisk(arguments.file), _user())
    moved = _records_in(arguments.file)
    words, checking = console.words, f"{PROGRAM} log verify {shlex.quote(arguments.file)}"
    says = "Moved {records} to {file}; record {record} of the log says so."
    file, records = name_shown(arguments.file), _count(words, len(moved))
    console.show(
        asdict(record),
        words(says, records=records, file=file, record=record.sequence),
        words("To check it: {command}", command=checking),
    )
    return 0


def _count(words: Words, records: int) -> str:
    return words("1 record" if records == 1 else "{count} records", count=records)


def verification_lines(console: Console, found: LogVerification, is_archive: bool = False) -> list[str]:
    words, paper = console.words, console.paper
    place, records = words("The archive" if is_archive else "The log"), _count(words, found.records)
    if found.is_intact:
        lines = [paper.painted(words("{place} is intact: {records}.", place=place, records=records), "green")]
    else:
        problems = found.findings or (found.problem,)
        lines = [paper.painted(words("{place} is not intact ({records}):", place=place, records=records), "red")]
        lines += [piece for one in problems for piece in paper.wrapped(on_one_line(words.of(one)), "  ")]
        if not is_archive:
            accepting = f"{PROGRAM} log accept-loss --reason TEXT"
            lines.append(words("If you know why, accept it: {command}", command=accepting))
    if found.accepted:
        lines += [
            words("Accepted by people:"),
            *(p for one in found.accepted for p in paper.wrapped(on_one_line(words.of(one)), "  ")),
        ]
    return [*lines, *paper.wrapped(on_one_line(words.of(found.uncovered)))] if found.uncovered else lines


async def accept_loss(console: Console, arguments: argparse.Namespace) -> int:
    record = await console.parts.audit.accept_loss(arguments.reason, _user())
    says = "The log is accepted in its present state; record {record} says so."
    console.show(asdict(record), console.words(says, record=record.sequence))
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
    lines = [words("Store: {store}", store=name_shown(arguments.shown_store)), ""]
    lines += [words("Guards that run now:"), *_there(console, guards)] if guards else [words("No guard runs now.")]
    nobody = words("Nobody is at the desk: neither the page nor `approvals watch` is open.")
    lines += [words("At the desk:"), *_there(console, desks)] if desks else [nobody]
    lines += ["", *listed(console, waiting), ""]
    if calls:
        lines += [words("The last calls:"), *call_lines(console, calls), ""]
    lines += verification_lines(console, found)
    console.show(facts, *lines)
    return 0 if found.is_intact else 1


def _there(console: Console, present: Sequence[Presence]) -> list[str]:
    rows = [
        (
            f"{GAP}{name_shown(one.name)}",
            console.words("since {moment}", moment=local(one.since, console.now())),
            on_one_line(one.detail),
        )
        for one in present
    ]
    return console.paper.columns(rows)
