"""The servers in a client's configuration file, and their commands rewritten in the file's own text.

Only the values of `command` and `args` are touched: comments, order and formatting of everything else stay. Whatever a
rewriting gives is read again and compared with what was wanted; a file for which that fails is not rewritten.
"""

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from openai_responses_mcp.commands.doctor.client_setups import Client, with_comments
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue, OwnJson

_DEEPEST = 100


class CannotRewrite(Exception):
    """The text says why."""


class Place(NamedTuple):
    """Where an entry stands: the keys that lead to it."""

    keys: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.keys[-1]


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """One server of a client. Without a `command` it is reached by a URL."""

    place: Place
    command: str | None
    args: tuple[str, ...]
    url: str | None = None
    is_disabled: bool = False
    problem: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        return (self.command or "", *self.args)


def entries_in(client: Client, text: str, project: str | None = None) -> list[ServerEntry]:
    """Those of the user, or with `project` those that Claude Code keeps for this folder. Raises `ValueError`."""
    data = client.parse(text) if text.strip() else {}
    keys: tuple[str, ...] = (client.section,) if project is None else ("projects", project, client.section)
    section = _at(data, keys)
    return [_entry(Place((*keys, name)), value) for name, value in section.items() if isinstance(value, dict)]


def _at(data: JsonValue, keys: Sequence[str]) -> JsonObject:
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def _entry(place: Place, value: JsonObject) -> ServerEntry:
    command, args, url = value.get("command"), value.get("args", []), value.get("url", value.get("httpUrl"))
    is_disabled = value.get("disabled") is True or value.get("enabled") is False
    if isinstance(url, str) and command is None:
        return ServerEntry(place, None, (), url, is_disabled)
    if not isinstance(command, str) or not command.strip():
        return ServerEntry(place, None, (), None, is_disabled, "it has no command")
    if not isinstance(args, list) or not all(isinstance(one, str) for one in args):
        return ServerEntry(place, command, (), None, is_disabled, "its args are not a list of texts")
    return ServerEntry(place, command, tuple(args), None, is_disabled)


def rewritten(client: Client, text: str, changes: Mapping[Place, Sequence[str]]) -> str:
    """The text with other commands for these entries. Raises `CannotRewrite`."""
    is_toml = client.parse is tomllib.loads
    for place, words in changes.items():
        text = _rewritten_toml(text, place, words) if is_toml else _rewritten_json(text, place, words)
    return text


def _check(parse: Callable[[str], OwnJson], before: str, after: str, place: Place, words: Sequence[str]) -> str:
    """Only this entry is another one, and it is as wanted."""
    try:
        found = parse(after)
    except ValueError:
        found = {}
    if found != _with_command(parse(before), place.keys, words):
        raise CannotRewrite("it is written in a way that cannot be changed safely")
    return after


def _with_command(data: OwnJson, keys: Sequence[str], words: Sequence[str]) -> OwnJson:
    if not keys:
        return {**data, "command": words[0], "args": list(words[1:])}
    return {**data, keys[0]: _with_command(data[keys[0]], keys[1:], words)}


# ---------------------------------------------------------------------------------------------------------------------
# JSON, with comments and trailing commas as people write it


@dataclass(slots=True)
class _Node:
    start: int
    end: int = 0
    members: dict[str, "_Node"] = field(default_factory=dict)


_BLANK = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
_OTHER = re.compile(r"[^\s,\]}/]+")


def _rewritten_json(text: str, place: Place, words: Sequence[str]) -> str:
    node = _node_at(text, place)
    command, args = node.members.get("command"), node.members.get("args")
    if command is None:
        raise CannotRewrite("it has no command")
    written = json.dumps(list(words[1:]), ensure_ascii=False)
    if args is None:
        text = f'{text[: command.end]}, "args": {written}{text[command.end :]}'
        edits = [(command, json.dumps(words[0], ensure_ascii=False))]
    else:
        edits = [(command, json.dumps(words[0], ensure_ascii=False)), (args, _like(text, args, words[1:], written))]
    before = text
    for one, value in sorted(edits, key=lambda edit: edit[0].start, reverse=True):
        text = text[: one.start] + value + text[one.end :]
    # Inserted args are part of what is compared with.
    return _check(with_comments, before, text, place, words)


def _like(text: str, args: _Node, values: Sequence[str], on_one_line: str) -> str:
    """One item a line where the file has it so."""
    written = text[args.start : args.end]
    indent = re.search(r"\n([ \t]+)\S", written)
    if indent is None:
        return on_one_line
    close = re.search(r"\n([ \t]*)\]\Z", written)
    items = ",\n".join(f"{indent[1]}{json.dumps(one, ensure_ascii=False)}" for one in values)
    return f"[\n{items}\n{close[1] if close else ''}]"


def _node_at(text: str, place: Place) -> _Node:
    try:
        node = _read(text, _skip(text, 0), 0)
        for key in place.keys:
            node = node.members[key]
    except (KeyError, IndexError, ValueError, AttributeError, RecursionError):
        raise CannotRewrite("it is written in a way that cannot be changed safely") from None
    return node


def _skip(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


def _read(text: str, at: int, depth: int) -> _Node:
    """The value that begins here. Only as much is checked as is needed to find its end."""
    if depth > _DEEPEST:
        raise ValueError
    node = _Node(at)
    if text[at] == "{" or text[at] == "[":
        closing = "}" if text[at] == "{" else "]"
        at = _skip(text, at + 1)
        while text[at] != closing:
            key = None
            if closing == "}":
                name = _STRING.match(text, at)
                if name is None:
                    raise ValueError
                key, at = json.loads(name[0]), _skip(text, name.end())
                if text[at] != ":":
                    raise ValueError
                at = _skip(text, at + 1)
            inner = _read(text, at, depth + 1)
            if key is not None:
                if key in node.members:
                    raise ValueError
                node.members[key] = inner
            at = _skip(text, inner.end)
            if text[at] == ",":
                at = _skip(text, at + 1)
        node.end = at + 1
        return node
    value = (_STRING if text[at] == '"' else _OTHER).match(text, at)
    if value is None:
        raise ValueError
    node.end = value.end()
    return node


# ---------------------------------------------------------------------------------------------------------------------
# TOML


def _rewritten_toml(text: str, place: Place, words: Sequence[str]) -> str:
    start, end = _table(text, place)
    body = text[start:end]
    for key, value in (("command", _toml(words[0])), ("args", f"[{', '.join(map(_toml, words[1:]))}]")):
        found = _assignment(body, key)
        if found is not None:
            body = body[: found[0]] + value + body[found[1] :]
        elif key == "args":
            after = _assignment(body, "command")
            if after is None:
                raise CannotRewrite("it has no command")
            body = f"{body[: after[1]]}\nargs = {value}{body[after[1] :]}"
    return _check(tomllib.loads, text, text[:start] + body + text[end:], place, words)


def _toml(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _table(text: str, place: Place) -> tuple[int, int]:
    """From behind its header to the next header."""
    for header in re.finditer(r"^[ \t]*\[([^\[\]\n]+)\][ \t]*(?:#[^\n]*)?$", text, re.MULTILINE):
        try:
            keys = tomllib.loads(f"[{header[1]}]")
        except ValueError:
            continue
        if keys == {place.keys[0]: {place.keys[1]: {}}}:
            after = re.compile(r"^[ \t]*\[", re.MULTILINE).search(text, header.end())
            return header.end(), after.start() if after else len(text)
    raise CannotRewrite("it is not a table of its own")


def _assignment(body: str, key: str) -> tuple[int, int] | None:
    """Where the value of this key stands, over several lines where it is a list."""
    found = re.search(rf"^[ \t]*{key}[ \t]*=[ \t]*", body, re.MULTILINE)
    if found is None:
        return None
    for end in range(found.end() + 1, len(body) + 1):
        if end < len(body) and body[end] not in "\n#\r":
            continue
        try:
            tomllib.loads(f"x = {body[found.end() : end]}")
        except ValueError:
            continue
        return found.end(), found.end() + len(body[found.end() : end].rstrip())
    return None
