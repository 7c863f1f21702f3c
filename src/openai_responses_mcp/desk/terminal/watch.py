"""`approvals watch`: shows requests as they come, and decides each with a single key, also over ssh.

While it runs, its lease in the store says that somebody is at the desk. Keys typed before a request appeared are
discarded. Ctrl-C restores the terminal.
"""

import argparse
import asyncio
import json
import os
import shlex
import subprocess
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import TracebackType

from openai_responses_mcp.desk.terminal.approvals import (
    decided_lines,
    request_lines,
    standing_lines,
    waiting_records,
)
from openai_responses_mcp.desk.terminal.console import Console, call_shown
from openai_responses_mcp.desk.terminal.parsing import json_arguments
from openai_responses_mcp.domain.texts import Sentence
from openai_responses_mcp.gate.approvals.models import ApprovalRecord
from openai_responses_mcp.gate.approvals.standing import StandingTerms, approve_from_now_on
from openai_responses_mcp.gate.clock import Presence, SystemClock, stay, timestamp
from openai_responses_mcp.gate.errors import AgentsError, config_error
from openai_responses_mcp.gate.json_values import JsonObject

_BETWEEN_LOOKS_SECONDS = 0.5
_HELP = Sentence(
    "a approves this call once. d denies it. s approves it and every later call of this tool in the same session."
    " r, where it is offered, approves it and every later call of the tools that claim to read only."
    " e opens the arguments in your editor and approves what you save. Ctrl-C leaves; the call keeps waiting."
)


async def watch(console: Console, arguments: argparse.Namespace) -> int:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        message = console.words("`approvals watch` needs a terminal; `approvals list` works without one")
        raise config_error(message)
    with Keys(sys.stdin.fileno()) as keys:
        async with at_the_desk(console, "terminal"):
            console.say(console.words("Waiting for calls to decide. Ctrl-C ends."))
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
    await console.parts.presence.renew(presence)
    staying = asyncio.create_task(stay(console.parts.presence, SystemClock(), presence))
    try:
        yield
    finally:
        staying.cancel()
        await asyncio.wait([staying])


async def _decide(console: Console, record: ApprovalRecord, keys: "Keys") -> None:
    """Show one request and wait for a key, until it is decided here or elsewhere."""
    words, approval_id = console.words, record.request.approval_id
    keys.forget()
    console.say("", *await request_lines(console, record, with_commands=False), "", *_keys(console, record))
    while True:
        key = await keys.next(_BETWEEN_LOOKS_SECONDS)
        if key is None:
            if (await console.parts.approvals.get(approval_id)).request.status != "pending":
                call = call_shown(words, record.request.tool_name, record.request.arguments)
                console.say(words("{call} was decided elsewhere, or is not needed any more.", call=call))
                return
            continue
        try:
            lines = await _acted(console, record, key, keys)
        except AgentsError as exc:
            console.say(console.words.of(exc.message))
            return
        if lines:
            console.say(*lines)
            return


async def _acted(console: Console, record: ApprovalRecord, key: str, keys: "Keys") -> list[str]:
    """What was done, in sentences; empty if nothing is decided yet."""
    approvals, approval_id, standing = console.parts.approvals, record.request.approval_id, list[str]()
    if key in ("a", "d"):
        token = await approvals.submit_decision(approval_id, "approve" if key == "a" else "deny")
    elif key == "s" or (key == "r" and record.reading):
        terms = StandingTerms(for_session=True) if key == "s" else StandingTerms(always=True, reads=True)
        token, made, released = await approve_from_now_on(approvals, console.parts.standing, approval_id, terms=terms)
        standing = standing_lines(console, made, released)
    elif key == "e" and (changed := _changed(console, record, keys)) is not None:
        token = await approvals.submit_decision(approval_id, "approve", arguments=changed)
    else:
        if key == "?":
            console.say(*console.paper.wrapped(console.words.of(_HELP)))
        return []
    return [*await decided_lines(console, record, await approvals.get(approval_id), token), *standing]


def _keys(console: Console, record: ApprovalRecord) -> list[str]:
    words = console.words
    lines = [words("[a] approve  [d] deny  [s] allow for the session  [e] edit arguments  [?] help")]
    if record.reading:
        reading = "[r] allow every tool of this server that claims to read only, for good ({count} now)"
        lines.append(words(reading, count=len(record.reading)))
    return lines


def _changed(console: Console, record: ApprovalRecord, keys: "Keys") -> JsonObject | None:
    if record.parameters is None:
        console.say(console.words("The arguments of this call cannot be changed."))
        return None
    before = json.dumps(dict(record.request.arguments), ensure_ascii=False, indent=2)
    try:
        with keys.lent():
            after = _edited(before)
    except (OSError, ValueError) as exc:
        console.say(console.words("The editor cannot be used: {problem}. Nothing is decided yet.", problem=exc))
        return None
    if after is None or after.strip() == before.strip():
        console.say(console.words("The arguments were not changed; nothing is decided yet."))
        return None
    try:
        return json_arguments(after)
    except argparse.ArgumentTypeError as exc:
        console.say(console.words("That is not a JSON object: {problem}. Nothing is decided yet.", problem=exc))
        return None


def _edited(text: str) -> str | None:
    """The text after the person's own editor; None if the editor ended with an error."""
    command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "arguments.json")
        path.write_text(text, encoding="utf-8")
        done = subprocess.run([*command, path], check=False)  # noqa: S603 - the person's own editor
        return path.read_text(encoding="utf-8") if done.returncode == 0 else None


# ---------------------------------------------------------------------------------------------------------------------
# Single keys, without waiting for Enter. The terminal mode is restored at the end.

if sys.platform != "win32":
    import select
    import termios
    import tty

    class PosixKeys:
        def __init__(self, descriptor: int) -> None:
            self._descriptor = descriptor
            self._before = termios.tcgetattr(descriptor)

        def __enter__(self) -> "PosixKeys":
            tty.setcbreak(self._descriptor)
            return self

        def __exit__(
            self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
        ) -> None:
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._before)

        def forget(self) -> None:
            """Discard what was typed until now."""
            termios.tcflush(self._descriptor, termios.TCIFLUSH)

        @contextmanager
        def lent(self) -> Iterator[None]:
            """Restores the terminal mode while another program uses it."""
            self.__exit__(None, None, None)
            try:
                yield
            finally:
                self.__enter__()

        async def next(self, seconds: float) -> str | None:
            """The next key, or None after so many seconds. The end of input is Ctrl-C."""
            ready: asyncio.Event = asyncio.Event()
            loop = asyncio.get_running_loop()
            loop.add_reader(self._descriptor, ready.set)
            try:
                async with asyncio.timeout(seconds):
                    await ready.wait()
            except TimeoutError:
                return None
            finally:
                loop.remove_reader(self._descriptor)
            return self._read()

        def _read(self) -> str | None:
            if not select.select([self._descriptor], [], [], 0)[0]:
                return None
            typed = os.read(self._descriptor, 64)
            if not typed:
                raise KeyboardInterrupt
            # Several bytes at once are a key such as an arrow, or pasted text: neither decides anything.
            return typed.decode("ascii", "replace") if len(typed) == 1 else ""

    Keys = PosixKeys

else:
    import msvcrt

    class WindowsKeys:
        def __init__(self, descriptor: int) -> None:
            pass

        def __enter__(self) -> "WindowsKeys":
            return self

        def __exit__(
            self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
        ) -> None:
            pass

        def forget(self) -> None:
            """Discard what was typed until now."""
            while msvcrt.kbhit():
                msvcrt.getwch()

        @contextmanager
        def lent(self) -> Iterator[None]:
            yield

        async def next(self, seconds: float) -> str | None:
            """The next key, or None after so many seconds."""
            for _ in range(max(int(seconds / 0.05), 1)):
                if msvcrt.kbhit():
                    key = msvcrt.getwch()
                    if key == "\x03":
                        raise KeyboardInterrupt
                    return key
                await asyncio.sleep(0.05)
            return None

    Keys = WindowsKeys
