"""The guard's composition root for one client on stdin and stdout.

Nothing heavy is imported at the start. `opened_gate`, which decides on calls, is loaded in a thread: soon after the first
reply, or at the first call.
"""

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from openai_responses_mcp.adapters.child_process import ChildProcess, FollowedStderr, StderrLines
from openai_responses_mcp.adapters.log.line_sink import SilentLogger
from openai_responses_mcp.adapters.process import WarmUp
from openai_responses_mcp.adapters.stdio.framing import StdioFramer
from openai_responses_mcp.adapters.stdio.transport import StdioTransport
from openai_responses_mcp.domain.errors import TransportClosed
from openai_responses_mcp.domain.jsonrpc import INTERNAL_ERROR, Request
from openai_responses_mcp.domain.ports import Transport
from openai_responses_mcp.gate.json_values import shown_json
from openai_responses_mcp.guard import messages
from openai_responses_mcp.guard.lifetime import (
    SECONDS_TO_BE_ASKED,
    UNUSABLE,
    Ends,
    ServerProcess,
    live,
    watch_for_hang_up,
)
from openai_responses_mcp.guard.relay import Relay
from openai_responses_mcp.guard.servers import GuardOptions, environment_for_server, former_names, is_header_value

if TYPE_CHECKING:
    from openai_responses_mcp.gate.policy.ruling import PolicyRules
    from openai_responses_mcp.guard.call_keeper import CallKeeper
    from openai_responses_mcp.guard.given_replies import GivenReplies

LONGEST_MESSAGE_BYTES = 64 * 1024 * 1024
NOT_STARTED = 127
_LONGEST_LAST_WORDS = 300
_SECONDS_TO_LEAVE = 0.5
_SQLITE_BEGINS = b"SQLite format 3\0"
_SECONDS_BETWEEN_LOOKS_AT_POLICY = 2.0

# A client that has its first reply asks for the tools next; loading at once would hold that up.
_LOAD_AFTER_SECONDS = 0.05


class CannotStart(Exception):
    """The guard or the server cannot start. The text says why."""


class Loaded(NamedTuple):
    """`keeper` decides on calls. `stay` lists this guard in `status` until it is cancelled."""

    keeper: "CallKeeper"
    stay: Callable[[], Awaitable[None]]


class ServerSide(NamedTuple):
    """The guarded server. `last_words` returns its last line on stderr; `close` frees its resources after it ended."""

    transport: Transport
    process: ServerProcess
    last_words: Callable[[], Awaitable[str]]
    close: Callable[[], Awaitable[None]]


async def guard(
    options: GuardOptions,
    wire: tuple[int, int],
    environ: Mapping[str, str],
    stopped: "asyncio.Future[int]",
    lines: StderrLines,
) -> int:
    """Runs until the client disconnects, the server ends, or `stopped` is done. Returns the exit code."""
    try:
        rules = rules_before_start(options, environ)
    except CannotStart as exc:
        return await _refuse(wire, str(exc), stopped, lines, UNUSABLE)
    try:
        side = start_server(options, environ, lines, rules)
    except CannotStart as exc:
        return await _refuse(wire, str(exc), stopped, lines, NOT_STARTED)
    loop, ends = asyncio.get_running_loop(), Ends(stopped)
    watch_for_hang_up(wire[0], ends.left.set)
    loading = WarmUp(lambda: _load(options, relay, environ, lines, rules))
    client = StdioTransport(
        *wire,
        _framer(),
        SilentLogger(),
        on_closed=ends.hung_up.set,
        on_first_send=lambda: loop.call_later(_LOAD_AFTER_SECONDS, loading.start),
    )

    async def load(_: Relay) -> "CallKeeper":
        return (await loading.result()).keeper

    relay = Relay(client, side.transport, load, lines.tell, given_replies(options, rules, environ))
    staying = [asyncio.create_task(_stay(loading)), asyncio.create_task(tell_of_other_tools(relay, rules))]
    try:
        failure = partial(_failure_of, loading)
        return await live(relay, side.process, lines.tell, ends, failure, side.last_words)
    finally:
        for task in staying:
            task.cancel()
        await asyncio.wait(staying, timeout=_SECONDS_TO_LEAVE)


def _load(
    options: GuardOptions, relay: Relay, environ: Mapping[str, str], lines: StderrLines, rules: "PolicyRules | None"
) -> Loaded:
    from openai_responses_mcp.guard.opened_gate import OpenedGate, new_run_id

    opened, run_id = OpenedGate(options, environ, lines, rules), new_run_id()
    return Loaded(opened.keeper(relay, run_id), partial(opened.stay, run_id))


def start_server(
    options: GuardOptions, environ: Mapping[str, str], lines: StderrLines, rules: "PolicyRules | None"
) -> ServerSide:
    """Start the command, or connect to the URL. Needs a running event loop; raises `CannotStart`."""
    if options.url is not None:
        return _reach_server(options, options.url, environ, lines)
    webhook_env = rules.policy.webhook_env if rules else None
    try:
        process = ChildProcess(options.command, environment_for_server(environ, webhook_env))
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or exc
        raise CannotStart(f"{options.command[0]} cannot be started: {reason}") from exc
    output, input_, stderr = process.wires
    transport = StdioTransport(output, input_, _framer(), SilentLogger(), reads_to_end=True)

    async def close() -> None:
        if await transport.close():
            process.close()

    return ServerSide(transport, process, partial(_last_words, lines.follow(stderr), environ), close)


def _reach_server(options: GuardOptions, url: str, environ: Mapping[str, str], lines: StderrLines) -> ServerSide:
    from openai_responses_mcp.guard.remote import RemoteEnd, connect

    transport = connect(url, options.headers, environ, lines.tell, LONGEST_MESSAGE_BYTES)

    async def nothing() -> str:
        return ""

    return ServerSide(transport, RemoteEnd(transport), nothing, transport.end)


def rules_before_start(options: GuardOptions, environ: Mapping[str, str]) -> "PolicyRules | None":
    """The rules of the policy file, if there is one.

    Raises `CannotStart` if a header's variable, the store or the policy cannot be used.
    """
    for header in options.headers:
        if not is_header_value(environ.get(header.variable, "")):
            raise CannotStart(
                f"the variable {header.variable} of --header-env is not set, or its value cannot be sent as a header"
            )
    from openai_responses_mcp.gate.sql.own_files import own_store

    try:
        store = options.store or own_store(environ)
    except OSError as exc:
        raise CannotStart(f"the store cannot be created: {exc.filename}: {exc.strerror}") from exc
    if store.startswith("sqlite:///"):
        _check_file(store.removeprefix("sqlite:///").partition("?")[0])
    if not options.policy:
        return None
    from openai_responses_mcp.desk.opening import open_rules
    from openai_responses_mcp.gate.errors import AgentsError

    try:
        return open_rules(options.policy, store, former_names(options))
    except AgentsError as exc:
        raise CannotStart(str(exc)) from exc


def _check_file(path: str) -> None:
    """Look at the store's file without opening the database. A missing file is created later."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise CannotStart(f"the store {path} is a folder; name a file")
        if not stat.S_ISREG(mode):
            raise CannotStart(f"the store {path} is not a regular file; name another one")
        with open(path, "rb") as file:
            beginning = file.read(len(_SQLITE_BEGINS))
    except FileNotFoundError:
        return
    except (OSError, ValueError) as exc:
        raise CannotStart(f"the store {path} cannot be read: {getattr(exc, 'strerror', None) or exc}") from exc
    if beginning and beginning != _SQLITE_BEGINS:
        raise CannotStart(f"the store {path} is not a SQLite database; name another file")


def given_replies(
    options: GuardOptions, rules: "PolicyRules | None", environ: Mapping[str, str]
) -> "GivenReplies | None":
    """None without a policy file: then every reply passes unchanged."""
    if rules is None:
        return None
    from openai_responses_mcp.gate.secrets.masking import Masking
    from openai_responses_mcp.guard.given_replies import GivenReplies

    masking = Masking(environ, also=rules.policy.webhook_env or "")
    return GivenReplies(rules, options.name, masking, is_observing=options.observe)


async def tell_of_other_tools(relay: Relay, rules: "PolicyRules | None") -> None:
    """Notify the client when a changed policy changes its list of tools; it keeps the old list until then."""
    while rules is not None:
        await asyncio.sleep(_SECONDS_BETWEEN_LOOKS_AT_POLICY)
        relay.tell_of_other_tools()


async def _refuse(
    wire: tuple[int, int], reason: str, stopped: "asyncio.Future[int]", lines: StderrLines, code: int
) -> int:
    lines.tell(reason)
    refusing = asyncio.create_task(_refuse_first_request(wire, reason))
    stopped.add_done_callback(lambda _: refusing.cancel())
    await asyncio.wait({refusing}, timeout=SECONDS_TO_BE_ASKED)
    return code


async def _refuse_first_request(wire: tuple[int, int], reason: str) -> None:
    """Most clients hide stderr, so their first request is answered with the same words."""
    client = StdioTransport(*wire, _framer(), SilentLogger())
    with suppress(TransportClosed):
        while (received := await client.receive()) is not None:
            if isinstance(received.body, bytes) and isinstance(request := messages.read(received.body), Request):
                client.send(messages.error_reply(request.id, INTERNAL_ERROR, reason))
                await client.flush()
                return


def _framer() -> StdioFramer:
    return StdioFramer(LONGEST_MESSAGE_BYTES, line_mode=True)


async def _last_words(followed: FollowedStderr, environ: Mapping[str, str]) -> str:
    """The server's last line as a JSON string, without secrets: it goes to the client and into the log."""
    line = await asyncio.to_thread(followed.last_line)
    if not line:
        return ""
    from openai_responses_mcp.gate.secrets.masking import Masking

    shown = Masking(environ).text(line)
    cut = shown if len(shown) <= _LONGEST_LAST_WORDS else f"{shown[:_LONGEST_LAST_WORDS]}…"
    return shown_json(cut)


async def _stay(loading: WarmUp[Loaded]) -> None:
    await loading.settled()
    with suppress(RuntimeError):
        await (await loading.result()).stay()


async def _failure_of(loading: WarmUp[Loaded]) -> str:
    """Why the gate could not be loaded. Never returns if it was."""
    try:
        await loading.settled()
        await loading.result()
    except RuntimeError as exc:
        return str(exc.__cause__ or exc)
    never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    return await never
