"""`guard doctor`: for each guarded server of each client, whether the client could start it and the guard could decide.

    guard doctor [CLIENT…] [--server NAME…] [--start]

A line for each entry: its command exists, its policy can be read, its store can be opened. With `--start` the entry is
started as the client would, asked for its tools, and ended. Nothing is changed. Exit 0: all is well, or nothing is
guarded; 1: something is wrong; 2: wrong usage.
"""

import asyncio
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from openai_responses_mcp.adapters.stdio.probing import ProbeFailed, look_at
from openai_responses_mcp.commands.doctor.clients import CLIENTS, Client, files_of
from openai_responses_mcp.commands.doctor.entries import Entry, maybe_guard
from openai_responses_mcp.commands.doctor.report import NOT_SET_UP, Line, Report
from openai_responses_mcp.desk.words import Words
from openai_responses_mcp.domain.extras import needs_extra
from openai_responses_mcp.domain.texts import Sentence, language_of, linked
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.secrets.masking import Masking
from openai_responses_mcp.gate.sql.own_files import store_from
from openai_responses_mcp.guard.client_files import ServerEntry, entries_in, entries_of_folders
from openai_responses_mcp.guard.command_line import UsageError, parse
from openai_responses_mcp.guard.servers import GuardOptions
from openai_responses_mcp.guard.setup import CannotUsePolicy, check_servers, checked_policy, client_parser, parsed

PROGRAM = "openai-responses-mcp guard doctor"
LONGEST_START_SECONDS = 30.0
"""Clients wait about as long: a server may have to be downloaded first."""

_LARGEST_FILE = 16 * 1024 * 1024
_MOST_NAMES = 12
_FILLED_IN = re.compile(r"\$\{(?:env:)?(\w+)(?::-([^}]*))?\}")

Level = Literal["ok", "FAIL"]


def main(argv: Sequence[str], environ: Mapping[str, str] = os.environ, folder: str | None = None) -> int:
    parser = client_parser(PROGRAM, "Check the guarded servers of your MCP clients.")
    parser.add_argument("--start", action="store_true", help="start each entry, list its tools, and end it")
    arguments, clients = parsed(parser, argv)
    here = folder or os.getcwd()
    check_servers(parser, arguments.server, [one.name for *_, one in _found(clients, environ, here) if one])
    words = Words(language_of(environ))
    report = Report(Masking(environ).text, environ)
    lines = list(guarded_lines(environ, here, clients, arguments.server, is_started=arguments.start))
    for line in lines or [
        Line(NOT_SET_UP, words("guarded servers"), words("none; openai-responses-mcp guard setup guards them"))
    ]:
        report.add(line)
    return report.end()


def guarded_lines(
    environ: Mapping[str, str],
    folder: str,
    clients: Sequence[Client] = CLIENTS,
    servers: Sequence[str] = (),
    *,
    is_started: bool = False,
    names_unreadable: bool = True,
) -> Iterator[Line]:
    """A line for each guarded entry of these clients, and for each file that cannot be read."""
    words = Words(language_of(environ))
    for client, file, problem, entry in _found(clients, environ, folder):
        if entry is None and names_unreadable:
            yield Line("FAIL", client.name, words("{file} {reason}", file=file, reason=problem))
        elif entry is not None and (not servers or entry.name in servers):
            level, detail = asyncio.run(_examined(entry.words, _environment_of(entry, environ), is_started, words))
            yield Line(
                level, words("{client}, {server} in {file}", client=client.name, server=entry.name, file=file), detail
            )


# ---------------------------------------------------------------------------------------------------------------------
# Which entries there are


def _found(
    clients: Sequence[Client], environ: Mapping[str, str], folder: str
) -> Iterator[tuple[Client, str, str, ServerEntry | None]]:
    """Each guarded entry, or without an entry the problem with a file."""
    for client in clients:
        for file in files_of(client, environ, folder):
            try:
                with open(file, encoding="utf-8-sig") as opened:
                    text = opened.read(_LARGEST_FILE)
                of_folders = [entry for _, entry in entries_of_folders(client, text)]
                entries = [*entries_in(client, text), *of_folders]
            except (FileNotFoundError, NotADirectoryError):
                continue
            except (OSError, ValueError, RecursionError) as exc:
                why = getattr(exc, "strerror", None) or exc
                yield client, file, Sentence("cannot be read ({why})", why=why), None
                continue
            for entry in entries:
                known = Entry(entry.name, entry.words[0], entry.words[1:], {}, ())
                if not entry.is_disabled and maybe_guard(known) is not None:
                    yield client, file, "", entry


def _environment_of(entry: ServerEntry, environ: Mapping[str, str]) -> dict[str, str]:
    """What the client starts the entry with."""
    filled = {
        name: _FILLED_IN.sub(lambda found: environ.get(found[1], found[2] or ""), text)
        for name, text in entry.env.items()
    }
    return {**environ, **filled}


# ---------------------------------------------------------------------------------------------------------------------
# What is wrong with one


class _Wrong(Exception):
    """The text says what, and what to do."""


async def _examined(
    command: Sequence[str], environ: Mapping[str, str], is_started: bool, words: Words
) -> tuple[Level, str]:
    try:
        _check_command(command[0], environ)
        options = parse(command[command.index("guard") + 1 :], environ)
        if options.url is None:
            _check_command(options.command[0], environ)
        for header in options.headers:
            if not environ.get(header.variable):
                raise _Wrong(Sentence("the variable {variable} of --header-env is not set", variable=header.variable))
        found = [_checked_policy(options), await _checked_store(options, environ)]
        if is_started:
            found.append(await _started(command, environ))
    except UsageError as exc:
        return "FAIL", words("the guard does not start: {why}", why=exc)
    except (_Wrong, CannotUsePolicy) as exc:
        return "FAIL", words.of(exc.args[0])
    return "ok", words.of(linked("{first}; {second}", found))


def _check_command(command: str, environ: Mapping[str, str]) -> None:
    # The client fills in placeholders, so such a command cannot be looked for here.
    if "${" not in command and shutil.which(command, path=environ.get("PATH")) is None:
        raise _Wrong(
            Sentence("the command {command} cannot be found: install it, or write its whole path", command=command)
        )


def _checked_policy(options: GuardOptions) -> str:
    if options.policy is None:
        return Sentence("no policy file, so every call is asked about")
    if not os.path.isabs(options.policy):
        raise _Wrong(
            Sentence(
                "the policy {policy} is looked for where the client starts: write its whole path", policy=options.policy
            )
        )
    checked_policy(options.policy)
    return Sentence("the policy {policy} can be read", policy=options.policy)


async def _checked_store(options: GuardOptions, environ: Mapping[str, str]) -> str:
    store = options.store or store_from(None, environ)
    if store is None:
        return Sentence("the store is made with the first call")
    try:
        from openai_responses_mcp.gate.sql.database_urls import sqlite_file, understood
        from openai_responses_mcp.gate.sql.sql_stores import open_stores

        file = sqlite_file(understood(store))
        if file is not None and not file.path.exists():
            folder = file.path.absolute().parent
            if not os.access(folder, os.W_OK | os.X_OK):
                raise _Wrong(
                    Sentence(
                        "the store {path} cannot be made: {folder} is not a folder that can be written to",
                        path=file.path,
                        folder=folder,
                    )
                )
            return Sentence("the store {path} is made with the first call", path=file.path)
        await open_stores(store, must_exist=True).approvals.list_pending()
        if file is not None and not all(os.access(one, os.W_OK) for one in (file.path, file.path.absolute().parent)):
            why = Sentence("the file or its folder is read-only")
            raise _Wrong(Sentence("the store cannot be used: {why}", why=why))
    except AgentsError as exc:
        raise _Wrong(Sentence("the store cannot be used: {why}", why=exc.message)) from None
    except ModuleNotFoundError as exc:
        raise _Wrong(needs_extra("guard", exc.name)) from None
    return Sentence("the store can be opened")


async def _started(command: Sequence[str], environ: Mapping[str, str]) -> str:
    try:
        seen = await look_at(command, environ, within_seconds=LONGEST_START_SECONDS)
    except ProbeFailed as exc:
        raise _Wrong(Sentence("it was started, and {why}", why=exc.args[0])) from None
    names = ", ".join(seen.tools[:_MOST_NAMES])
    more = ", …" if len(seen.tools) > _MOST_NAMES else ""
    if len(seen.tools) == 1:
        return Sentence("it starts and has 1 tool: {names}", names=names)
    return Sentence("it starts and has {count} tools: {names}", count=len(seen.tools), names=f"{names}{more}")
