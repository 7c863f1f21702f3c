"""Doubles of what is outside of the guard: the process of the server, and the lines for people."""

import asyncio

from openai_responses_mcp.guard.lifetime import ServerProcess


class FakeProcess(ServerProcess):
    """Runs until it exits or is ended; one that is stubborn has to be killed, a remote one goes on."""

    def __init__(self, *, is_stubborn: bool = False, goes_on: bool = False) -> None:
        self._is_stubborn = is_stubborn
        self._goes_on = goes_on
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def exit(self, code: int) -> None:
        if not self._code.done():
            self._code.set_result(code)

    async def ended(self) -> int:
        return await asyncio.shield(self._code)

    async def end(self) -> int | None:
        self.exit(128 + 9 if self._is_stubborn else 0)
        return None if self._goes_on else await self.ended()


class FakeNotices:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def tell(self, line: str) -> None:
        self.lines.append(line)
