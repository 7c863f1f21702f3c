"""Reads files that others may have written: only regular ones, of limited size, without blocking."""

import os
import stat

from openai_responses_mcp.domain.texts import Sentence

# Without O_NONBLOCK, opening a named pipe waits for a writer. Some systems lack these flags.
_READ_ONLY = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def read_bytes(path: str, *, most_bytes: int, follows_link: bool = True) -> bytes:
    """Raises OSError if the file cannot be opened, ValueError if it is not a regular file or is too large."""
    descriptor = os.open(path, _READ_ONLY if follows_link else _READ_ONLY | _NO_LINK)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise ValueError(Sentence("is a directory, not a file"))
        if not stat.S_ISREG(mode):
            raise ValueError(Sentence("is not a regular file"))
    except ValueError:
        os.close(descriptor)
        raise
    with open(descriptor, "rb") as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        size = f"{most_bytes // (1024 * 1024)} MiB" if most_bytes >= 1024 * 1024 else f"{most_bytes // 1024} KiB"
        raise ValueError(Sentence("is larger than {size}", size=size))
    return content


def read_text(path: str, *, most_bytes: int, follows_link: bool = True) -> str:
    """Like `read_bytes`, as UTF-8 text without its byte order mark; ValueError if it is not UTF-8."""
    try:
        return read_bytes(path, most_bytes=most_bytes, follows_link=follows_link).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(Sentence("is not UTF-8 text")) from None


def reason_of(exc: OSError | ValueError) -> str:
    """Why a file could not be read, as the end of a sentence that begins with its path."""
    if isinstance(exc, OSError):
        return Sentence("cannot be read ({why})", why=exc.strerror)
    return exc.args[0] if exc.args and isinstance(exc.args[0], Sentence) else str(exc)
