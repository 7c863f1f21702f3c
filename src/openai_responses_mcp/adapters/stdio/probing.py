"""Starts an MCP server as a client does, asks for its name and its tools, and ends it again."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from openai_responses_mcp import __version__
from openai_responses_mcp.adapters.child_process import ChildProcess, FollowedStderr
from openai_responses_mcp.adapters.log.line_sink import SilentLogger
from openai_responses_mcp.adapters.stdio.framing import StdioFramer
from openai_responses_mcp.adapters.stdio.transport import StdioTransport
from openai_responses_mcp.domain.errors import TransportClosed
from openai_responses_mcp.domain.jsonrpc import METHOD_NOT_FOUND, Reply, Request, read
from openai_responses_mcp.domain.texts import Sentence, one_line

PROTOCOL_VERSION = "2025-06-18"
MOST_TOOLS = 1000
_LONGEST_MESSAGE_BYTES = 16 * 1024 * 1024
_LONGEST_TEXT = 300
_LAST_READ_SECONDS = 0.5


class ServerSeen(NamedTuple):
    """What a client sees of a server that it has started."""

    name: str
    version: str
    tools: tuple[str, ...]


class ProbeFailed(Exception):
    """No client could use the server. The text says why, on one line. It may quote the server's stderr: mask it."""


async def look_at(command: Sequence[str], environ: Mapping[str, str], *, within_seconds: float) -> ServerSeen:
    """Raises `ProbeFailed`. Afterwards the server and all its child processes have ended."""
    try:
        process = ChildProcess(command, environ)
    except (OSError, ValueError) as exc:
        raise ProbeFailed(Sentence("it cannot be started ({why})", why=getattr(exc, "strerror", None) or exc)) from exc
    output, input_, errors = process.wires
    stderr = FollowedStderr(errors, lambda line: None)
    framer = StdioFramer(_LONGEST_MESSAGE_BYTES, line_mode=True)
    probe = _ProbeClient(StdioTransport(output, input_, framer, SilentLogger(), reads_to_end=True))
    try:
        async with asyncio.timeout(within_seconds):
            return await probe.seen()
    except TimeoutError:
        await process.end()
        seconds = f"{within_seconds:g}"
        text = Sentence("it did not answer {method} within {seconds} s", method=probe.method, seconds=seconds)
        raise _quoting(stderr, text) from None
    except _Ended:
        text = Sentence("it ended with exit code {code} before it answered", code=await process.end())
        raise _quoting(stderr, text) from None
    finally:
        await process.end()
        await probe.drain()
        process.close()


def _quoting(stderr: FollowedStderr, what: Sentence) -> ProbeFailed:
    line = _text(stderr.last_line(_LAST_READ_SECONDS))
    return ProbeFailed(Sentence("{what}; its last line on stderr: {line}", what=what, line=line) if line else what)


class _Ended(Exception):
    """The server closed its output before it answered."""


class _ProbeClient:
    """One request at a time. `method` is the one that is waiting for its reply."""

    def __init__(self, transport: StdioTransport) -> None:
        self._transport = transport
        self._last_id = 0
        self.method = ""

    async def seen(self) -> ServerSeen:
        client = {"name": "openai-responses-mcp-doctor", "version": __version__}
        hello = {"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client}
        info = _mapping(_mapping(await self._ask("initialize", hello)).get("serverInfo"))
        self._send({"method": "notifications/initialized"})
        tools: list[str] = []
        params: dict[str, Any] = {}
        while True:
            page = _mapping(await self._ask("tools/list", params))
            found = page.get("tools")
            tools += [_text(_mapping(tool).get("name")) for tool in (found if isinstance(found, list) else [])]
            if not isinstance(page.get("nextCursor"), str) or len(tools) > MOST_TOOLS:
                return ServerSeen(_text(info.get("name")), _text(info.get("version")), tuple(tools[:MOST_TOOLS]))
            params = {"cursor": page["nextCursor"]}

    async def drain(self) -> None:
        """Read to the end before the descriptor is closed, or give up if another process keeps it open."""
        with suppress(TimeoutError, TransportClosed):
            async with asyncio.timeout(_LAST_READ_SECONDS):
                while await self._transport.receive() is not None:
                    pass

    async def _ask(self, method: str, params: dict[str, Any]) -> Any:
        self._last_id += 1
        self.method = method
        self._send({"id": self._last_id, "method": method, "params": params})
        while (received := await self._transport.receive()) is not None:
            message = read(received.body) if isinstance(received.body, bytes) else None
            if isinstance(message, Request):
                error = {"code": METHOD_NOT_FOUND, "message": "Unknown method"}
                self._send({"id": message.id, **({"result": {}} if message.method == "ping" else {"error": error})})
            elif isinstance(message, Reply) and message.id == self._last_id:
                if message.error is not None:
                    raise ProbeFailed(
                        Sentence(
                            "it answered {method} with an error: {message}",
                            method=method,
                            message=_text(message.error.get("message")),
                        )
                    )
                return message.result
        raise _Ended

    def _send(self, message: dict[str, Any]) -> None:
        self._transport.send(json.dumps({"jsonrpc": "2.0", **message}).encode())


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return one_line(value).strip()[:_LONGEST_TEXT] if isinstance(value, str) else ""
