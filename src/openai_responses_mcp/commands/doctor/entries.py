"""Our entries in the files of clients, and what is wrong with them.

An entry is ours if it starts this program, whatever its name is. No finding contains a key.
"""

import ntpath
import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from openai_responses_mcp.commands.doctor.clients import PLACEHOLDER, Client, CommandFinder
from openai_responses_mcp.commands.usage import GUARDING, OPTIONS
from openai_responses_mcp.domain.texts import Sentence, about

Level = Literal["ok", "warn", "FAIL"]


class Entry(NamedTuple):
    name: str
    command: str
    arguments: tuple[str, ...]
    """The words of all arguments: a shell may get a whole command line as one."""
    env: dict[str, Any]
    env_vars: tuple[str, ...]
    raw_arguments: tuple[str, ...] = ()
    """As the client passes them."""


class SetupFinding(NamedTuple):
    """`entry` is set if it looks as if it can be started. `is_answering`: it does not look like a guard."""

    level: Level
    text: str
    entry: Entry | None = None
    is_answering: bool = True


def examine_file(
    client: Client,
    path: str,
    text: str,
    key_variable: str,
    find_command: CommandFinder,
    *,
    is_key_set: bool = True,
    is_shared: bool = False,
) -> list[SetupFinding]:
    """`is_key_set`: the key is in our environment, which may be that of the client. `is_shared`: the file belongs to a
    project, so others may read it.
    """
    try:
        data = client.parse(text) if text.strip() else {}
    except (ValueError, RecursionError) as exc:
        wrong = Sentence("this file cannot be read; look for a typing mistake")
        return [SetupFinding("warn", about(f"{path}:{_line_of(exc, text)}", wrong))]
    findings = []
    for entry in _our_entries(client, data):
        key = _KeyPlace(client, key_variable, is_set_here=is_key_set, is_shared=is_shared)
        problems = list(_problems(entry, key, find_command))
        place, is_answering = Sentence("{name} in {file}", name=entry.name, file=path), maybe_guard(entry) is None
        findings += [SetupFinding(level, about(place, problem), None, is_answering) for level, problem in problems]
        if not any(level == "FAIL" for level, _ in problems):
            findings.append(SetupFinding("ok", place, entry, is_answering))
    return findings


def _line_of(exc: Exception, text: str) -> int:
    """Both parsers name the line, except for mistakes found only at the end."""
    line = re.search(r"\bline (\d+)", str(exc))
    return int(line[1]) if line else len(text.splitlines())


def _our_entries(client: Client, data: Any) -> Iterator[Entry]:
    """Those for all projects, then those of single ones, which Claude Code keeps in the same file."""
    top = _mapping(data)
    for project, value in [("", top), *_mapping(top.get("projects")).items()]:
        for name, given in _mapping(_mapping(value).get(client.section)).items():
            entry = _entry(f"{name} ({project})" if project else name, _mapping(given))
            if starts_this_program(entry):
                yield entry


def _entry(name: str, value: dict[str, Any]) -> Entry:
    command = value.get("command")
    arguments = [argument for argument in _items(value.get("args")) if isinstance(argument, str)]
    env_vars = [item.get("name") if isinstance(item, dict) else item for item in _items(value.get("env_vars"))]
    return Entry(
        name,
        command if isinstance(command, str) else "",
        tuple(word for argument in arguments for word in argument.split()),
        _mapping(value.get("env")),
        tuple(map(str, env_vars)),
        tuple(arguments),
    )


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


# As a command, a module, a requirement, an image or the end of an address.
_PROGRAM = re.compile(r"openai[-_]responses[-_]mcp(\.exe|\.cmd|\.git)?([\[=<>~!@:].*)?", re.IGNORECASE)


def starts_this_program(entry: Entry) -> bool:
    if any(_PROGRAM.fullmatch(ntpath.basename(word)) for word in entry.command.split()):
        return True
    # A path that ends in our name may be anything, such as a folder that another server reads.
    may_be_path = "--stdio" in entry.arguments
    return any(_PROGRAM.fullmatch(ntpath.basename(word) if may_be_path else word) for word in entry.arguments)


# What is wrong with an entry

_KNOWN_OPTIONS = {option.flag for option in OPTIONS}
_GUARD_OPTIONS = {option.flag: option for option in GUARDING}


class _KeyPlace(NamedTuple):
    """Where the key may come from for entries of one file."""

    client: Client
    variable: str
    is_set_here: bool
    is_shared: bool


def _problems(entry: Entry, key: _KeyPlace, find_command: CommandFinder) -> Iterator[tuple[Level, str]]:
    # A value that the client fills in is not known here.
    if "${" not in entry.command and find_command(entry.command) is None:
        yield (
            "FAIL",
            Sentence(
                "the command {command} cannot be found: install it, or write its whole path under command"
                " and its arguments under args",
                command=repr(entry.command),
            ),
        )
    guard = maybe_guard(entry)
    if guard is None:
        yield from _server_problems(entry, key)
        return
    yield from _guard_problems(guard, find_command)
    guarded = entry._replace(command="".join(guard.server[:1]), arguments=guard.server[1:])
    if starts_this_program(guarded):
        yield from _server_problems(guarded, key)


class GuardWords(NamedTuple):
    """A command line that starts the guard. `server` is the command behind it, empty when there is none."""

    unknown_options: tuple[str, ...]
    server: tuple[str, ...]
    has_url: bool = False


def maybe_guard_words(own_words: Sequence[str]) -> GuardWords | None:
    """`own_words` follow the name of this program. None when they do not start the guard."""
    # The older way to start the guard is `agents guard`.
    words = own_words[1:] if list(own_words[:1]) == ["agents"] else own_words
    if list(words[:1]) != ["guard"]:
        return None
    rest, unknown, has_url = list(words[1:]), [], False
    # As the guard parses them.
    while rest and rest[0] != "--" and rest[0].startswith("-"):
        flag, has_value, _ = rest.pop(0).partition("=")
        has_url = has_url or flag == "--url"
        if flag not in _GUARD_OPTIONS:
            unknown.append(flag)
        elif _GUARD_OPTIONS[flag].value and not has_value:
            rest[:1] = []
    return GuardWords(tuple(unknown), () if has_url else tuple(rest[1:] if rest[:1] == ["--"] else rest), has_url)


def maybe_guard(entry: Entry) -> GuardWords | None:
    words = (entry.command, *entry.arguments)
    starts = (words[place + 1 :] for place, word in enumerate(words) if _PROGRAM.fullmatch(ntpath.basename(word)))
    return next(filter(None, map(maybe_guard_words, starts)), None)


def _guard_problems(guard: GuardWords, find_command: CommandFinder) -> Iterator[tuple[Level, str]]:
    for option in guard.unknown_options:
        yield "FAIL", Sentence("the guard has no option {option}: see openai-responses-mcp guard --help", option=option)
    if guard.has_url:
        return
    if not guard.server:
        yield "FAIL", Sentence('there is no server behind the guard: add "--" and the command of the server to args')
    elif "${" not in guard.server[0] and find_command(guard.server[0]) is None:
        command = repr(guard.server[0])
        yield "FAIL", Sentence("the command behind the guard, {command}, cannot be found: install it", command=command)


def _server_problems(entry: Entry, key: _KeyPlace) -> Iterator[tuple[Level, str]]:
    if "--stdio" not in entry.arguments:
        yield "FAIL", Sentence('add "--stdio" to args, which is a list')
    if any(ntpath.splitext(ntpath.basename(word))[0] == "npx" for word in (entry.command, *entry.arguments)):
        yield "warn", Sentence("npx starts the npm package of this name, not this program: use uvx")
    for option in _unknown_options(entry):
        text = Sentence(
            "there is no option {option}: take it out of args (see openai-responses-mcp --help)", option=option
        )
        yield "FAIL", text
    if "--rehearse" in entry.arguments:
        yield "FAIL", Sentence("it still rehearses, and no answer is real: take --rehearse out of args")
    else:
        yield from _key_problems(entry, key)


def _unknown_options(entry: Entry) -> list[str]:
    """Those after our own name; those before it belong to the program that starts us."""
    words = [entry.command, *entry.arguments]
    ours = max((place for place, word in enumerate(words) if _PROGRAM.fullmatch(ntpath.basename(word))), default=0)
    options = [word.partition("=")[0] for word in words[ours + 1 :] if word.startswith("--")]
    return [option for option in options if option not in _KNOWN_OPTIONS]


def _key_problems(entry: Entry, key: _KeyPlace) -> Iterator[tuple[Level, str]]:
    client, variable = key.client, key.variable
    facts = {"client": client.name, "variable": variable}
    advice = Sentence(client.how_to_name_key, variable=variable)
    not_set_here = Sentence("{variable} is not set here, so whether {client} has it was not checked", **facts)
    value = entry.env.get(variable)
    if value is None:
        if not client.hands_environment_on and variable not in entry.env_vars:
            yield "FAIL", Sentence("{client} does not hand {variable} on by itself: {advice}", **facts, advice=advice)
        elif not key.is_set_here:
            yield "warn", not_set_here
        return
    # No name of a secret is followed by a colon here: the mask would star out the word after it.
    text = str(value).strip()
    if text in ("", PLACEHOLDER):
        yield (
            "FAIL",
            Sentence("env has no key yet ({variable}): put it there, or {advice}", variable=variable, advice=advice),
        )
    elif client.fills_in and re.fullmatch(client.fills_in, text):
        if not key.is_set_here and "input:" not in text:
            yield "warn", not_set_here
    elif text.startswith("$"):
        yield "FAIL", Sentence("{client} does not fill in what env has ({variable}): {advice}", **facts, advice=advice)
    elif key.is_shared:
        text = "env holds the key itself ({variable}), and others may read a project's file: {advice}"
        yield "warn", Sentence(text, variable=variable, advice=advice)
