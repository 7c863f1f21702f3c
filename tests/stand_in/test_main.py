import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

ROOT = Path(__file__).parents[2]


def start(*options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.stand_in", *options]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=ROOT)


def test_the_process_tells_its_address_and_serves_until_stdin_ends() -> None:
    with start("--delay-ms", "1") as process:
        assert process.stdout is not None
        base_url = process.stdout.readline().strip()
        headers = {"authorization": "Bearer made-up"}
        body = {"model": "gpt-5", "input": "Hello"}
        reply = httpx2.post(base_url + "/responses", json=body, headers=headers, trust_env=False, timeout=30)
        assert reply.json()["status"] == "completed"
        assert process.communicate("bye", timeout=30) == ("", "")
    assert process.returncode == 0


def test_a_process_without_stdin_ends_at_once() -> None:
    command = ["sh", "-c", 'exec "$0" -m tests.stand_in <&-', sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True, cwd=ROOT)
    assert done.stdout.startswith("http://127.0.0.1:")
    assert done.stderr == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_in_peace(number: signal.Signals) -> None:
    with start() as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        process.send_signal(number)
        assert process.wait(30) == 0
        assert process.communicate(timeout=30) == ("", "")
