"""The official Python SDK client in front of the guard, in each of its modes; a person answers in the client."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import pytest
from mcp.client import Client
from mcp.client.context import ClientRequestContext
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import ElicitRequestParams, ElicitResult, TextContent

from openai_responses_mcp.guard.asking import READING_SECONDS
from tests.e2e.client import COMMAND, WAIT_SECONDS, environment
from tests.guard.conftest import policy_file

Mode = Literal["auto", "legacy", "2026-07-28"]
# This project's own server, which knows both eras and needs no key.
BEHIND = (*COMMAND, "--stdio", "--rehearse")
RULES = "version: 1\nrules:\n  - {tools: [own/answer_quick], decide: allow}\n"


class Person:
    """Gives the scripted answers, and remembers the questions."""

    def __init__(self, *decisions: str) -> None:
        self._decisions = list(decisions)
        self.shown: list[str] = []

    async def answer(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        self.shown.append(params.message)
        # As long as a person takes to read: a sooner answer counts as a program's.
        await asyncio.sleep(READING_SECONDS * 1.2)
        return ElicitResult(action="accept", content={"decision": self._decisions.pop(0), "comment": "as you like"})


@asynccontextmanager
async def connected(home: Path, mode: Mode, person: Person) -> AsyncIterator[Client]:
    options = ("--name", "own", "--policy", policy_file(home, RULES), "--wait", "60")
    environ = environment(home, XDG_STATE_HOME=str(home))
    command = [*COMMAND, "agents", "guard", *options, "--", *BEHIND]
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=environ)
    with (home / "stderr").open("w+") as errlog:
        transport = stdio_client(parameters, errlog)
        async with Client(
            transport, mode=mode, read_timeout_seconds=WAIT_SECONDS, elicitation_callback=person.answer
        ) as client:
            yield client


@pytest.mark.parametrize(
    "mode", ["auto", *(pytest.param(mode, marks=pytest.mark.slow) for mode in ("legacy", "2026-07-28"))]
)
async def test_a_person_is_asked_in_the_client(tmp_path: Path, mode: Mode) -> None:
    person = Person("allow_once", "deny", "allow_tool_for_session")
    question = {"query": "What does HTTP 404 mean?"}
    async with connected(tmp_path, mode, person) as client:
        assert len((await client.list_tools()).tools) == 3
        # Nobody is asked about this one.
        assert not (await client.call_tool("answer_quick", question)).is_error
        assert person.shown == []
        assert not (await client.call_tool("answer", question)).is_error
        refused = await client.call_tool("answer", question)
        assert refused.is_error
        assert isinstance(refused.content[0], TextContent)
        assert refused.content[0].text.endswith("denied in the client. The approver says: as you like")
        assert not (await client.call_tool("answer", question)).is_error
        assert not (await client.call_tool("answer", {"query": "And 500?"})).is_error
    assert len(person.shown) == 3
    assert '"query": "What does HTTP 404 mean?"' in person.shown[0]
