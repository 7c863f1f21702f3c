"""`approvals watch`: requests as they come, decided with one key each, also over ssh.

While it runs, its lease in the store says that somebody is at the desk. A key counts for the request on the screen only:
what was typed before it appeared is thrown away. Ctrl-C leaves the terminal as it was.
"""

import argparse
import asyncio
import json
import os
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from openai_responses_mcp.desk.terminal.approvals import (
    decided_lines,
    edited,
    request_lines,
    standing_lines,
    waiting_records,
)
from openai_responses_mcp.desk.terminal.console import Console
from openai_responses_mcp.desk.terminal.keys import Keys
from openai_responses_mcp.desk.terminal.text import call_shown
from openai_responses_mcp.desk.terminal.typed_values import json_arguments
from openai_responses_mcp.gate.approvals.models import ApprovalRecord
from openai_responses_mcp.gate.approvals.standing import StandingTerms, approve_from_now_on
from openai_responses_mcp.gate.clock import BETWEEN_RENEWALS_SECONDS, Presence, timestamp
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import JsonObject

_BETWEEN_LOOKS_SECONDS = 0.5


async def watch(console: Console, arguments: argparse.Namespace) -> int:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", console.words("needs a terminal"))
    with Keys(sys.stdin.fileno()) as keys:
        async with at_the_desk(console, "terminal"):
            console.tell([], console.words("watching"))
            while True:
                waiting = await waiting_records(console)
                if waiting:
                    await _decide(console, waiting[0], keys)
                else:
                    await asyncio.sleep(_BETWEEN_LOOKS_SECONDS)


@asynccontextmanager
async def at_the_desk(console: Console, name: str) -> AsyncIterator[None]:
    """Renews a lease in the store until the end."""
    now = timestamp(console.now())
    presence = Presence(f"desk_{uuid.uuid4().hex}", "desk", name, now, now, f"pid {os.getpid()}")
    await console.presence.renew(presence)
    renewing = asyncio.create_task(_renew(console, presence))
    try:
        yield
    finally:
        renewing.cancel()
        await asyncio.wait([renewing])
        await console.presence.leave(presence.presence_id)


async def _renew(console: Console, presence: Presence) -> None:
    while True:
        await asyncio.sleep(BETWEEN_RENEWALS_SECONDS)
        try:
            await console.presence.renew(replace(presence, renewed_at=timestamp(console.now())))
        except AgentsError:
            # The store is away; the next look says so to the person.
            continue


async def _decide(console: Console, record: ApprovalRecord, keys: Keys) -> None:
    """Show one request and wait for a key, until it is decided here or elsewhere."""
    words, approval_id = console.words, record.request.approval_id
    keys.forget()
    console.tell([], "\n".join(["", *request_lines(console, record, with_commands=False), "", *_keys(console, record)]))
    console.flush()
    while True:
        key = await keys.next(_BETWEEN_LOOKS_SECONDS)
        if key is None:
            if (await console.approvals.get(approval_id)).request.status != "pending":
                call = call_shown(words, record.request.tool_name, record.request.arguments)
                console.tell([], words("gone", call=call))
                return
            continue
        try:
            lines = await _acted(console, record, key, keys)
        except AgentsError as exc:
            console.tell([], console.words.of(exc.message))
            return
        if lines:
            console.tell([], "\n".join(lines))
            return


async def _acted(console: Console, record: ApprovalRecord, key: str, keys: Keys) -> list[str]:
    """What was done, in sentences; empty where nothing is decided yet."""
    approvals, approval_id = console.approvals, record.request.approval_id
    if key == "a":
        return decided_lines(console, record, "approve", await approvals.submit_decision(approval_id, "approve"))
    if key == "d":
        return decided_lines(console, record, "deny", await approvals.submit_decision(approval_id, "deny"))
    if key == "s" or (key == "r" and record.reading):
        terms = StandingTerms(for_session=True) if key == "s" else StandingTerms(always=True, reads=True)
        token, made, released = await approve_from_now_on(approvals, console.standing, approval_id, terms=terms)
        return [*decided_lines(console, record, "approve", token), *standing_lines(console, made, released)]
    if key == "e":
        changed = _changed(console, record, keys)
        if changed is None:
            return []
        token = await approvals.submit_decision(approval_id, "approve", arguments=changed)
        return decided_lines(console, record, "approve", token, changed)
    if key == "?":
        console.tell([], "\n".join(console.paper.wrapped(console.words("help"))))
    return []


def _keys(console: Console, record: ApprovalRecord) -> list[str]:
    words = console.words
    return [words("keys"), *([words("key r", count=len(record.reading))] if record.reading else [])]


def _changed(console: Console, record: ApprovalRecord, keys: Keys) -> JsonObject | None:
    if record.parameters is None:
        console.tell([], console.words("cannot edit"))
        return None
    before = json.dumps(dict(record.request.arguments), ensure_ascii=False, indent=2)
    with keys.lent():
        after = edited(before)
    if after is None or after.strip() == before.strip():
        console.tell([], console.words("not changed"))
        return None
    try:
        return json_arguments(after)
    except argparse.ArgumentTypeError as exc:
        console.tell([], console.words("bad json", problem=exc))
        return None
