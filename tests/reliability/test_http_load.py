"""Over HTTP with many callers: nothing is lost, nothing runs twice, and a killed replica takes only its own calls along.

The stand-in for the API remembers every question that it was asked.
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing
from pathlib import Path

import httpx2
import pytest

from tests.e2e.client import environment
from tests.e2e.http_process import HttpProcess, call, enveloped, routed
from tests.stand_in.server import StandInThread

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

LONGEST_SECONDS = 600.0
MOST_AT_ONCE = 500


@pytest.fixture
def api() -> Iterator[StandInThread]:
    with StandInThread(keep_requests=50_000) as api:
        yield api


def questions_at(api: StandInThread) -> Counter[int]:
    """How often the API was asked each question."""
    bodies = b"\n".join(request.body for request in api.server.requests)
    return Counter(map(int, re.findall(rb"number (\d+)\.", bodies)))


@asynccontextmanager
async def many_connections() -> AsyncIterator[httpx2.AsyncClient]:
    limits = httpx2.Limits(max_connections=2000, max_keepalive_connections=2000)
    async with httpx2.AsyncClient(timeout=LONGEST_SECONDS, limits=limits, trust_env=False) as http:
        yield http


async def asked(http: httpx2.AsyncClient, url: str, number: int, delay: float = 0.0) -> int:
    """The number in the answer."""
    message = call(1, f"Which? number {number}. [rehearse: delay={delay}; text=It is {number}.]")
    reply = await http.post(url, json=message, headers=routed(message))
    assert reply.status_code == 200, reply.text
    answer = reply.json()["result"]["structuredContent"]["answer"]
    found = re.search(r"It is (\d+)\.", answer)
    assert found, answer
    return int(found[1])


async def researched(http: httpx2.AsyncClient, url: str) -> None:
    arguments = {"query": "What is known? [rehearse: delay=3]"}
    message = enveloped(1, "tools/call", name="answer_detailed", arguments=arguments)
    await http.post(url, json=message, headers=routed(message))


async def test_a_thousand_callers_at_once_get_their_own_answers(api: StandInThread, tmp_path: Path) -> None:
    with closing(HttpProcess(environment(tmp_path, OPENAI_BASE_URL=api.base_url))) as server:
        async with many_connections() as http, asyncio.timeout(LONGEST_SECONDS):
            answers = await asyncio.gather(*(asked(http, server.url, number, 0.5) for number in range(1000)))
        assert answers == list(range(1000))
        assert server.process.poll() is None
    assert set(questions_at(api).values()) == {1}


async def test_of_ten_thousand_calls_with_a_thousand_cancelled_none_is_lost_and_none_runs_twice(
    api: StandInThread, tmp_path: Path
) -> None:
    places = asyncio.Semaphore(MOST_AT_ONCE)
    with closing(HttpProcess(environment(tmp_path, OPENAI_BASE_URL=api.base_url))) as server:
        async with many_connections() as http:

            async def one(number: int) -> int | None:
                async with places:
                    if number % 10:
                        return await asked(http, server.url, number)
                    # Slow, so that it is cancelled while it runs.
                    try:
                        return await asyncio.wait_for(asked(http, server.url, number, 30.0), 0.2)
                    except TimeoutError:
                        return None

            async with asyncio.timeout(LONGEST_SECONDS):
                answers = await asyncio.gather(*map(one, range(10_000)))
                # It still serves, and nothing of the cancelled calls is left.
                assert await asked(http, server.url, 10_000) == 10_000
    assert answers == [number if number % 10 else None for number in range(10_000)]
    times = questions_at(api)
    assert set(times.values()) == {1}
    assert all(number in times for number in range(10_000) if number % 10)


async def test_a_killed_replica_takes_only_its_own_calls_along(api: StandInThread, tmp_path: Path) -> None:
    with ExitStack() as stack:
        replicas = []
        for number in range(3):
            home = tmp_path / str(number)
            home.mkdir()
            environ = environment(home, OPENAI_BASE_URL=api.base_url)
            replicas.append(stack.enter_context(closing(HttpProcess(environ))))
        async with many_connections() as http, asyncio.timeout(LONGEST_SECONDS):
            calls = [asyncio.create_task(asked(http, replicas[number % 3].url, number, 3.0)) for number in range(60)]
            research = asyncio.create_task(researched(http, replicas[1].url))
            await asyncio.to_thread(api.wait_for_requests, 61)
            replicas[1].process.kill()
            with pytest.raises(httpx2.TransportError):
                await research
            ended = await asyncio.gather(*calls, return_exceptions=True)
            for number, one in enumerate(ended):
                # A client sees that the connection is gone, not half an answer.
                assert isinstance(one, httpx2.TransportError) if number % 3 == 1 else one == number
            # The next calls go to those that are left.
            assert await asked(http, replicas[0].url, 100) == 100
            assert await asked(http, replicas[2].url, 101) == 101
        # Research of the killed one goes on at the API, and comes to its end there.
        await asyncio.to_thread(api.wait_until_nothing_runs)
    assert not [request.path for request in api.server.requests if request.path.endswith("/cancel")]
