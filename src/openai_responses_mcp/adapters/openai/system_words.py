"""Why a connection failed or a reply could not be read, in words for a person, without those of Python and aiohttp."""

import json
import os
import socket
import ssl

import aiohttp

from openai_responses_mcp.domain.strict_json import why_unreadable


def words_of(exc: Exception) -> str:
    if isinstance(exc, aiohttp.ClientConnectorError):
        return f"{exc.host}:{exc.port}: {_said_by_system(exc.os_error)}"
    if isinstance(exc, json.JSONDecodeError):
        return f"not JSON at character {exc.pos}"
    if isinstance(exc, UnicodeDecodeError | RecursionError):
        return why_unreadable(exc)
    return _said_by_system(exc) if isinstance(exc, OSError) else str(exc)


def _said_by_system(exc: OSError) -> str:
    if isinstance(exc, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {exc.verify_message}"
    if isinstance(exc, ssl.SSLError):
        reason: str | None = getattr(exc, "reason", None)
        return f"SSL: {reason.replace('_', ' ').lower()}" if reason else str(exc)
    # The number says why; the text may only say what was tried. Names and Windows have numbers of their own.
    if exc.errno and os.name == "posix" and not isinstance(exc, socket.gaierror):
        return os.strerror(exc.errno)
    return exc.strerror or str(exc)
