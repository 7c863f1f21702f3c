"""An interrupt at any moment of a start: exit code 130 and not a word on stderr."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.client import COMMAND, WAIT_SECONDS, environment

# Tells the test that a module is about to be loaded, and waits there to be interrupted.
WAITING = """
import os, sys
class Waiting:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            sys.meta_path.remove(self)
            os.write({says_so}, b"!")
            os.read({goes_on}, 1)
sys.meta_path.insert(0, Waiting())
"""


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("--ask=Why?", "openai_responses_mcp.config.loading"),
        ("--ask=Why?", "openai_responses_mcp.commands.asking"),
        ("--doctor", "openai_responses_mcp.commands.doctor.examining"),
        ("--stdio", "openai_responses_mcp.config.loading"),
        ("--stdio", "openai_responses_mcp.commands.serve"),
    ],
)
def test_an_interrupt_during_the_imports_leaves_no_traceback(tmp_path: Path, option: str, name: str) -> None:
    is_there, says_so = os.pipe()
    goes_on, never = os.pipe()
    (tmp_path / "sitecustomize.py").write_text(WAITING.format(name=name, says_so=says_so, goes_on=goes_on))
    process = subprocess.Popen(
        [*COMMAND, option],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path, PYTHONPATH=str(tmp_path)),
        pass_fds=(says_so, goes_on),
    )
    os.close(says_so)
    try:
        assert os.read(is_there, 1) == b"!", process.communicate(timeout=WAIT_SECONDS)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=WAIT_SECONDS)
    finally:
        process.kill()
        for descriptor in (is_there, goes_on, never):
            os.close(descriptor)
    assert (process.returncode, out, err) == (130, b"", b"")
