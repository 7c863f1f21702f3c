"""The command line as a person sees it: in a process of its own, on a pseudo-terminal."""

import os
import pty
import subprocess
import sys


def on_a_terminal(arguments: list[str], columns: int = 200) -> str:
    ours, theirs = pty.openpty()
    code = f"from openai_responses_mcp.desk.terminal.command_line import main; raise SystemExit(main({arguments!r}))"
    environ = {**os.environ, "COLUMNS": str(columns), "NO_COLOR": "1", "LANG": "C.UTF-8", "PYTHONIOENCODING": "utf-8"}
    shown = b""
    with subprocess.Popen([sys.executable, "-c", code], stdout=theirs, stdin=theirs, env=environ) as process:
        os.close(theirs)
        while chunk := _read(ours):
            shown += chunk
        process.wait(30)
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 100_000)
    except OSError:  # the other side has closed its end
        return b""
