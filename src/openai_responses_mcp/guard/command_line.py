"""`openai-responses-mcp guard … -- COMMAND` starts an MCP server with the guard in front of it; with `--url URL` it is
reached there.

Parsed without argparse, which takes as long to import as everything else before the first message. Exit code: that of
the server; 128 plus the number of the signal that ended the server or the guard; 127 if the server cannot be started; 2
for wrong usage, or a policy or a store that cannot be used.
"""

import asyncio
import importlib.util
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import cast

from openai_responses_mcp.adapters.child_process import StderrLines
from openai_responses_mcp.adapters.process import stopped_by_signal
from openai_responses_mcp.adapters.stdio.transport import claim_wire
from openai_responses_mcp.commands.usage import ASKED_AT, GUARDING, PROFILES, table
from openai_responses_mcp.domain.extras import needs_extra
from openai_responses_mcp.domain.texts import one_line
from openai_responses_mcp.guard.composition import guard
from openai_responses_mcp.guard.lifetime import UNUSABLE
from openai_responses_mcp.guard.servers import (
    AskedAt,
    GuardOptions,
    HeaderVariable,
    OverHttp,
    name_of,
    with_named_secrets,
)

PROGRAM = "openai-responses-mcp guard"

HELP = f"""\
Usage: {PROGRAM} [options] -- COMMAND [ARG...]
       {PROGRAM} [options] --url URL
       {PROGRAM} setup       guard the servers of your clients
       {PROGRAM} doctor      check the guarded servers
       {PROGRAM} login       log in at a remote server
       {PROGRAM} logout      forget that login
Each has its own --help.

Stands in front of an MCP server, on stdin and stdout or over HTTP: no tool of
that server runs unchecked.

Options:
{table(GUARDING, 23)}

Where an option is not given, the policy file's value counts, else the default.
"""

_VERBS = ("setup", "doctor", "login", "logout")
_VALUES = [option.flag for option in GUARDING if option.value]
_LONGEST_NAME = 64
_LONGEST_WAIT = 7 * 24 * 3600
_MOST_SERVERS = 1000
_WITH_HTTP = ("--config", "--max-servers", "--drain", "--tls-cert", "--tls-key")
_HEADER = re.compile(
    r"(?P<name>[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128})=(?:(?P<scheme>[A-Za-z][\w-]*) )?(?P<variable>\w+)", re.ASCII
)
_OWN_HEADERS = frozenset(
    [
        *("accept", "accept-encoding", "connection", "content-length", "content-type", "host", "last-event-id", "te"),
        *("transfer-encoding", "upgrade"),
    ]
)


class UsageError(Exception):
    """The command line cannot be understood; the text says why, on one line."""


def main(argv: Sequence[str], environ: Mapping[str, str] = os.environ) -> int:
    if not argv or argv[0] in ("-h", "--help"):
        from openai_responses_mcp.commands.words import with_note

        sys.stdout.write(with_note(HELP, environ))
        return 0
    if argv[0] == "setup":
        from openai_responses_mcp.guard import setup

        return setup.main(argv[1:], environ)
    if argv[0] in ("login", "logout"):
        from openai_responses_mcp.guard import remote

        return (remote.log_in if argv[0] == "login" else remote.log_out)(argv[1:], environ)
    try:
        options = parse(argv, environ)
    except UsageError as exc:
        sys.stderr.write(f"{PROGRAM}: {one_line(str(exc))} (see {PROGRAM} --help)\n")
        return UNUSABLE
    if importlib.util.find_spec("sqlalchemy") is None:
        sys.stderr.write(f"{PROGRAM}: {needs_extra('guard')}\n")
        return UNUSABLE
    lines = StderrLines(PROGRAM)
    if options.headers:
        environ = with_named_secrets(environ, options.headers)
        # Definitions of tools are pinned without the secrets of the process.
        os.environ.update(environ)
    # Before the loop: a stdin that is closed at the start would be the loop's own descriptor.
    wire = claim_wire() if options.over_http is None else None
    # Not asyncio.run: it would wait for threads, and the process is about to end anyway.
    loop = asyncio.new_event_loop()
    code = loop.run_until_complete(_guard(options, wire, environ, lines))
    lines.close()
    return code


async def _guard(
    options: GuardOptions, wire: tuple[int, int] | None, environ: Mapping[str, str], lines: StderrLines
) -> int:
    if wire is not None:
        return await guard(options, wire, environ, stopped_by_signal(), lines)
    assert options.over_http is not None  # noqa: S101 - else there is a wire
    if importlib.util.find_spec("uvicorn") is None:
        lines.tell(needs_extra("guard"))
        return UNUSABLE
    from openai_responses_mcp.guard.over_http import guard_over_http

    return await guard_over_http(options, options.over_http, environ, stopped_by_signal(), lines)


def parse(argv: Sequence[str], environ: Mapping[str, str]) -> GuardOptions:
    """Raises `UsageError`. Takes `--name value` and `--name=value`; the last one given counts.

    The command begins behind `--`, or with the first word that is no option: some clients drop the `--`.
    """
    given: dict[str, str] = {}
    headers: list[str] = []
    is_observing, rest = False, list(argv)
    while rest and rest[0] != "--" and rest[0].startswith("-"):
        name, has_value, value = rest.pop(0).partition("=")
        if name == "--observe" and not has_value:
            is_observing = True
        elif name not in _VALUES:
            near = _nearest(name, (*_VALUES, "--observe"))
            raise UsageError(f"unknown option {name}{near or '; the command of the server goes behind --'}")
        elif not has_value and (not rest or rest[0] == "--"):
            raise UsageError(f"{name} needs a value")
        else:
            given[name] = value if has_value else rest.pop(0)
            if name == "--header-env":
                headers.append(given[name])
    if rest and rest[0] != "--" and (near := _nearest(rest[0], _VERBS)) and not _is_program(rest[0]):
        raise UsageError(f"unknown command {rest[0]}{near}")
    command, url = tuple(rest[1:] if rest[:1] == ["--"] else rest), given.get("--url")
    if url is not None:
        default_name, command = _host_in(url, command), (url,)
    elif not command:
        raise UsageError("name the server behind --, such as: -- npx @modelcontextprotocol/server-filesystem ~/notes")
    elif headers:
        raise UsageError("--header-env is for a server that is reached by --url")
    else:
        default_name = name_of(command)
    return GuardOptions(
        command=command,
        name=_name(given.get("--name") or default_name[:_LONGEST_NAME]),
        policy=given.get("--policy"),
        profile=_one_of(PROFILES, "--profile", given.get("--profile")),
        store=given.get("--store") or environ.get("AGENTS_STORE") or None,
        wait_seconds=_seconds(given.get("--wait")),
        observe=is_observing,
        ask=cast(AskedAt | None, _one_of(ASKED_AT, "--ask", given.get("--ask"))),
        over_http=_over_http(given),
        url=url,
        headers=tuple(map(_header, headers)),
    )


def _nearest(word: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, known, n=1, cutoff=0.75)
    return f": did you mean {near[0]}?" if near else ""


def _is_program(word: str) -> bool:
    from shutil import which

    return which(word) is not None


def _over_http(given: Mapping[str, str]) -> OverHttp | None:
    where = given.get("--http")
    if where is None:
        if alone := next((name for name in _WITH_HTTP if name in given), None):
            raise UsageError(f"{alone} goes with --http")
        return None
    most = given.get("--max-servers", "32")
    if not (most.isascii() and most.isdigit() and 1 <= int(most) <= _MOST_SERVERS):
        raise UsageError(f"--max-servers is a whole number from 1 to {_MOST_SERVERS}")
    others = (given.get(name) for name in ("--drain", "--tls-cert", "--tls-key"))
    return OverHttp(where, given.get("--config"), int(most), *others)


def _host_in(url: str, command: tuple[str, ...]) -> str:
    from openai_responses_mcp.adapters.remote.wire import WrongAddress, remote_address

    if command:
        raise UsageError("give --url or the command of a server, not both")
    try:
        return remote_address(url).name
    except WrongAddress as exc:
        raise UsageError(f"--url {exc}") from exc


def _header(text: str) -> HeaderVariable:
    """`NAME=VAR`, or `NAME=SCHEME VAR` where the variable holds a bare token: `Authorization=Bearer TOKEN`."""
    found = _HEADER.fullmatch(text)
    if found is None:
        raise UsageError("--header-env is NAME=VAR, such as X-Api-Key=MY_KEY or 'Authorization=Bearer MY_TOKEN'")
    if found["name"].lower() in _OWN_HEADERS or found["name"].lower().startswith("mcp-"):
        raise UsageError(f"--header-env cannot set {found['name']}: the guard sets it itself")
    return HeaderVariable(found["name"], found["scheme"] or "", found["variable"])


def _name(name: str) -> str:
    if not 1 <= len(name) <= _LONGEST_NAME or not name.isprintable() or "/" in name:
        raise UsageError(f"--name has 1 to {_LONGEST_NAME} printable characters without /")
    return name


def _one_of(known: Sequence[str], flag: str, given: str | None) -> str | None:
    if given is not None and given not in known:
        raise UsageError(f"{flag} is one of {', '.join(known)}")
    return given


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = float(text) if text.isascii() else -1.0
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= _LONGEST_WAIT:
        raise UsageError(f"--wait is a number of seconds above 0, up to {_LONGEST_WAIT}")
    return seconds
