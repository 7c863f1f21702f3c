"""The recording on top of README and site: real commands, and what they leave on a real terminal.

The API is a server on loopback with an answer for each question. Two files come of it: an asciicast for players, and a
picture. Dates are replaced, so that the same program gives the same files. The speed is made up.
"""

import fcntl
import json
import os
import pty
import re
import select
import shlex
import struct
import subprocess
import sys
import termios
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from tempfile import TemporaryDirectory
from threading import Thread
from typing import IO, Any, NamedTuple

from tests.e2e.screens import Screen

CAST, PICTURE = "recording.cast", "recording.svg"
COMMANDS = (
    'openai-responses-mcp "Until when does Python 3.11 get security fixes?"',
    'openai-responses-mcp --quick "Python 3.11 のサポートはいつまで?"',
)
_SCHEDULE = ("https://peps.python.org/pep-0664/", "PEP 664 – Python 3.11 Release Schedule")
_VERSIONS = ("https://devguide.python.org/versions/", "Status of Python versions")
_ANSWERS = (
    ("until when", "Until **October 2027**. Since April 2024 there have been security fixes only.", 5480),
    ("いつまで", "**2027 年 10 月**までです。2024 年 4 月以降は、セキュリティ修正だけが提供されています。", 4127),
)
COLUMNS, _ROWS = 100, 24
LONGEST_SECONDS = 30.0
_PROMPT = "$ "
_DAY = "2026-11-16"
_DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b")
_SECONDS_A_LETTER, _SECONDS_OF_THOUGHT, _SECONDS_A_LINE, _SECONDS_TO_READ = 0.04, 0.8, 0.12, 2.5


class Event(NamedTuple):
    seconds: float
    text: str


def answers() -> list[str]:
    """What the commands print today."""
    with _api() as address:
        return [_printed(command, {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "YOUR_KEY"}) for command in COMMANDS]


@contextmanager
def _api() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Api) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join(LONGEST_SECONDS)


class _Api(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        question = self.rfile.read(int(self.headers["Content-Length"])).decode().lower()
        # The question may be escaped.
        (answer,) = (one for one in _ANSWERS if one[0] in question or json.dumps(one[0])[1:-1] in question)
        body = json.dumps(_response(answer[1], answer[2])).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def _response(text: str, tokens: int) -> dict[str, Any]:
    cited = [
        {"type": "url_citation", "url": url, "title": title, "start_index": 0, "end_index": 0}
        for url, title in (_SCHEDULE, _VERSIONS)
    ]
    search = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "x"},
    }
    part = {"type": "output_text", "text": text, "annotations": cited}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    return {
        "id": "resp_3d4e5f",
        "object": "response",
        "status": "completed",
        "model": "gpt-5.2",
        "output": [search, message],
        "usage": {"input_tokens": tokens - 160, "output_tokens": 160, "total_tokens": tokens},
    }


def transcript(printed: Sequence[str]) -> str:
    return "".join(f"{_PROMPT}{command}\n{text}" for command, text in zip(COMMANDS, printed, strict=True))


def cast(printed: Sequence[str]) -> str:
    head = {
        "version": 2,
        "width": COLUMNS,
        "height": transcript(printed).count("\n") + 1,
        "title": "openai-responses-mcp",
    }
    rows = [[round(event.seconds, 2), "o", event.text.replace("\n", "\r\n")] for event in _events(printed)]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in [head, *rows])


def _printed(command: str, environ: Mapping[str, str]) -> str:
    """What stays on the screen. In a home without files, so that it is the same everywhere."""
    with TemporaryDirectory() as home:
        return _DATE.sub(_DAY, on_terminal(command, home, COLUMNS, _ROWS, environ))


def on_terminal(command: str, home: str, columns: int, rows: int, more: Mapping[str, str] | None = None) -> str:
    """What a command of this program leaves on a terminal of this size."""
    program = [sys.executable, "-m", "openai_responses_mcp", *shlex.split(command)[1:]]
    environ = {"HOME": home, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", **(more or {})}
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    with (
        open(ours, "rb", buffering=0) as terminal,
        subprocess.Popen(program, env=environ, stdin=theirs, stdout=theirs, stderr=theirs) as process,
    ):
        os.close(theirs)
        shown = b"".join(iter(partial(_read, terminal), b""))
        assert process.wait(LONGEST_SECONDS) == 0
    screen = Screen(columns, rows)
    screen.feed(shown.decode())
    return "\n".join(screen.lines)


def _read(terminal: IO[bytes]) -> bytes:
    assert select.select([terminal], [], [], LONGEST_SECONDS)[0]
    try:
        return terminal.read(65536)
    except OSError:  # The other end is closed.
        return b""


def _events(printed: Sequence[str]) -> Iterator[Event]:
    now = 0.5
    for command, text in zip(COMMANDS, printed, strict=True):
        yield Event(now, _PROMPT)
        for letter in command:
            now += _SECONDS_A_LETTER
            yield Event(now, letter)
        now += _SECONDS_A_LETTER
        yield Event(now, "\n")
        now += _SECONDS_OF_THOUGHT
        for line in text.splitlines(keepends=True):
            now += _SECONDS_A_LINE
            yield Event(now, line)
        now += _SECONDS_TO_READ


# The picture: what stands on the terminal at the end.

_LINE_HEIGHT, _LETTER_WIDTH, _MARGIN = 20, 8.4, 16
_STYLE = """\
    text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #d7dae0; white-space: pre; }
    .typed { fill: #9ecbff; }
"""


def picture(printed: Sequence[str]) -> str:
    lines = [row for line in transcript(printed).splitlines() for row in _wrapped(line)]
    return terminal_picture(lines, COLUMNS, COMMANDS[0])


def terminal_picture(lines: Sequence[str], columns: int, title: str) -> str:
    width = round(columns * _LETTER_WIDTH) + 2 * _MARGIN
    height = len(lines) * _LINE_HEIGHT + 2 * _MARGIN
    texts = "".join(_text(number, line) for number, line in enumerate(lines) if line)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">\n'
        f"  <title>{escape(title)}</title>\n  <style>\n{_STYLE}  </style>\n"
        f'  <rect width="100%" height="100%" rx="8" fill="#1b1f27"/>\n{texts}</svg>\n'
    )


def _wrapped(text: str) -> list[str]:
    rows, row, used = [], "", 0
    for letter in text:
        width = 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if used + width > COLUMNS:
            rows.append(row)
            row, used = "", 0
        row, used = row + letter, used + width
    return [*rows, row]


def _text(number: int, line: str) -> str:
    kind = ' class="typed"' if line.startswith(_PROMPT) else ""
    place = f'x="{_MARGIN}" y="{_MARGIN + number * _LINE_HEIGHT + 14}"'
    return f"  <text {place}{kind}>{escape(line, quote=False)}</text>\n"
