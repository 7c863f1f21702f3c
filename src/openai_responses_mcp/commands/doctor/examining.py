"""`--doctor`: one line for each check on stdout. A line about a problem says what to do.

Nothing is changed and nothing is billed: the API looks models up and counts tokens, client files are only read, and our
own entries in them are started, asked for their tools, and ended.
"""

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from openai_responses_mcp.adapters.bounded_file import read_text, reason_of
from openai_responses_mcp.adapters.stdio.probing import ProbeFailed, look_at
from openai_responses_mcp.commands.doctor.api_checks import api_lines, ask_api
from openai_responses_mcp.commands.doctor.clients import (
    CLIENTS,
    Client,
    CommandFinder,
    files_of,
    home_of,
    maybe_how_to_add,
    own_command,
    own_files_of,
)
from openai_responses_mcp.commands.doctor.entries import Entry, SetupFinding, examine_file
from openai_responses_mcp.commands.doctor.report import NOT_SET_UP, CannotReport, Line, Report
from openai_responses_mcp.commands.init import maybe_days_apart
from openai_responses_mcp.commands.words import speaking
from openai_responses_mcp.config.loading import Configuration, default_paths
from openai_responses_mcp.domain.masking import MASK
from openai_responses_mcp.domain.texts import Sentence, about, linked
from openai_responses_mcp.start import Basis, basis_of

LONGEST_WAIT_SECONDS = 10.0
# As long as the most patient clients wait for a server to start: uvx may have to download it first.
LONGEST_START_SECONDS = 30.0
MAX_CLIENT_FILE_BYTES = 8 * 1024 * 1024
_CONFIGURATION = Sentence("configuration")


def examine(
    configuration: Configuration,
    environ: Mapping[str, str],
    problems: Sequence[str] = (),
    guarded_lines: Callable[[str], Iterable[Line]] = lambda folder: (),
    *,
    longest_wait_seconds: float = LONGEST_WAIT_SECONDS,
    longest_start_seconds: float = LONGEST_START_SECONDS,
) -> int:
    """The exit code: 1 when a line says FAIL, or cannot be written.

    `problems` are those found in the configuration file. `guarded_lines` gives the guard's lines about its own
    entries, for the working folder.
    """
    basis = basis_of(configuration, environ)
    report = Report(basis.mask, environ)
    try:
        for line in _lines(basis, environ, problems, longest_wait_seconds):
            report.add(line)
        for line in asyncio.run(_client_lines(basis, environ, longest_start_seconds)):
            report.add(line)
        for line in guarded_lines(_working_folder()):
            report.add(line)
        return report.end()
    except CannotReport as exc:
        sys.stderr.write(f"{speaking(environ)(Sentence('cannot write the report ({why})', why=exc))}\n")
        return 1
    finally:
        basis.logger.close()


def _lines(
    basis: Basis, environ: Mapping[str, str], problems: Sequence[str], longest_wait_seconds: float
) -> Iterator[Line]:
    settings = basis.configuration.settings
    for problem in problems:
        yield Line("FAIL", _CONFIGURATION, problem)
    yield _configuration_line(basis.configuration, is_broken=bool(problems))
    yield from api_lines(settings, asyncio.run(ask_api(basis, longest_wait_seconds)))
    file = settings.server.debug_file
    if file is not None:
        says = "{file} cannot be written: choose another with --debug, DEBUG or server.debug_file"
        level, detail = ("ok", file) if _is_writable(file) else ("FAIL", Sentence(says, file=file))
        yield Line(level, Sentence("debug file"), detail)
    path = basis.configuration.sources.yaml or default_paths(environ)[0]
    if settings.search.user_location is None:
        text = Sentence(
            "the API searches as if from the United States; set search.user_location in {file} (--init writes one)",
            file=path,
        )
        yield Line(NOT_SET_UP, Sentence("place of searches"), text)
    apart = maybe_days_apart(settings.search.timezone, environ)
    if apart is not None:
        change = Sentence("{apart} To change it, set search.timezone in {file}", apart=apart.text, file=path)
        yield Line("warn" if apart.is_now else "ok", Sentence("today"), change)


def _configuration_line(configuration: Configuration, *, is_broken: bool) -> Line:
    sources = configuration.sources
    if is_broken:
        return Line("warn", _CONFIGURATION, Sentence("the checks below ignore the invalid settings"))
    parts = [sources.yaml or Sentence("defaults, no file")]
    if sources.env:
        parts.append(Sentence("variables {names}", names=", ".join(sources.env)))
    if sources.cli:
        parts.append(Sentence("flags {names}", names=", ".join(sources.cli)))
    return Line(
        "warn" if configuration.warnings else "ok",
        _CONFIGURATION,
        linked("{first}; {second}", [*parts, *configuration.warnings]),
    )


# Files


def _is_writable(path: str) -> bool:
    """Checks without creating anything. Missing folders are created with the file later."""
    if os.path.exists(path):
        return not os.path.isdir(path) and os.access(path, os.W_OK)
    folder = os.path.dirname(os.path.join(_working_folder(), path))
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


# Clients


async def _client_lines(basis: Basis, environ: Mapping[str, str], longest_start_seconds: float) -> list[Line]:
    """All our entries start at the same time."""
    key_variable = basis.configuration.settings.openai.api_key_env
    examining = (_findings(client, environ, key_variable, longest_start_seconds) for client in CLIENTS)
    found = zip(CLIENTS, await asyncio.gather(*examining), strict=True)
    return [line for client, findings in found for line in _lines_of(client, findings, environ, key_variable)]


async def _findings(
    client: Client, environ: Mapping[str, str], key_variable: str, longest_start_seconds: float
) -> list[SetupFinding]:
    own_files, findings = own_files_of(client, environ), list[SetupFinding]()
    for path in files_of(client, environ, _working_folder()):
        is_own = path in own_files
        found = _examine(client, path, environ, key_variable, is_shared=not is_own)
        # An entry in a project's file may come from others, and is not started.
        starting = (_started(one, client, environ, longest_start_seconds) for one in found)
        findings += await asyncio.gather(*starting) if is_own else found
    return findings


def _lines_of(
    client: Client, findings: Sequence[SetupFinding], environ: Mapping[str, str], key_variable: str
) -> Iterator[Line]:
    if findings:
        levels = {finding.level for finding in findings}
        worst = next(level for level in ("FAIL", "warn", "ok") if level in levels)
        # Good findings are shown only if nothing is wrong.
        shown = [finding.text for finding in findings if worst == "ok" or finding.level != "ok"]
        yield Line(worst, client.name, linked("{first}; {second}", shown))
    if any(finding.is_answering for finding in findings):
        return
    find = _finder(environ)
    own_file = own_files_of(client, environ)[0]
    how = maybe_how_to_add(client, own_file, key_variable, own_command(find), find, home_of(environ))
    if how is not None:
        what = Sentence("{client}, answers", client=client.name) if findings else client.name
        yield Line(NOT_SET_UP, what, Sentence("not set up; {how}", how=how.words), how.paste)
    elif not findings:
        yield Line(NOT_SET_UP, client.name, Sentence("not found on this machine"))


def _examine(
    client: Client, path: str, environ: Mapping[str, str], key_variable: str, *, is_shared: bool
) -> list[SetupFinding]:
    try:
        text = read_text(path, most_bytes=MAX_CLIENT_FILE_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError) as exc:
        return [SetupFinding("warn", Sentence("{file} {reason}", file=path, reason=reason_of(exc)))]
    is_key_set = bool(environ.get(key_variable, "").strip())
    return examine_file(client, path, text, key_variable, _finder(environ), is_key_set=is_key_set, is_shared=is_shared)


async def _started(
    finding: SetupFinding, client: Client, environ: Mapping[str, str], longest_start_seconds: float
) -> SetupFinding:
    """The finding, with the tools that a client sees. An entry with values that the client fills in is not started."""
    entry = finding.entry
    if entry is None or not finding.is_answering or "${" in " ".join((entry.command, *entry.raw_arguments)):
        return finding
    given = _environment_of(entry, client, environ)
    command = [shutil.which(entry.command, path=given.get("PATH")) or entry.command, *entry.raw_arguments]
    try:
        seen = await look_at(command, given, within_seconds=longest_start_seconds)
    except ProbeFailed as exc:
        said: str = exc.args[0]
        masked = said
        for value in filter(None, entry.env.values()):
            masked = masked.replace(str(value), MASK)
        # Stays a `Sentence` if nothing was hidden.
        return finding._replace(level="FAIL", text=about(finding.text, said if masked == said else masked))
    if not seen.tools:
        seen_none = Sentence("it starts, but a client sees no tools")
        return finding._replace(level="warn", text=about(finding.text, seen_none))
    text = Sentence(
        "a client sees {name} {version} with {tools}",
        name=seen.name,
        version=seen.version,
        tools=", ".join(seen.tools),
    )
    return finding._replace(text=about(finding.text, text))


# Clients that pass on no environment still pass these, because nothing starts without them.
_ALWAYS_GIVEN = (
    "PATH",
    "HOME",
    "LANG",
    "TMPDIR",
    "SYSTEMROOT",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "TEMP",
    "PATHEXT",
)
_FILLED_IN = re.compile(r"\$\{?(?:env:)?(\w+)")


def _environment_of(entry: Entry, client: Client, environ: Mapping[str, str]) -> dict[str, str]:
    passed = environ if client.hands_environment_on else [*_ALWAYS_GIVEN, *entry.env_vars]
    given = {name: environ[name] for name in passed if name in environ}
    for name, value in entry.env.items():
        reference = _FILLED_IN.match(str(value))
        given[name] = environ.get(reference[1], "") if reference else str(value)
    return given


def _finder(environ: Mapping[str, str]) -> CommandFinder:
    return lambda name: shutil.which(name, path=environ.get("PATH"))


def _working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # It has been deleted.
        return os.curdir
