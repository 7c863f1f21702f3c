"""The three examples at the beginning of docs/agents.md print what the page says."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def in_a_terminal(script: str, folder: Path, typed: bytes) -> str:
    """What a person sees who types this once they are asked."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, script], cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    try:
        while process.poll() is None or b"\n" not in seen:
            part = os.read(ours, 4096)
            if b"?]" in part:
                os.write(ours, typed)
            seen += part
            if not part or b"deleted" in seen:
                break
        assert process.wait(30) == 0
    finally:
        process.kill()
        os.close(ours)
    return seen.decode().replace("\r\n", "\n").strip()


@pytest.mark.slow
def test_the_three_examples_print_what_the_page_says(tmp_path: Path) -> None:
    helper, *examples = blocks("py")
    here, elsewhere, resumed = [text.strip() for text in blocks("text")[:3]]
    (tmp_path / "helper.py").write_text(helper)
    for name, text in zip(("here", "elsewhere", "resumed"), examples, strict=True):
        (tmp_path / f"{name}.py").write_text(text)
    assert in_a_terminal("here.py", tmp_path, b"y\n") == here
    for name, printed in (("elsewhere", elsewhere), ("resumed", resumed)):
        command = [sys.executable, f"{name}.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True)
        assert done.stdout.strip() == printed
