"""The command line as a person sees it: in a process of its own, on a pseudo-terminal."""

import os
import pty
import subprocess
import sys

from tests.agents.fakes import WAIT_SECONDS


def on_a_terminal(arguments: list[str], columns: int = 200) -> str:
    ours, theirs = pty.openpty()
    code = f"from openai_responses_mcp.desk.terminal.command_line import main; raise SystemExit(main({arguments!r}))"
    environ = {**os.environ, "COLUMNS": str(columns), "NO_COLOR": "1", "LANG": "C.UTF-8"}
    with subprocess.Popen([sys.executable, "-c", code], stdout=theirs, stdin=theirs, env=environ) as process:
        os.close(theirs)
        process.wait(WAIT_SECONDS * 2)
        shown = os.read(ours, 100_000).decode()
    os.close(ours)
    return shown.replace("\r\n", "\n")
