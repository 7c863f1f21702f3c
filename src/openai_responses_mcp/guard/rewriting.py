"""Rewrites the command of a server in the text of a client's configuration file.

Only the values of `command` and `args` change: comments, order and formatting of everything else stay. An entry with a
URL gets a command instead. Its headers become variables of that command, with their values as they stand in the file, so
that the client still fills in its placeholders. The new text is parsed and compared with the wanted content; if they
differ, the file is not rewritten.
"""

import json
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from openai_responses_mcp.commands.doctor.clients import Client, with_comments
from openai_responses_mcp.domain.texts import Sentence
from openai_responses_mcp.gate.json_values import OwnJson
from openai_responses_mcp.guard.client_files import KEPT_KEYS, CannotRewrite, ServerEntry, variable_of

_DEEPEST = 100
_UNSAFE = Sentence("it is written in a way that cannot be changed safely")


def rewritten(client: Client, text: str, keys: Sequence[str], words: Sequence[str]) -> str:
    """The text with another command for this entry. Raises `CannotRewrite`."""
    parse, command = _parser_of(client), {"command": words[0], "args": list(words[1:])}
    after = _rewritten_toml(text, keys, words) if _is_toml(client) else _rewritten_json(text, keys, words)
    return _checked(parse, after, _with_entry(parse(text), keys, lambda old: {**old, **command}))


def guarded_url(client: Client, text: str, entry: ServerEntry, words: Sequence[str]) -> str:
    """The text with this command instead of the entry's URL. Raises `CannotRewrite`."""
    is_toml, parse = _is_toml(client), _parser_of(client)
    after = _url_to_command_toml(text, entry, words) if is_toml else _url_to_command_json(text, entry, words)
    wanted = _with_entry(parse(text), entry.keys, lambda old: _as_command(old, words, is_toml=is_toml))
    return _checked(parse, after, wanted)


def entry_text(client: Client, text: str, keys: Sequence[str]) -> str:
    """The entry as it is written in the file. Raises `CannotRewrite`."""
    start, end = _span(client, text, keys)
    return text[start:end]


def with_entry_text(client: Client, text: str, keys: Sequence[str], written: str) -> str:
    """The text with the entry as it was written before. Raises `CannotRewrite`."""
    start, end = _span(client, text, keys)
    parse = _parser_of(client)
    after = text[:start] + written + text[end:]
    try:
        found = parse(after)
        before = _with_entry(parse(text), keys, lambda _: {})
        is_whole = _with_entry(found, keys, lambda _: {}) == before
    except (ValueError, KeyError, TypeError):
        is_whole = False
    if not is_whole:
        raise CannotRewrite(_UNSAFE)
    return after


def _span(client: Client, text: str, keys: Sequence[str]) -> tuple[int, int]:
    if _is_toml(client):
        return _table(text, keys)
    node = _node_at(text, keys)
    return node.start, node.end


def _is_toml(client: Client) -> bool:
    return client.parse is tomllib.loads


def _parser_of(client: Client) -> Callable[[str], OwnJson]:
    return tomllib.loads if _is_toml(client) else with_comments


def _as_command(old: OwnJson, words: Sequence[str], *, is_toml: bool) -> OwnJson:
    kept = {key: value for key, value in old.items() if key in KEPT_KEYS}
    new = {**kept, "command": words[0], "args": list(words[1:])}
    if is_toml:
        bearer = [old["bearer_token_env_var"]] if "bearer_token_env_var" in old else []
        named = [*old.get("env_http_headers", {}).values(), *bearer]
        return {**new, "env_vars": named} if named else new
    if "type" in old:
        new["type"] = "stdio"
    if "headers" in old:
        new["env"] = {variable_of(name): value for name, value in old["headers"].items()}
    return new


def _checked(parse: Callable[[str], OwnJson], after: str, wanted: OwnJson) -> str:
    try:
        found = parse(after)
    except ValueError:
        found = {}
    if found != wanted:
        raise CannotRewrite(_UNSAFE)
    return after


def _with_entry(data: OwnJson, keys: Sequence[str], change: Callable[[OwnJson], OwnJson]) -> OwnJson:
    if not keys:
        return change(data)
    return {**data, keys[0]: _with_entry(data[keys[0]], keys[1:], change)}


def _quoted(value: str) -> str:
    """In JSON and TOML alike."""
    return json.dumps(value, ensure_ascii=False)


# ---------------------------------------------------------------------------------------------------------------------
# JSON, with comments and trailing commas as people write it


@dataclass(slots=True)
class _Node:
    start: int
    end: int = 0
    key_start: int = 0
    key_end: int = 0
    members: dict[str, "_Node"] = field(default_factory=dict)


_BLANK = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
_OTHER = re.compile(r"[^\s,\]}/]+")


def _rewritten_json(text: str, keys: Sequence[str], words: Sequence[str]) -> str:
    node = _node_at(text, keys)
    command, args = node.members.get("command"), node.members.get("args")
    if command is None:
        raise CannotRewrite(_UNSAFE)
    written = json.dumps(list(words[1:]), ensure_ascii=False)
    if args is None:
        return _edited(text, (command.start, command.end, f'{_quoted(words[0])}, "args": {written}'))
    return _edited(
        text,
        (command.start, command.end, _quoted(words[0])),
        (args.start, args.end, _like(text, args, words[1:], written)),
    )


def _edited(text: str, *edits: tuple[int, int, str]) -> str:
    for start, end, written in sorted(edits, reverse=True):
        text = text[:start] + written + text[end:]
    return text


def _url_to_command_json(text: str, entry: ServerEntry, words: Sequence[str]) -> str:
    node = _node_at(text, entry.keys)
    url = node.members.get("url") or node.members.get("httpUrl")
    if url is None or ("url" in node.members and "httpUrl" in node.members):
        raise CannotRewrite(_UNSAFE)
    # On a line of its own where the URL has one.
    line = text[text.rfind("\n", 0, url.key_start) + 1 : url.key_start]
    between = f"\n{line}" if not line.strip() else " "
    args = json.dumps(list(words[1:]), ensure_ascii=False)
    command = f'"command": {_quoted(words[0])},{between}"args": {args}'
    edits = [(url.key_start, url.end, command)]
    if kind := node.members.get("type"):
        edits.append((kind.start, kind.end, '"stdio"'))
    if headers := node.members.get("headers"):
        edits.append((headers.key_start, headers.key_end, '"env"'))
        for name, value in headers.members.items():
            edits.append((value.key_start, value.key_end, json.dumps(variable_of(name))))
    return _edited(text, *edits)


def _like(text: str, args: _Node, values: Sequence[str], on_one_line: str) -> str:
    """One item per line if the file has it so."""
    written = text[args.start : args.end]
    indent = re.search(r"\n([ \t]+)\S", written)
    if indent is None:
        return on_one_line
    close = re.search(r"\n([ \t]*)\]\Z", written)
    items = ",\n".join(f"{indent[1]}{_quoted(one)}" for one in values)
    return f"[\n{items}\n{close[1] if close else ''}]"


def _node_at(text: str, keys: Sequence[str]) -> _Node:
    try:
        node = _read(text, _skip(text, 0), 0)
        for key in keys:
            node = node.members[key]
    except (KeyError, IndexError, ValueError, AttributeError, RecursionError):
        raise CannotRewrite(_UNSAFE) from None
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
            key, key_start, key_end = None, at, at
            if closing == "}":
                name = _STRING.match(text, at)
                if name is None:
                    raise ValueError
                key, key_end, at = json.loads(name[0]), name.end(), _skip(text, name.end())
                if text[at] != ":":
                    raise ValueError
                at = _skip(text, at + 1)
            inner = _read(text, at, depth + 1)
            if key is not None:
                inner.key_start, inner.key_end = key_start, key_end
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


def _rewritten_toml(text: str, keys: Sequence[str], words: Sequence[str]) -> str:
    start, end = _table(text, keys)
    body = text[start:end]
    command, written = _assignment(body, "command"), f"[{', '.join(map(_quoted, words[1:]))}]"
    if command is None:
        raise CannotRewrite(_UNSAFE)
    args = _assignment(body, "args")
    if args is None:
        body = f"{body[: command[1]]}\nargs = {written}{body[command[1] :]}"
    else:
        body = body[: args[0]] + written + body[args[1] :]
    command = _assignment(body, "command") or command
    body = body[: command[0]] + _quoted(words[0]) + body[command[1] :]
    return text[:start] + body + text[end:]


def _url_to_command_toml(text: str, entry: ServerEntry, words: Sequence[str]) -> str:
    start, end = _table(text, entry.keys)
    body = text[start:end]
    variables = [header.partition("=")[2].rpartition(" ")[2] for header in entry.headers]
    lines = [f"command = {_quoted(words[0])}", f"args = [{', '.join(map(_quoted, words[1:]))}]"]
    if variables:
        lines.append(f"env_vars = [{', '.join(map(_quoted, variables))}]")
    for key, written in (("url", "\n".join(lines)), ("bearer_token_env_var", ""), ("env_http_headers", "")):
        found = _assignment(body, key)
        if found is not None:
            line = body.rfind("\n", 0, found[0]) + 1
            after = found[1] + (0 if written else len(re.match(r"[ \t]*\n?", body[found[1] :])[0]))  # type: ignore[index]
            body = body[:line] + written + body[after:]
    return text[:start] + body + text[end:]


def _table(text: str, keys: Sequence[str]) -> tuple[int, int]:
    """From behind its header to the next header."""
    for header in re.finditer(r"^[ \t]*\[([^\[\]\n]+)\][ \t]*(?:#[^\n]*)?$", text, re.MULTILINE):
        try:
            found = tomllib.loads(f"[{header[1]}]")
        except ValueError:
            continue
        if found == {keys[0]: {keys[1]: {}}}:
            after = re.compile(r"^[ \t]*\[", re.MULTILINE).search(text, header.end())
            return header.end(), after.start() if after else len(text)
    raise CannotRewrite(Sentence("it has no table in the file"))


def _assignment(body: str, key: str) -> tuple[int, int] | None:
    """Start and end of the value of this key. A list may span several lines."""
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
