"""`--doctor`: one line for each thing that has to be right, on stdout; what is not says what to do about it.

Nothing is changed and nothing is billed: the API looks models up and counts tokens, and client files are only read.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence

from openai_responses_mcp.adapters.bounded_file import read_text, reason_of
from openai_responses_mcp.commands.doctor.api_checks import NOT_SET_UP, Line, api_lines, ask_api, write
from openai_responses_mcp.commands.doctor.client_setups import (
    CLIENTS,
    Client,
    CommandFinder,
    Finding,
    examine_file,
    files_of,
    home_of,
)
from openai_responses_mcp.commands.doctor.recommending import maybe_how_to_add, own_command
from openai_responses_mcp.config.loading import Configuration
from openai_responses_mcp.start import Basis, basis_of

LONGEST_WAIT_SECONDS = 10.0
MAX_CLIENT_FILE_BYTES = 8 * 1024 * 1024


def examine(
    configuration: Configuration,
    environ: Mapping[str, str],
    problems: Sequence[str] = (),
    *,
    longest_wait_seconds: float = LONGEST_WAIT_SECONDS,
) -> int:
    """The exit code: 1 when a line says FAIL, or cannot be written.

    `problems` are those of the configuration, which is what is left without them.
    """
    basis = basis_of(configuration, environ)
    try:
        levels = {_report(line, basis) for line in _lines(basis, environ, problems, longest_wait_seconds)}
    except _CannotWrite as exc:
        sys.stderr.write(f"cannot write the report ({exc})\n")
        return 1
    finally:
        basis.logger.close()
    return 1 if "FAIL" in levels else 0


class _CannotWrite(Exception):
    """Nobody reads the report, or its disk is full."""


def _report(line: Line, basis: Basis) -> str:
    # Our own snippets are not masked: to the mask, the place for a key looks like a key.
    shown = line if line.level == NOT_SET_UP else line._replace(detail=basis.mask(line.detail))
    try:
        write(shown)
    except BrokenPipeError:
        raise
    except OSError as exc:
        raise _CannotWrite(exc.strerror) from exc
    return line.level


def _lines(
    basis: Basis, environ: Mapping[str, str], problems: Sequence[str], longest_wait_seconds: float
) -> Iterator[Line]:
    settings = basis.configuration.settings
    for problem in problems:
        yield Line("FAIL", "configuration", problem)
    yield _configuration_line(basis.configuration, is_broken=bool(problems))
    yield from api_lines(settings, asyncio.run(ask_api(basis, longest_wait_seconds)))
    if settings.server.debug_file is not None:
        yield _debug_file_line(settings.server.debug_file)
    for client in CLIENTS:
        yield _client_line(client, environ, settings.openai.api_key_env)


def _configuration_line(configuration: Configuration, *, is_broken: bool) -> Line:
    sources = configuration.sources
    if is_broken:
        return Line("warn", "configuration", "what follows was checked without what is wrong in it")
    parts = [sources.yaml or "defaults, no file"]
    if sources.env:
        parts.append(f"variables {', '.join(sources.env)}")
    if sources.cli:
        parts.append(f"flags {', '.join(sources.cli)}")
    return Line(
        "warn" if configuration.warnings else "ok", "configuration", "; ".join([*parts, *configuration.warnings])
    )


# Files


def _debug_file_line(path: str) -> Line:
    if _is_writable(path):
        return Line("ok", "debug file", path)
    return Line(
        "FAIL", "debug file", f"{path} cannot be written: choose another with --debug, DEBUG or server.debug_file"
    )


def _is_writable(path: str) -> bool:
    """Found out without making anything: folders that are missing will be made with the file."""
    if os.path.exists(path):
        return not os.path.isdir(path) and os.access(path, os.W_OK)
    folder = os.path.dirname(os.path.join(_working_folder(), path))
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


def _client_line(client: Client, environ: Mapping[str, str], key_variable: str) -> Line:
    files = files_of(client, environ, _working_folder())
    findings = [finding for path in files for finding in _examine(client, path, environ, key_variable)]
    if not findings:
        path = next((file for file in files if not file.startswith(_working_folder())), files[0])
        how = maybe_how_to_add(client, path, key_variable, own_command(), _finder(environ), home_of(environ))
        return Line(NOT_SET_UP, client.name, "not found on this machine" if how is None else f"not set up; {how}")
    levels = {finding.level for finding in findings}
    worst = next(level for level in ("FAIL", "warn", "ok") if level in levels)
    # What is right is only shown if nothing is wrong.
    return Line(worst, client.name, "; ".join(text for level, text in findings if worst == "ok" or level != "ok"))


def _examine(client: Client, path: str, environ: Mapping[str, str], key_variable: str) -> list[Finding]:
    try:
        text = read_text(path, most_bytes=MAX_CLIENT_FILE_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError) as exc:
        return [Finding("warn", f"{path} {reason_of(exc)}")]
    is_key_set = bool(environ.get(key_variable, "").strip())
    return examine_file(client, path, text, key_variable, _finder(environ), is_key_set=is_key_set)


def _finder(environ: Mapping[str, str]) -> CommandFinder:
    return lambda name: shutil.which(name, path=environ.get("PATH"))


def _working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # It was deleted meanwhile.
        return os.curdir
