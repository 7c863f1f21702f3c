"""A system that has little to give: every request is answered once all the same."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.e2e.client import COMMAND, WAIT_SECONDS, call, environment, line, request

pytestmark = pytest.mark.slow

CALLS = 300

# Imports that fail from the start, as they do once no file can be opened any more.
WITHOUT_MODULES = """
import sys
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {names!r}:
            raise OSError(24, "Too many open files")
sys.meta_path.insert(0, Gone())
"""


def run(environ: dict[str, str], calls: int = CALLS, limits: str = "") -> "subprocess.CompletedProcess[bytes]":
    """One write with `calls` calls and a ping, to a server that asks the built-in stand-in."""
    messages = [call(number, "Why?", "answer_quick") for number in range(1, calls + 1)]
    command = ["sh", "-c", f'{limits}\nexec "$@"', "sh", *COMMAND, "--stdio", "--rehearse"]
    data = b"".join(map(line, [*messages, request("ping", "ping")]))
    return subprocess.run(command, input=data, capture_output=True, env=environ, timeout=WAIT_SECONDS, check=False)


def replies_in(done: "subprocess.CompletedProcess[bytes]") -> dict[int | str, dict[str, object]]:
    replies = [json.loads(reply) for reply in done.stdout.splitlines()]
    by_id = {reply["id"]: reply for reply in replies}
    assert len(by_id) == len(replies)
    return by_id


@pytest.mark.parametrize("descriptors", [12, 64, 256])
def test_few_descriptors_and_many_calls(tmp_path: Path, descriptors: int) -> None:
    done = run(environment(tmp_path), limits=f"ulimit -n {descriptors}")
    replies = replies_in(done)
    assert (done.returncode, len(replies)) == (0, CALLS + 1)
    assert b"Traceback" not in done.stderr
    assert (b"at least 32 are needed" in done.stderr) == (descriptors < 32)
    if descriptors >= 32:
        assert all("result" in reply for reply in replies.values())
        assert done.stderr == b""


def test_no_time_zone_database(tmp_path: Path) -> None:
    done = run(environment(tmp_path, PYTHONTZPATH=""), calls=3)
    assert all("result" in reply for reply in replies_in(done).values())
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("names", [("dependency_injector",), ("openai", "structlog")])
def test_imports_that_fail(tmp_path: Path, names: tuple[str, ...]) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_MODULES.format(names=names))
    done = run(environment(tmp_path, PYTHONPATH=str(tmp_path)), calls=5)
    replies = replies_in(done)
    assert (done.returncode, len(replies)) == (0, 6)
    assert replies["ping"]["result"] == {}
    assert all(reply["error"]["code"] == -32603 for number, reply in replies.items() if number != "ping")  # type: ignore[index]
    assert b"Too many open files" in done.stderr or b"OSError" in done.stderr
    assert not done.stderr.startswith(b"Traceback")


def test_too_little_memory_is_said_at_the_start(tmp_path: Path) -> None:
    done = run(environment(tmp_path), calls=0, limits="ulimit -v 400000")
    assert replies_in(done)["ping"]["result"] == {}
    assert b"at least 512 MiB are needed" in done.stderr
