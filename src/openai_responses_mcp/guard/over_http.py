"""`guard --http`: the composition root of a guard for many clients. One store and one set of rules, a server for each."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from openai_responses_mcp.adapters.child_process import StderrLines
from openai_responses_mcp.adapters.http.joining import ClientsOfCallers
from openai_responses_mcp.adapters.log.line_sink import SilentLogger
from openai_responses_mcp.commands.serve_http import (
    ConfigError,
    checked_tokens,
    http_options,
    http_settings,
    serve_until_stopped,
)
from openai_responses_mcp.domain.ports import Transport
from openai_responses_mcp.domain.usage import CallerLimits
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.guard.composition import (
    CannotStart,
    given_replies,
    rules_before_start,
    start_server,
    tell_of_other_tools,
)
from openai_responses_mcp.guard.lifetime import UNUSABLE
from openai_responses_mcp.guard.many_clients import KeptServers, LimitedClient
from openai_responses_mcp.guard.messages import ClientWays
from openai_responses_mcp.guard.opened_gate import OpenedGate, new_run_id
from openai_responses_mcp.guard.relay import Relay
from openai_responses_mcp.guard.servers import GuardOptions, OverHttp

if TYPE_CHECKING:
    from openai_responses_mcp.guard.call_keeper import CallKeeper

PROGRAM = "openai-responses-mcp guard"
_SECONDS_TO_END = 5.0
_SECONDS_TO_LEAVE = 0.5


async def guard_over_http(
    options: GuardOptions,
    over_http: OverHttp,
    environ: Mapping[str, str],
    stopped: "asyncio.Future[int]",
    lines: StderrLines,
) -> int:
    """Runs until `stopped` is done. Returns the exit code."""
    try:
        http = http_options(over_http.where, over_http.drain, over_http.tls_cert, over_http.tls_key)
        settings = http_settings(over_http.config, environ)
        tokens = checked_tokens(http, settings, environ)
        rules = await asyncio.to_thread(rules_before_start, options, environ)
        # The tokens of the callers are nothing for the guarded server, nor for the log.
        environ = {name: value for name, value in environ.items() if name != settings.tokens_env}
        known = {**environ, **{f"HTTP_TOKEN_{number}": token for number, token in enumerate(tokens.values())}}
        gate = await asyncio.to_thread(OpenedGate, options, known, lines, rules)
    except (ValueError, ConfigError, CannotStart, AgentsError) as exc:
        lines.tell(str(exc))
        return UNUSABLE

    guard_id = new_run_id()

    def connect(client: Transport, server: Transport, ways: ClientWays, caller: str, session_id: str) -> Relay:
        keepers: list[CallKeeper] = []

        async def load(relay: Relay) -> "CallKeeper":
            if not keepers:
                keepers.append(gate.keeper(relay, new_run_id(guard_id), caller, session_id))
            return keepers[0]

        return Relay(client, server, load, lines.tell, given_replies(options, rules, known), ways)

    servers = KeptServers(
        partial(start_server, options, environ, lines, rules),
        connect,
        partial(tell_of_other_tools, rules=rules),
        over_http.most_servers,
    )
    limits, usage = CallerLimits(*settings.limits), gate.usage()

    async def serve_client(client: Transport, key: str, caller: str) -> None:
        limited = client if limits == CallerLimits() else LimitedClient(client, caller, limits, usage)
        await servers.serve(limited, key, caller)

    clients = ClientsOfCallers(serve_client)
    listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def stay() -> None:
        await gate.stay(guard_id, f"over HTTP, {await listening}: ")

    staying = asyncio.create_task(stay())
    try:
        return await serve_until_stopped(
            http,
            settings,
            tokens,
            clients.serve,
            _TellingLogger(lines.tell),
            stopped,
            on_listening=listening.set_result,
            admit=servers.admit,
            program=PROGRAM,
        )
    except ConfigError as exc:
        lines.tell(str(exc))
        return UNUSABLE
    finally:
        await clients.close(_SECONDS_TO_END)
        staying.cancel()
        await asyncio.wait({staying}, timeout=_SECONDS_TO_LEAVE)


class _TellingLogger(SilentLogger):
    """Warnings and errors become lines on stderr."""

    def __init__(self, tell: Callable[[str], object]) -> None:
        self._tell = tell

    def warning(self, event: str, **facts: object) -> None:
        self._tell(" ".join([event, *(f"{name}={fact}" for name, fact in facts.items())]))

    def error(self, event: str, **facts: object) -> None:
        self.warning(event, **facts)
