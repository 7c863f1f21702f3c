"""Approvals by the beginning of their id."""

import pytest

from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.terminal.short_ids import full_id
from tests.agents.guard.keepers import GuardScene


async def test_the_beginning_of_an_id_is_enough() -> None:
    async with GuardScene() as scene:
        scene.start(1)
        approval_id = await scene.asked()
        short = approval_id.removeprefix("apr_")[:4]
        for written in (short, f"apr_{short}", approval_id):
            assert await full_id(scene.approvals, written) == approval_id
        for written in ("", "ap", short[:3], "zzzz", "apr_"):
            assert await full_id(scene.approvals, written) == written


async def test_two_that_begin_alike_are_not_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    async with GuardScene() as scene:
        monkeypatch.setattr("uuid.UUID.hex", property(lambda one: f"7f3a{one.int:028x}"[:32]))
        scene.start(1)
        scene.start(2, "other")

        async def both() -> bool:
            return len(await scene.approvals.pending()) == 2

        await scene.until(both)
        with pytest.raises(AgentsError, match="2 requests begin like that"):
            await full_id(scene.approvals, "7f3a")
