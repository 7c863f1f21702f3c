"""`status`: the store, guards that run, who is at the desk, what waits, the last calls, whether the log is intact."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict

from openai_responses_mcp.desk.calls import calls_in
from openai_responses_mcp.desk.terminal.approvals import listed, waiting_records
from openai_responses_mcp.desk.terminal.calls import call_lines, verification_lines
from openai_responses_mcp.desk.terminal.console import Console
from openai_responses_mcp.desk.terminal.text import GAP, local, name_shown
from openai_responses_mcp.gate.clock import Presence, present

_LAST_CALLS = 10


async def show_status(console: Console, arguments: argparse.Namespace) -> int:
    words = console.words
    waiting = await waiting_records(console)
    there = await present(console.presence, console.now())
    guards = [one for one in there if one.kind == "guard"]
    desks = [one for one in there if one.kind == "desk"]
    calls = calls_in(await console.audit.query())[-_LAST_CALLS:]
    found = await console.audit.verify()
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
    console.tell(facts, "\n".join(lines))
    return 0 if found.is_intact else 1


def _there(console: Console, present: Sequence[Presence]) -> list[str]:
    rows = [
        (
            f"{GAP}{name_shown(one.name)}",
            console.words("since", moment=local(one.since, console.now())),
            name_shown(one.detail) if one.detail else "",
        )
        for one in present
    ]
    return console.paper.columns(rows)
