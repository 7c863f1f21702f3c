"""The configuration files of clients: the servers in them, and what `guard setup` has written there.

Reading keeps an entry's problem instead of raising it, so that one odd entry does not hide the others. Notes of what was
written, and a backup of each file, lie in the guard's own folder, for `--undo`.
"""

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from openai_responses_mcp.adapters.remote.wire import WrongAddress, remote_address
from openai_responses_mcp.commands.doctor.clients import Client
from openai_responses_mcp.domain.texts import Sentence
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue, OwnJson
from openai_responses_mcp.gate.sql.own_files import replace_private, written_beside

# Keys of an entry with a URL that mean the same for one with a command, besides those that are rewritten.
KEPT_KEYS = frozenset(
    [
        *("alwaysAllow", "autoApprove", "description", "disabled", "disabledTools", "disabled_tools", "enabled"),
        *("enabled_tools", "excludeTools", "gallery", "includeTools", "name", "required", "startup_timeout_ms"),
        *("startup_timeout_sec", "timeout", "tool_timeout_sec", "trust", "version"),
    ]
)
_JSON_KEYS = frozenset({"url", "httpUrl", "type", "headers"})
_TOML_KEYS = frozenset({"url", "bearer_token_env_var", "env_http_headers"})
_HEADER_VARIABLE = "MCP_HEADER_"
_HEADER = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_NOTES = "setup.json"
_BACKUPS = "backups"
_LARGEST_FILE = 16 * 1024 * 1024


class CannotRewrite(Exception):
    """The text says why."""


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """One server of a client. Without a `command` it is reached by a URL. `keys` lead to it in the file."""

    keys: tuple[str, ...]
    command: str | None
    args: tuple[str, ...]
    url: str | None = None
    is_disabled: bool = False
    problem: str = ""
    headers: tuple[str, ...] = ()
    """With a URL: the values of `--header-env`."""
    secrets: tuple[str, ...] = ()
    """Values of headers that stand in the file itself."""
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.keys[-1]

    @property
    def words(self) -> tuple[str, ...]:
        return (self.command or "", *self.args)


def entries_in(client: Client, text: str, project: str | None = None) -> list[ServerEntry]:
    """Those of the user, or with `project` those that Claude Code keeps for this folder. Raises `ValueError`."""
    data = client.parse(text) if text.strip() else {}
    keys: tuple[str, ...] = (client.section,) if project is None else ("projects", project, client.section)
    section = _at(data, keys)
    return [_entry(client, (*keys, name), value) for name, value in section.items() if isinstance(value, dict)]


def entries_of_folders(client: Client, text: str) -> list[tuple[str, ServerEntry]]:
    """Claude Code keeps servers of single folders in the user's file. Raises `ValueError`."""
    folders = _at(client.parse(text) if text.strip() else {}, ["projects"])
    return [(folder, entry) for folder in folders for entry in entries_in(client, text, folder)]


def _at(data: JsonValue, keys: Sequence[str]) -> JsonObject:
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def _entry(client: Client, keys: tuple[str, ...], value: JsonObject) -> ServerEntry:
    command, args, url = value.get("command"), value.get("args", []), value.get("url", value.get("httpUrl"))
    is_disabled = value.get("disabled") is True or value.get("enabled") is False
    if isinstance(url, str) and command is None:
        problem = _problem_with_url(client, url, value)
        headers = () if problem else tuple(f"{name}={named}" for name, named in _variables(client, value).items())
        in_file = _values_in(_at(value, ["headers"])) if headers else ()
        return ServerEntry(keys, None, (), url, is_disabled, problem, headers, in_file)
    if not isinstance(command, str) or not command.strip():
        return ServerEntry(keys, None, (), None, is_disabled, Sentence("it has no command"))
    if not isinstance(args, list) or not all(isinstance(one, str) for one in args):
        return ServerEntry(keys, command, (), None, is_disabled, Sentence("its args are not a list of texts"))
    env = _at(value, ["env"])
    taken_over = _values_in({name: one for name, one in env.items() if name.startswith(_HEADER_VARIABLE)})
    filled = {name: str(one) for name, one in env.items()}
    return ServerEntry(keys, command, tuple(args), None, is_disabled, secrets=taken_over, env=filled)


def _values_in(headers: JsonObject) -> tuple[str, ...]:
    """Those that stand in the file itself."""
    return tuple(one for one in headers.values() if isinstance(one, str) and one and "$" not in one)


def _problem_with_url(client: Client, url: str, value: JsonObject) -> str:
    """Why the guard cannot take this entry over. Empty if it can."""
    is_toml = client.parse is tomllib.loads
    kind = value.get("type", "http")
    # Gemini CLI takes `url` alone for the older transport.
    is_sse = client.name == "Gemini CLI" and "httpUrl" not in value and "type" not in value
    if is_sse or kind not in ("http", "streamable-http", "streamableHttp"):
        return Sentence("it is reached over HTTP with SSE, the older transport, which the guard does not speak")
    if "${" in url:
        return Sentence("its URL is filled in by the client")
    try:
        remote_address(url)
    except WrongAddress as exc:
        return f"its URL {exc}"
    own = _TOML_KEYS if is_toml else _JSON_KEYS
    if others := sorted(set(value) - own - KEPT_KEYS):
        return Sentence("it has {key}, which the guard cannot take over", key=others[0])
    try:
        _variables(client, value)
    except CannotRewrite as exc:
        return str(exc.args[0])
    return ""


def _variables(client: Client, value: JsonObject) -> dict[str, str]:
    """Header -> the variable with its value, as `--header-env` takes it. Raises `CannotRewrite`."""
    if client.parse is tomllib.loads:
        named = value.get("env_http_headers", {})
        bearer = value.get("bearer_token_env_var")
        variables = dict(named) if isinstance(named, dict) else {"": None}
        if bearer is not None:
            variables["Authorization"] = f"Bearer {bearer}" if isinstance(bearer, str) else None
    else:
        headers = value.get("headers", {})
        if not isinstance(headers, dict) or not all(isinstance(one, str) for one in headers.values()):
            headers = {"": ""}
        variables = {name: variable_of(name) for name in headers}
    fit = {name: named for name, named in variables.items() if isinstance(named, str) and _HEADER.fullmatch(name)}
    if len(fit) < len(variables) or len(set(fit.values())) < len(fit):
        raise CannotRewrite(Sentence("its headers cannot be taken over"))
    return fit


def variable_of(header: str) -> str:
    return f"{_HEADER_VARIABLE}{re.sub('[^A-Za-z0-9]', '_', header).upper()}"


# ---------------------------------------------------------------------------------------------------------------------
# Files, notes and backups


@dataclass(frozen=True, slots=True)
class Guarded:
    """One entry that `setup` rewrote: the words that it had (none with a URL), and those that it has now."""

    file: str
    keys: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    # Of an entry with a URL: how it was written, and how it is written now.
    text_before: str = ""
    text_after: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a file would become. `skipped` names entries that stay as they are, and why."""

    file: str
    before: bytes
    after: bytes
    guarded: tuple[Guarded, ...]
    skipped: tuple[str, ...]
    secrets: tuple[str, ...] = ()
    """Values that are never shown."""


def read_file(file: str) -> bytes:
    with open(file, "rb") as opened:
        content = opened.read(_LARGEST_FILE + 1)
    if len(content) > _LARGEST_FILE:
        raise OSError("it is too large")
    return content


def replace_file(file: str, content: bytes) -> None:
    """At once, with the mode that the file has; a link stays a link."""
    target = Path(os.path.realpath(file))
    with written_beside(target, content) as new:
        os.chmod(new, target.stat().st_mode & 0o777)
        os.replace(new, target)


class Notes:
    """What `setup` has written, and the files as they were before, in the guard's own folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / _NOTES

    def read(self) -> list[Guarded]:
        return [
            Guarded(**{**one, **{name: tuple(one[name]) for name in ("keys", "before", "after")}})
            for one in self._content()["guarded"]
        ]

    def original_of(self, written: bytes) -> bytes | None:
        """The file as it was before, if it is still exactly as `setup` wrote it."""
        name = self._content()["originals"].get(_digest(written))
        try:
            return None if name is None else (self._folder / _BACKUPS / name).read_bytes()
        except OSError:
            return None

    def keep(self, plan: Plan) -> None:
        backups = self._folder / _BACKUPS
        backups.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{_digest(plan.before)[:8]}-{os.path.basename(plan.file)}"
        with written_beside(backups / name, plan.before) as new:
            os.replace(new, backups / name)
        noted = [one for one in self.read() if (one.file, one.keys) not in {(g.file, g.keys) for g in plan.guarded}]
        originals = dict(self._content()["originals"])
        earlier = originals.get(_digest(plan.before))
        # If entries were guarded in several steps and the file changed in between, they are undone one by one.
        if earlier is not None or all(one.file != plan.file for one in noted):
            originals[_digest(plan.after)] = earlier or name
        self._save([*noted, *plan.guarded], originals)

    def forget(self, undone: Iterable[Guarded]) -> None:
        gone = {(one.file, one.keys) for one in undone}
        self._save([one for one in self.read() if (one.file, one.keys) not in gone], self._content()["originals"])

    def _save(self, guarded: Sequence[Guarded], originals: Mapping[str, str]) -> None:
        content = {"guarded": [asdict(one) for one in guarded], "originals": originals}
        replace_private(self._file, json.dumps(content, indent=1))

    def _content(self) -> OwnJson:
        try:
            content: OwnJson = json.loads(self._file.read_text("utf-8"))
        except (OSError, ValueError):
            return {"guarded": [], "originals": {}}
        return content


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
