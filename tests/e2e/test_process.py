"""The process and its surroundings: descriptors, signals, clients that go away or stop reading, and its end."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from tests.e2e.client import COMMAND, WAIT_SECONDS, Server, answer_in, call, environment, line, request, run
from tests.e2e.conftest import Start
from tests.stand_in.server import StandInThread

HELD = "Why? [rehearse: delay=60]"
FULL = [path for path in ("/dev/full",) if os.path.exists(path)]  # not every system has one
SIGNALS = [
    (signal.SIGTERM, 143),
    pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow),
    pytest.param(signal.SIGHUP, 129, marks=pytest.mark.slow),
]


@contextmanager
def own_pipe() -> Iterator[tuple[IO[bytes], int]]:
    """Both ends of a pipe: the one to read from, as a file, and the one to write to."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream:
        try:
            yield stream, writing
        finally:
            os.close(writing)


def wait_for_output(stdout: IO[bytes]) -> None:
    assert select.select([stdout], [], [], WAIT_SECONDS)[0]


def memory_bytes(server: Server) -> int:
    """What the process holds right now; on Linux the most it ever held."""
    status = Path(f"/proc/{server.process.pid}/status")
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) * 1024
    ps = ["ps", "-o", "rss=", "-p", str(server.process.pid)]
    return int(subprocess.run(ps, capture_output=True, check=True, timeout=WAIT_SECONDS).stdout) * 1024


def test_a_client_that_closes_stdout_ends_an_idle_server(start: Start) -> None:
    with own_pipe() as (reading, writing):
        server = start(stdout=writing)
        server.send(request(1, "ping"))
        wait_for_output(reading)
    assert server.exit_code() == 0
    assert server.stderr == ""


def test_a_client_that_closes_stdout_ends_a_server_with_a_call_in_flight(
    start: Start, rehearsal: StandInThread
) -> None:
    with own_pipe() as (_, writing):
        server = start(stdout=writing)
        server.send(call(1, HELD))
        rehearsal.wait_for_requests(1)
    assert server.exit_code() == 0
    assert server.stderr == ""
    rehearsal.wait_for_abort(1)


@pytest.mark.slow
@pytest.mark.parametrize("held", [1, 50])
def test_a_client_that_ends_the_input_and_then_goes_does_not_leave_the_server_waiting(
    start: Start, rehearsal: StandInThread, held: int
) -> None:
    with own_pipe() as (_, writing):
        server = start(stdout=writing)
        server.send(*(call(number, HELD) for number in range(held)))
        server.end_input()
        rehearsal.wait_for_requests(held)
    assert server.exit_code() == 0
    assert server.stderr == ""


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_ends_an_idle_server(server: Server, number: signal.Signals, code: int) -> None:
    server.result_of("ping")
    server.process.send_signal(number)
    assert server.exit_code() == code
    assert server.stderr == ""


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_aborts_what_is_in_flight(
    server: Server, rehearsal: StandInThread, number: signal.Signals, code: int
) -> None:
    server.send(call(1, HELD), call(2, "Why? [rehearse: status=503; retry_after=50]"))
    rehearsal.wait_for_requests(2)
    server.process.send_signal(number)
    assert server.exit_code() == code
    assert server.received == []
    assert server.stderr == ""


def test_a_signal_ends_a_server_whose_client_reads_nothing(start: Start, rehearsal: StandInThread) -> None:
    with own_pipe() as (_, writing):
        server = start(stdout=writing)
        server.send(call(1, "Why? [rehearse: size=1000000]"), call(2, HELD))
        rehearsal.wait_for_requests(2)
        server.process.send_signal(signal.SIGTERM)
        assert server.exit_code() == 143


def test_the_end_of_input_lets_calls_in_flight_finish(server: Server, rehearsal: StandInThread) -> None:
    server.send(*(call(number, f"Why? [rehearse: delay=0.{number}]") for number in range(1, 6)))
    rehearsal.wait_for_requests(5)
    assert server.finish() == 0
    assert sorted(message["id"] for message in server.received) == [1, 2, 3, 4, 5]
    assert all("result" in message for message in server.received)


def test_the_end_of_input_ends_the_waiting_for_a_retry(server: Server, rehearsal: StandInThread) -> None:
    server.send(call(1, "Why? [rehearse: status=503; retry_after=50]"))
    rehearsal.wait_for_requests(1)
    assert server.finish() == 0
    assert "The API is in trouble (HTTP 503)" in server.reply_to(1)["error"]["data"]["message"]
    assert rehearsal.server.received == 1


def test_input_from_a_file_and_output_to_a_file_are_served(rehearsal: StandInThread, tmp_path: Path) -> None:
    asked, answered = tmp_path / "asked", tmp_path / "answered"
    asked.write_bytes(line(request(1, "ping")) + line(call(2, "HTTP 404 の意味は？")))
    with asked.open("rb") as stdin, answered.open("wb") as stdout:
        environ = environment(tmp_path, OPENAI_BASE_URL=rehearsal.base_url)
        done = run(environ, "--stdio", stdin=stdin, stdout=stdout, stderr=subprocess.PIPE)
    ping, called = answered.read_bytes().splitlines()
    assert (done.returncode, done.stderr) == (0, b"")
    assert ping == b'{"jsonrpc":"2.0","id":1,"result":{}}'
    assert b'\\"used_search\\": false' in called


def test_the_null_device_is_an_input_that_has_ended(tmp_path: Path) -> None:
    done = run(environment(tmp_path), "--stdio")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("redirections", [pytest.param("<&-", marks=pytest.mark.slow), "<&- >&- 2>&-"])
def test_descriptors_that_are_closed_at_the_start_are_no_error(start: Start, redirections: str) -> None:
    server = start(shell=redirections)
    assert server.finish() == 0
    assert server.stderr == ""
    assert server.received == []


@pytest.mark.parametrize(
    "redirections", ["2>&-", *(pytest.param(f"2>{path}", marks=pytest.mark.slow) for path in FULL)]
)
def test_a_stderr_that_takes_nothing_leaves_the_wire_clean(start: Start, redirections: str) -> None:
    server = start("--debug", shell=redirections)
    assert "error" in server.ask("Why? [rehearse: status=401]")
    assert answer_in(server.ask("Why?"))["used_search"] is False
    assert server.finish() == 0
    assert [message["id"] for message in server.received] == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "redirections", "code", "error_line"),
    [
        (["--version"], ">&-", 0, ""),
        (["--ask", "Why?", "--rehearse"], ">&- 2>&-", 0, ""),
        *((["--version"], f">{path}", 1, "openai-responses-mcp: cannot write to stdout") for path in FULL),
        *((["--ask", "Why?", "--rehearse"], f">{path}", 1, "cannot write the answer") for path in FULL),
        *((["--doctor"], f">{path}", 1, "cannot write the report") for path in FULL),
    ],
)
def test_commands_end_quietly_when_their_output_cannot_be_written(
    tmp_path: Path, options: list[str], redirections: str, code: int, error_line: str
) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirections}', "sh", *COMMAND, *options],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(tmp_path),
        encoding="utf-8",
        timeout=WAIT_SECONDS,
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(error_line)
    assert len(done.stderr.splitlines()) == code


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [["--help"], ["--ask", "Why?", "--rehearse"], ["--doctor"]], ids=lambda options: options[0]
)
def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path, options: list[str]) -> None:
    with subprocess.Popen(
        [*COMMAND, *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path),
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait(WAIT_SECONDS) == 0


def test_agents_without_what_they_need_say_what_to_install(tmp_path: Path) -> None:
    program = "import sys; sys.modules['getpass'] = None; from openai_responses_mcp.cli import main; sys.exit(main(['agents']))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        env=environment(tmp_path),
        encoding="utf-8",
        timeout=WAIT_SECONDS,
    )
    assert (done.returncode, done.stderr) == (
        2,
        'openai-responses-mcp: this needs the extra "guard" (getpass is missing): pip install'
        ' "openai-responses-mcp[guard] @ git+https://github.com/uchimanajet7/openai-responses-mcp"\n',
    )


@pytest.mark.slow
def test_a_client_that_stops_reading_is_not_read_from(start: Start) -> None:
    with own_pipe() as (reading, writing):
        server = start(stdout=writing)
        assert server.process.stdin is not None
        stdin = server.process.stdin.fileno()
        os.set_blocking(stdin, False)
        listings = b"".join(line(request(number, "tools/list")) for number in range(20_000))
        taken = os.write(stdin, listings[:4096])
        wait_for_output(reading)
        # Not writable for a second: the pipe is full, and the server does not read.
        while taken < len(listings) and select.select([], [stdin], [], 1.0)[1]:
            taken += os.write(stdin, listings[taken:])
        assert taken < len(listings)
        assert memory_bytes(server) < 200 * 1024 * 1024
        server.read_from(os.fdopen(os.dup(reading.fileno()), "rb"))
        os.set_blocking(stdin, True)
        server.send_bytes(listings[taken : listings.index(b"\n", taken) + 1])
        server.end_input()
        complete = listings[: listings.index(b"\n", taken)].count(b"\n") + 1
        server.replies_to([complete - 1])
    assert server.exit_code() == 0
    assert [message["id"] for message in server.received] == list(range(complete))


def stray(library: str) -> str:
    """Stands before the library, prints in every way there is, and then is the library."""
    return f"""
import ctypes, os, subprocess, sys

print("a stray print", flush=True)
os.write(1, b"a stray write\\n")
ctypes.CDLL(None).puts(b"a stray puts")
ctypes.CDLL(None).fflush(None)
subprocess.run(["echo", "a stray child"])
sys.path.remove(os.path.dirname(__file__))
del sys.modules["{library}"]
import {library}
"""


def test_output_of_a_library_never_reaches_the_wire(start: Start, tmp_path: Path) -> None:
    (tmp_path / "backoff.py").write_text(stray("backoff"))
    server = start(PYTHONPATH=os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    assert answer_in(server.ask("Why?"))["used_search"] is False
    assert server.finish() == 0
    assert len(server.received) == 1
    assert sorted(server.stderr.splitlines()) == ["a stray child", "a stray print", "a stray puts", "a stray write"]


def test_the_debug_file_gets_the_lines_of_stderr(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "logs" / "debug.log"
    server = start(DEBUG=str(path))
    server.ask("Why? [rehearse: status=401; message=Bearer sk-another-0123456789]")
    assert server.finish() == 0
    assert path.read_text(encoding="utf-8") == server.stderr
    assert path.stat().st_mode & 0o777 == 0o600
    assert "sk-another" not in server.stderr
    for text in (
        "start",
        "recv method=tools/call id=1",
        "tools/call name=answer argsKeys=[query]",
        "send (line) bytes=",
    ):
        assert text in server.stderr
