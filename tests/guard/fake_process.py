"""Doubles of the guard's ports."""

import asyncio

from openai_responses_mcp.guard.ports import Notices, ServerProcess


class FakeProcess(ServerProcess):
    """Runs until it is told to exit or its input is closed; one that is stubborn waits for the signal."""

    def __init__(self, *, is_stubborn: bool = False) -> None:
        self._is_stubborn = is_stubborn
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def exit(self, code: int) -> None:
        if not self._code.done():
            self._code.set_result(code)

    async def ended(self) -> int:
        return await asyncio.shield(self._code)

    def close_input(self) -> None:
        if not self._is_stubborn:
            self.exit(0)

    async def end(self) -> int:
        self.close_input()
        self.exit(128 + 9)
        return await self.ended()


class FakeNotices(Notices):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def tell(self, line: str) -> None:
        self.lines.append(line)
