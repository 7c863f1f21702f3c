"""What stdin has for a question. A terminal, or a socket on which nothing comes, is not waited for.

An agent or an editor that starts a command often leaves it a socket on stdin that it never writes to.
"""

import os
import select
import stat
import sys

MOST_BYTES = 1024 * 1024
SOCKET_SECONDS = 0.2
# After this long we say what we are waiting for.
PATIENCE_SECONDS = 1.0
_STDIN = 0


class InputUnusable(Exception):
    """The text is the end of a sentence that begins with what was read."""


def whole_input() -> str:
    """All that comes, waited for. Raises `InputUnusable`."""
    if sys.stdin is None:
        return ""
    if sys.stdin.isatty():
        sys.stderr.write("Type the question, then Ctrl-D (Ctrl-Z and Enter on Windows).\n")
        sys.stderr.flush()
    return _read()


def maybe_material() -> str:
    """The text of a pipe or a file; empty when there is none. Raises `InputUnusable`."""
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    try:
        is_socket = stat.S_ISSOCK(os.fstat(_STDIN).st_mode)
    except OSError:
        return ""
    if is_socket and not select.select([_STDIN], [], [], SOCKET_SECONDS)[0]:
        return ""
    if sys.stderr.isatty() and os.name != "nt" and not select.select([_STDIN], [], [], PATIENCE_SECONDS)[0]:
        sys.stderr.write("Reading stdin to its end; it is material to the question (< /dev/null gives none).\n")
        sys.stderr.flush()
    text = _read().strip("\n")
    return text if text.strip() else ""


def _read() -> str:
    data = bytearray()
    while len(data) <= MOST_BYTES and (chunk := _chunk()):
        data += chunk
    if len(data) > MOST_BYTES:
        raise InputUnusable(f"has more than {MOST_BYTES // 1024} KiB: give less of it")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise InputUnusable("is not UTF-8 text") from None


def _chunk() -> bytes:
    try:
        return os.read(_STDIN, MOST_BYTES)
    except OSError as exc:
        raise InputUnusable(f"cannot be read ({exc.strerror})") from exc
