"""How the guard ends, between two ends in memory and with a process that is played."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from openai_responses_mcp.guard.call_keeper import CallKeeper
from openai_responses_mcp.guard.lifetime import UNUSABLE, Ends, live, watch_for_hang_up
from openai_responses_mcp.guard.relay import Relay
from tests.agents.fakes import within
from tests.fakes import WAIT_SECONDS, FakeTransport
from tests.guard.fake_process import FakeNotices, FakeProcess

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


class Scene:
    def __init__(self, process: FakeProcess) -> None:
        self.client, self.server, self.notices, self.process = FakeTransport(), FakeTransport(), FakeNotices(), process
        loop = asyncio.get_running_loop()
        self.ends, self.failure = Ends(loop.create_future()), loop.create_future()
        self.said = ""
        self.relay = Relay(self.client, self.server, self._never_loaded, self.notices.tell)

    async def live(self) -> int:
        return await live(self.relay, self.process, self.notices.tell, self.ends, self._failed, self._last_words)

    async def _never_loaded(self, _: Relay) -> CallKeeper:
        raise AssertionError("no call is made here")

    async def _failed(self) -> str:
        return str(await self.failure)

    async def _last_words(self) -> str:
        return self.said

    async def passes(self) -> None:
        """The guard runs: what the client sends reaches the server."""
        self.client.enqueue(PING)
        await self.server.wait_for_sent(1)

    def answered(self) -> str:
        """The error that the client's open request got."""
        (reply,) = self.client.replies()
        return str(reply["error"]["message"])

    async def end_of_output(self) -> None:
        """The server's output ends with its process, and not before."""
        await self.process.ended()
        self.server.end()


@asynccontextmanager
async def running(process: FakeProcess | None = None) -> AsyncIterator[tuple[Scene, "asyncio.Task[int]"]]:
    scene = Scene(process or FakeProcess())
    run, output = asyncio.create_task(scene.live()), asyncio.create_task(scene.end_of_output())
    await scene.passes()
    yield scene, run
    assert run.done()
    await output


async def code_of(run: "asyncio.Task[int]") -> int:
    return await asyncio.wait_for(run, WAIT_SECONDS)


async def test_the_guard_ends_with_the_code_of_the_server_and_answers_what_is_open() -> None:
    async with running() as (scene, run):
        scene.process.exit(3)
        assert await code_of(run) == 3
        assert scene.answered() == "The guarded server has ended (exit code 3)"


async def test_open_requests_get_the_last_stderr_line_of_a_server_that_exits() -> None:
    async with running() as (scene, run):
        scene.said = '"no token"'
        scene.process.exit(1)
        assert await code_of(run) == 1
        assert scene.answered().endswith('(exit code 1); the last line that it wrote to stderr: "no token"')


async def test_a_client_that_sends_nothing_more_ends_the_server() -> None:
    async with running() as (scene, run):
        scene.client.end()
        assert await code_of(run) == 0


@pytest.mark.parametrize("end", ["hung_up", "left"])
async def test_a_client_that_is_gone_ends_the_server(end: str) -> None:
    async with running(FakeProcess(is_stubborn=True)) as (scene, run):
        getattr(scene.ends, end).set()
        assert await code_of(run) == 128 + 9


async def test_a_signal_decides_the_code_whatever_the_server_says() -> None:
    async with running() as (scene, run):
        scene.ends.stopped.set_result(128 + 15)
        assert await code_of(run) == 128 + 15
        assert scene.answered() == "The guard was stopped by a signal"


async def test_a_server_that_goes_on_without_the_guard_has_no_exit_code() -> None:
    async with running(FakeProcess(goes_on=True)) as (scene, run):
        scene.client.end()
        assert await code_of(run) == 0
        assert scene.answered() == "The session is over"


async def test_a_guard_that_can_decide_nothing_says_why_and_ends() -> None:
    async with running() as (scene, run):
        scene.failure.set_result("the policy cannot be read")
        assert await code_of(run) == UNUSABLE
        assert scene.notices.lines == [scene.answered()] == ["the policy cannot be read"]


async def test_a_signal_counts_more_than_a_failure() -> None:
    async with running() as (scene, run):
        scene.failure.set_result("the store cannot be opened")
        scene.ends.stopped.set_result(128 + 2)
        assert await code_of(run) == 128 + 2


async def test_a_closed_pipe_is_noticed_with_bytes_still_in_it() -> None:
    ours, theirs = os.pipe()
    noticed = asyncio.Event()
    watch_for_hang_up(ours, noticed.set)
    os.write(theirs, b"more")
    assert not noticed.is_set()
    os.close(theirs)
    await within(noticed.wait())
    os.close(ours)


async def test_a_half_closed_socket_is_noticed() -> None:
    ours, theirs = socket.socketpair()
    noticed = asyncio.Event()
    watch_for_hang_up(ours.fileno(), noticed.set)
    theirs.shutdown(socket.SHUT_WR)
    await within(noticed.wait())
    ours.close()
    theirs.close()
