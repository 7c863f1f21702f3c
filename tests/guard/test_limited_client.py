"""Limits of a caller on the guard: what is over one never reaches the relay."""

import asyncio
import json
from typing import Any

from openai_responses_mcp.domain.ports import FramingFault
from openai_responses_mcp.domain.usage import CallerLimits, ProcessUsage
from openai_responses_mcp.guard.limited_client import LimitedClient
from tests.fakes import FakeClock, FakeTransport
from tests.guard.keepers import ENVELOPE


def call(number: int, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "echo", **params}}


async def test_a_call_over_the_limit_gets_a_result_and_the_next_message_is_taken() -> None:
    client = FakeTransport()
    limited = LimitedClient(client, "ann", CallerLimits(calls_at_once=1), ProcessUsage(FakeClock()))
    ping = {"jsonrpc": "2.0", "id": 9, "method": "ping"}
    client.enqueue(call(1), call(2), call(3, _meta=ENVELOPE), FramingFault("odd"), ping)
    first, odd, other = [await limited.receive() for _ in range(3)]
    assert first is not None
    assert odd is not None
    assert other is not None
    assert (json.loads(first.body)["id"], odd.body, json.loads(other.body)) == (1, FramingFault("odd"), ping)  # type: ignore[arg-type]
    old, new = client.replies()
    assert (old["result"]["isError"], "resultType" in old["result"]) == (True, False)
    assert new["result"]["resultType"] == "complete"
    first.channel.send(b"{}")
    first.channel.reply(b"{}")
    first.channel.withdraw()
    await asyncio.sleep(0)  # The end is counted beside the reply.
    client.enqueue(call(4))
    again = await limited.receive()
    assert again is not None
    assert json.loads(again.body)["id"] == 4  # type: ignore[arg-type]
    again.channel.withdraw()
    limited.send(b"{}")
    await limited.flush()
    client.end()
    assert await limited.receive() is None
