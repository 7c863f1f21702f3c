import signal
import subprocess
import sys

import httpx2
import pytest


def start(*options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "openai_responses_mcp.rehearsal", *options]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_process_tells_its_address_and_serves_until_stdin_ends() -> None:
    with start("--delay-ms", "1") as process:
        assert process.stdout is not None
        base_url = process.stdout.readline().strip()
        headers = {"authorization": "Bearer made-up"}
        body = {"model": "gpt-5", "input": "Hello"}
        reply = httpx2.post(base_url + "/responses", json=body, headers=headers, trust_env=False, timeout=5)
        assert reply.json()["status"] == "completed"
        assert process.communicate("bye", timeout=5) == ("", "")
    assert process.returncode == 0


def test_a_process_without_stdin_ends_at_once() -> None:
    command = ["sh", "-c", 'exec "$0" -m openai_responses_mcp.rehearsal <&-', sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    assert done.stdout.startswith("http://127.0.0.1:")
    assert done.stderr == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_in_peace(number: signal.Signals) -> None:
    with start() as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        process.send_signal(number)
        assert process.wait(5) == 0
        assert process.communicate(timeout=5) == ("", "")
