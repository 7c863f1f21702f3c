"""A worker that asks, as the trials in the browser tell it to: one line of JSON in, one line of JSON out.

{"run": {"agent": NAME, "calls": [{"tool": NAME, "arguments": {...}}, ...]}}   a real run of an agent that pauses
{"ask": {"arguments": {...}, ...}}                                            a request as `Asker.ask` makes it
{"resume": {"run_id": ID, "token": TOKEN}}                                    carries the run on
{"decide": {"approval_id": ID, "decision": "approve" | "deny"}}               somebody else, at a terminal
{"guard": {"text": TEXT}}                                                     a call waits behind a real guard
{"guarded": {}}                                                               what became of it
{"get": ID}                                                                   an approval as it is stored
{"spoil": SEQUENCE}                                                           changes a record behind the log's back
"""

import asyncio
import json
import sqlite3
import sys
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any

from openai_responses_mcp.gate.sql.sql_stores import open_stores
from tests.desk.page.asking import Asker
from tests.guard.conftest import Guard, text_of


class Agents:
    """Only for trials that need a run: the SDK takes seconds to load."""

    def __init__(self, url: str) -> None:
        from openai_responses_mcp.agents import Agent, create_runner, tool
        from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
        from tests.agents.fakes import FakeJudge

        def write_file(path: str, text: str) -> str:
            """Write a text into a file."""
            return f"wrote {len(text)} characters to {path}"

        def pay(amount: int, to: str) -> str:
            """Pay somebody."""
            return f"paid {amount} to {to}"

        self._agent, self._call, self._model = Agent, ScriptedCall, ScriptedModel
        self._tools: list[Any] = [tool(risk_level=3)(write_file), tool(risk_level=4)(pay)]
        self._runner = create_runner(safety_agent=FakeJudge(), store=url)

    async def run(self, agent: str, calls: list[dict[str, Any]]) -> Any:
        turn = [self._call(call["tool"], call["arguments"]) for call in calls]
        result = await self._runner.run(
            self._agent(name=agent, model=self._model(turn, "done"), tools=self._tools), "go"
        )
        return {"run_id": result.run_id, "approval_ids": [one.approval_id for one in result.interruptions]}

    async def resume(self, run_id: str, token: str) -> Any:
        again = self._agent(name="Clerk", model=self._model("done"), tools=self._tools)
        result = await self._runner.resume_run(run_id, token, agent=again)
        asked = [one.approval_id for one in result.interruptions]
        results = [str(one.output) for one in result.tool_calls]
        return {"output": result.output_text, "results": results, "approval_ids": asked}


class Worker:
    def __init__(self, file: str) -> None:
        self._file = file
        self._url = f"sqlite:///{file}"
        self._stores = open_stores(self._url)
        self._asker = Asker(self._stores, run_id="run_asked")

    @cached_property
    def _agents(self) -> Agents:
        return Agents(self._url)

    async def open(self) -> None:
        """From here on there is a store."""
        await self._stores.approvals.latest_moment("")

    async def run(self, **given: Any) -> Any:
        return await self._agents.run(**given)

    async def resume(self, **given: Any) -> Any:
        return await self._agents.resume(**given)

    async def ask(self, **given: Any) -> Any:
        return {"approval_id": (await self._asker.ask(given.pop("arguments", None), **given)).approval_id}

    async def guard(self, text: str) -> Any:
        """A call waits behind a real guard in front of a real server."""
        self._guard = Guard(Path(self._file).parent, "--store", self._url)
        self._guard.start_call("write_note", text=text, _meta={"progressToken": 1})
        await asyncio.to_thread(self._guard.receive)  # It says that it waits.
        return {"approval_id": (await self._asker.controller.pending())[0].approval_id}

    async def guarded(self) -> Any:
        """What became of it."""
        with closing(self._guard):
            return {"text": text_of(await asyncio.to_thread(self._guard.reply_to, "c"))}

    async def decide(self, approval_id: str, decision: Any) -> Any:
        await self._asker.controller.submit_decision(approval_id, decision)
        return {}

    async def get(self, approval_id: str) -> Any:
        request = (await self._asker.controller.get(approval_id)).request
        return {"status": request.status, "comment": request.comment, "tell_model": request.tell_model}

    async def spoil(self, sequence: int) -> Any:
        with sqlite3.connect(self._file) as connection:
            connection.execute("UPDATE agents_log SET reason = 'nothing happened' WHERE sequence = ?", (sequence,))
        return {}


async def main(file: str) -> None:
    worker = Worker(file)
    await worker.open()
    sys.stdout.write("{}\n")
    sys.stdout.flush()
    while line := await asyncio.to_thread(sys.stdin.readline):
        ((verb, given),) = json.loads(line).items()
        try:
            act = getattr(worker, verb)
            done = await (act(**given) if isinstance(given, dict) else act(given))
        except Exception as exc:
            done = {"failed": repr(exc)}
        sys.stdout.write(f"{json.dumps(done)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
