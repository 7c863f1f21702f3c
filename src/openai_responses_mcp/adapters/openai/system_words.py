"""Why a connection failed, in words for a person: what the system says, without what Python and aiohttp put around it."""

import os
import socket
import ssl

import aiohttp


def words_of(exc: Exception) -> str:
    if isinstance(exc, aiohttp.ClientConnectorError):
        return f"{exc.host}:{exc.port}: {_said_by_system(exc.os_error)}"
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
