"""One turn of one server, and of the floors: what a user waits for, what it costs meanwhile, and how that grows.

A turn starts the server for clients that ask at once, and once more for a client that idles for two seconds, asks once,
waits until the server is quiet, and then keeps asking. All times are in milliseconds, memory in MiB; a name here is a name in the results.
"""

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from tests.tools.bench.conversation import Conversation
from tests.tools.bench.figures import percentile
from tests.tools.bench.servers import Server
from tests.tools.bench.stand_in import SIGN, question
from tests.tools.talking import Broken

STARTS = 2
IDLE_SECONDS = 2.0
WARM_CALLS = 200
BURSTS = (200, 1000)
BURST_DELAY_SECONDS = 0.5
_FLOOR_SECONDS = 30.0
_QUIET_SECONDS, _QUIET_MS, _QUIET_AFTER_AT_MOST_SECONDS = 0.5, 5.0, 30.0
IN_FLIGHT = (1, 3, 10, 30, 100, 300, 1000)
SIZES_KB = (1, 4, 16, 64, 256, 512)
_CALLS_PER_SIZE = 5

Samples = dict[str, float]
Points = dict[str, dict[int, float]]


def take_turn(
    server: Server,
    environ: Mapping[str, str],
    say: Callable[[str], None],
    skip_bursts: bool,
) -> Samples:
    say("start")
    samples = medians([start_up(server, environ) for _ in range(STARTS)])
    with _started(server, environ) as talk:
        say("idle")
        time.sleep(IDLE_SECONDS)
        samples["memory_start"] = resident_mib(talk.pid)
        samples["first_call_idle"] = call_ms(server, talk)
        say("until it is quiet")
        samples["cpu_until_quiet"] = cpu_ms_when_quiet(talk.pid)
        say("warm")
        samples |= _warm(server, talk)
        for count in BURSTS:
            if skip_bursts or is_one_by_one(samples):
                break  # More of them would only take longer.
            say(f"{count} at once")
            samples |= _burst(server, talk, count)
    return samples


def medians(several: list[Samples]) -> Samples:
    return {key: median(samples[key] for samples in several) for key in several[0]}


def is_one_by_one(samples: Samples) -> bool:
    """Whether the server answers calls one after another: then most of 200 at once come too late."""
    return samples.get("burst_200_lost", 0) > 100


def start_up(server: Server, environ: Mapping[str, str]) -> Samples:
    samples = {}
    with Conversation(server.command_line(server.command), environ) as talk:
        samples["initialize"] = _ms(talk.started, talk.initialize())
        samples["tools_list"] = _ms(talk.started, talk.list_tools())
        samples["first_call"] = _ms(talk.started, talk.call(server.tool, {server.argument: question()}))
    if server.module_command:
        with Conversation(server.command_line(server.module_command), environ) as talk:
            samples["initialize_module"] = _ms(talk.started, talk.initialize())
    return samples


def _started(server: Server, environ: Mapping[str, str]) -> Conversation:
    talk = Conversation(server.command_line(server.command), environ)
    try:
        talk.initialize()
        talk.list_tools()
    except Broken:
        talk.__exit__(None, None, None)
        raise
    return talk


def warmed_up(server: Server, environ: Mapping[str, str]) -> Conversation:
    """A process after its first calls."""
    talk = _started(server, environ)
    for _ in range(5):
        call_ms(server, talk)
    cpu_ms_when_quiet(talk.pid)
    return talk


def call_ms(server: Server, talk: Conversation, size_bytes: int = 0) -> float:
    arguments = {server.argument: question(size_bytes=size_bytes)}
    began = time.perf_counter()
    return _ms(began, talk.call(server.tool, arguments))


def _warm(server: Server, talk: Conversation) -> Samples:
    cpu_before = cpu_ms(talk.pid)
    latencies = [call_ms(server, talk) for _ in range(WARM_CALLS)]
    return {
        "cpu_per_call": (cpu_ms(talk.pid) - cpu_before) / WARM_CALLS,
        "memory_200_calls": resident_mib(talk.pid),
        "warm_p50": percentile(latencies, 0.5),
        "warm_p95": percentile(latencies, 0.95),
    }


def _burst(server: Server, talk: Conversation, count: int) -> Samples:
    """The time until the last reply; without it when some did not come."""
    milliseconds, lost = burst_ms(server, talk, count)
    samples: Samples = {f"burst_{count}_lost": lost}
    if not lost:
        samples[f"burst_{count}"] = milliseconds
    return samples


def burst_ms(server: Server, talk: Conversation, count: int) -> tuple[float, int]:
    """The time until the last reply, and how many did not come in time, which is 3 s and 20 ms for each."""
    arguments = {server.argument: question(delay_seconds=BURST_DELAY_SECONDS)}
    began = time.perf_counter()
    moments = talk.call_at_once(count, server.tool, arguments, within_seconds=3 + count / 50)
    return _ms(began, max(moments, default=began)), count - len(moments)


def take_growth_turn(server: Server, environ: Mapping[str, str]) -> Points:
    """By curve, then by how many or how large; a curve ends where a server no longer answers in time."""
    points: Points = {"flight_ms": {}, "flight_mib": {}, "size_ms": {}, "size_mib": {}}
    with warmed_up(server, environ) as talk:
        for size_kb in SIZES_KB:
            points["size_ms"][size_kb], points["size_mib"][size_kb] = _one_size(server, talk, size_kb)
    with warmed_up(server, environ) as talk:
        for count in IN_FLIGHT:
            forget_peak(talk.pid)
            milliseconds, lost = burst_ms(server, talk, count)
            if lost:
                break
            points["flight_ms"][count] = milliseconds - BURST_DELAY_SECONDS * 1000
            points["flight_mib"][count] = resident_mib(talk.pid, "VmHWM")
    return points


def _one_size(server: Server, talk: Conversation, size_kb: int) -> tuple[float, float]:
    forget_peak(talk.pid)
    milliseconds = median(call_ms(server, talk, size_kb * 1000) for _ in range(_CALLS_PER_SIZE))
    return milliseconds, resident_mib(talk.pid, "VmHWM")


def floors(python: Path, environ: Mapping[str, str], base_url: str) -> dict[str, Samples]:
    """What no server can be faster than: its interpreter, and the request itself. `python` is this project's."""
    commands = {
        "python -c pass": [str(python), "-c", "pass"],
        "python -c 'import asyncio'": [str(python), "-c", "import asyncio"],
        "node -e 0": [shutil.which("node") or "", "-e", "0"],
    }
    samples = {name: {"run": _run_ms(command, environ)} for name, command in commands.items() if command[0]}
    return {**samples, "bare HTTP request": bare_request(base_url)}


def _run_ms(command: list[str], environ: Mapping[str, str]) -> float:
    began = time.perf_counter()
    # The output is read to its end, which the end of the process brings: waiting for the process itself with a time-out
    # means looking for it at growing intervals, up to 50 ms.
    subprocess.run(
        command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=_FLOOR_SECONDS, check=True
    )
    return _ms(began, time.perf_counter())


def bare_request(base_url: str) -> Samples:
    """One kept connection, no client library: bytes out, bytes in."""
    address = urlsplit(base_url)
    body = json.dumps({"model": "o3", "input": question()}).encode()
    head = f"POST {address.path}/responses HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: {len(body)}\r\n\r\n"
    request = head.encode() + body
    with socket.create_connection((address.hostname or "", address.port or 80), timeout=_FLOOR_SECONDS) as connection:
        latencies = [_exchange_ms(connection, request) for _ in range(WARM_CALLS)]
    return {"warm_p50": percentile(latencies, 0.5), "warm_p95": percentile(latencies, 0.95)}


def _exchange_ms(connection: socket.socket, request: bytes) -> float:
    began = time.perf_counter()
    connection.sendall(request)
    reply = b""
    while not _is_whole(reply):
        data = connection.recv(65536)
        if not data:
            raise Broken("the stand-in ended")
        reply += data
    moment = time.perf_counter()
    if SIGN not in reply:
        raise Broken("the stand-in did not answer")
    return _ms(began, moment)


def _is_whole(reply: bytes) -> bool:
    head, gap, body = reply.partition(b"\r\n\r\n")
    length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    return bool(gap) and len(body) >= int(length)


def cpu_ms(pid: int) -> float:
    """Of the whole process, ended threads included; this is how Linux numbers the clock of another process."""
    return time.clock_gettime((~pid << 3) | 2) * 1000


def cpu_ms_when_quiet(pid: int) -> float:
    """What it has used since its start, once it uses next to nothing: what it loads in the background is loaded then."""
    deadline = time.perf_counter() + _QUIET_AFTER_AT_MOST_SECONDS
    before = cpu_ms(pid)
    while time.perf_counter() < deadline:
        time.sleep(_QUIET_SECONDS)
        now = cpu_ms(pid)
        if now - before < _QUIET_MS:
            return now
        before = now
    raise Broken("it stays busy")


def resident_mib(pid: int, field: str = "VmRSS") -> float:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) / 1024


def forget_peak(pid: int) -> None:
    """Reset the peak (VmHWM)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def _ms(began: float, ended: float) -> float:
    return (ended - began) * 1000
