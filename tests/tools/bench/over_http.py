"""The server over HTTP beside itself over stdio, and beside a peer over HTTP that asks the API the same.

    python -m tests.tools.bench.over_http [--rounds N]

Each round starts every server again, in random order: calls one after the other, 200 and 1,000 at once of half a second each, and
the memory after that. Over HTTP every call at once has a connection of its own, as from so many callers. All are asked in the
revision 2026-07-28, which needs no session, and by the same client.
"""

import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from tests.e2e.http_process import call, routed
from tests.tools.bench.alone import Found, main
from tests.tools.bench.conversation import Conversation
from tests.tools.bench.figures import percentile
from tests.tools.bench.measures import BURST_DELAY_SECONDS, resident_mib
from tests.tools.bench.servers import environment
from tests.tools.bench.stand_in import SIGN, question
from tests.tools.bench.tables import HTTP, PEER, STDIO, over_http
from tests.tools.talking import stand_in

WARM_CALLS = 100
BURSTS = (200, 1000)
_WAIT_SECONDS = 60.0

Samples = dict[str, float]


def _over_stdio(environ: dict[str, str]) -> Samples:
    with Conversation([sys.executable, "-m", "openai_responses_mcp", "--stdio"], environ) as talk:
        talk.initialize()
        talk.list_tools()
        slow, quick = ({"query": question(delay_seconds=seconds)} for seconds in (BURST_DELAY_SECONDS, 0.0))
        for _ in range(5):
            talk.call("answer", quick)
        times = []
        for _ in range(WARM_CALLS):
            began = time.perf_counter()
            times.append((talk.call("answer", quick) - began) * 1000)
        samples = {"warm": percentile(times, 0.5)}
        for count in BURSTS:
            began = time.perf_counter()
            moments = talk.call_at_once(count, "answer", slow, within_seconds=_WAIT_SECONDS)
            if len(moments) != count:
                raise SystemExit(f"{count - len(moments)} calls over stdio were not answered")
            samples[f"burst_{count}"] = (max(moments) - began) * 1000
        return {**samples, "memory": resident_mib(talk.pid)}


async def _over_http(command: list[str], environ: dict[str, str], port: int) -> Samples:
    url = f"http://127.0.0.1:{port}/mcp"
    with _running(command, environ) as pid:
        async with httpx2.AsyncClient(timeout=_WAIT_SECONDS, trust_env=False) as http:
            await _until_it_serves(http, url)
            for _ in range(5):
                await _call_ms(http, url)
            samples = {"warm": percentile([await _call_ms(http, url) for _ in range(WARM_CALLS)], 0.5)}
            for count in BURSTS:
                began = time.perf_counter()
                await asyncio.gather(*(_call_alone(port) for _ in range(count)))
                samples[f"burst_{count}"] = (time.perf_counter() - began) * 1000
        return {**samples, "memory": resident_mib(pid)}


@contextmanager
def _running(command: list[str], environ: dict[str, str]) -> Iterator[int]:
    process = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait(_WAIT_SECONDS)


async def _until_it_serves(http: httpx2.AsyncClient, url: str) -> None:
    async with asyncio.timeout(_WAIT_SECONDS):
        while True:
            try:
                await _call_ms(http, url)
            except httpx2.ConnectError:
                await asyncio.sleep(0.05)
            else:
                return


async def _call_ms(http: httpx2.AsyncClient, url: str) -> float:
    message = call(1, question(delay_seconds=0.0))
    began = time.perf_counter()
    reply = await http.post(url, json=message, headers=routed(message))
    took = (time.perf_counter() - began) * 1000
    if SIGN not in reply.content:
        raise SystemExit(f"a call failed: {reply.status_code} {reply.text[:300]}")
    return took


async def _call_alone(port: int) -> None:
    """On a connection of its own, without a library: a thousand at once would measure the client."""
    message = call(1, question(delay_seconds=BURST_DELAY_SECONDS))
    body = json.dumps(message).encode()
    headers = {**routed(message), "host": f"127.0.0.1:{port}", "content-length": str(len(body)), "connection": "close"}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    async with asyncio.timeout(_WAIT_SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body)
        reply = await reader.read()
        writer.close()
    if SIGN not in reply:
        raise SystemExit(f"a call failed: {reply[:300].decode(errors='replace')}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _turn(way: str, environ: dict[str, str]) -> Samples:
    if way == STDIO:
        return _over_stdio(environ)
    port = _free_port()
    ours = [sys.executable, "-m", "openai_responses_mcp", "--http", str(port)]
    peer = [sys.executable, "-m", "tests.tools.bench.http_peer", str(port)]
    return asyncio.run(_over_http(ours if way == HTTP else peer, environ, port))


def measured(rounds: int, folder: Path) -> Found:
    samples: dict[str, dict[str, list[float]]] = {way: {} for way in (STDIO, HTTP, PEER)}
    with stand_in("tests.tools.bench.stand_in") as base_url:
        environ = environment(str(folder), base_url)
        for _ in range(rounds):
            for way in random.sample(list(samples), len(samples)):
                for measure, value in _turn(way, environ).items():
                    samples[way].setdefault(measure, []).append(value)
    return {"rounds": rounds, "load": round(os.getloadavg()[0], 1), "samples": samples}


if __name__ == "__main__":
    main("over_http", "rounds", 10, measured, over_http)
