"""The MCP clients: where each keeps its set-up, and how to set it up on this machine."""

import json
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from openai_responses_mcp.domain.extras import REPOSITORY, is_run_by_uvx
from openai_responses_mcp.domain.texts import Sentence

PLACEHOLDER = "YOUR_KEY"

CommandFinder = Callable[[str], str | None]
"""The path of a command, or None."""


# Texts: JSON as clients write it, JSON as people write it, and TOML


_STRING = r'("(?:\\.|[^"\\\n])*")'
_COMMENT = re.compile(_STRING + r"|//[^\n]*|/\*.*?\*/", re.DOTALL)
_TRAILING_COMMA = re.compile(_STRING + r"|,(?=\s*[}\]])")


def with_comments(text: str) -> Any:
    """JSON with comments and trailing commas; they become blanks, so that errors keep their line."""
    for pattern in (_COMMENT, _TRAILING_COMMA):
        text = pattern.sub(lambda match: match[1] or re.sub(r"[^\n]", " ", match[0]), text)
    return json.loads(text)


@dataclass(frozen=True, slots=True)
class Client:
    """Texts are templates, in which {variable} is the one that holds the key."""

    name: str
    files: tuple[str, ...]
    how_to_name_key: str
    """How to pass the key to the server; without writing it into the file, if the client can do that."""
    adding: str = ""
    """The command line that adds the server; empty for a client that has none."""
    section: str = "mcpServers"
    parse: Callable[[str], Any] = field(default=json.loads)
    hands_environment_on: bool = False
    fills_in: str | None = None
    """The pattern of a value that the client replaces with that of a variable; None if it never does."""


CLIENTS = (
    Client(
        "Claude Code",
        ("{home}/.claude.json", "{folder}/.mcp.json"),
        "write ${{{variable}}} there",
        "claude mcp add openai-responses --scope user --env {variable}=YOUR_KEY -- {program} {arguments}",
        hands_environment_on=True,
        fills_in=r"\$\{\w+(:-.*)?\}",
    ),
    Client(
        "Codex",
        ("{codex}/config.toml", "{folder}/.codex/config.toml"),
        'name it with env_vars = ["{variable}"]',
        "codex mcp add openai-responses --env {variable}=YOUR_KEY -- {program} {arguments}",
        section="mcp_servers",
        parse=tomllib.loads,
    ),
    Client(
        "Claude Desktop",
        ("{app_data}/Claude/claude_desktop_config.json",),
        "keep the file to yourself",
    ),
    Client(
        "Cursor",
        ("{home}/.cursor/mcp.json", "{folder}/.cursor/mcp.json"),
        "write ${{env:{variable}}} there",
        parse=with_comments,
        hands_environment_on=True,
        fills_in=r"\$\{env:\w+\}",
    ),
    Client(
        "VS Code",
        ("{folder}/.vscode/mcp.json", "{app_data}/Code/User/mcp.json"),
        "write ${{input:openai-api-key}} there, with an entry under inputs, and VS Code asks for it",
        "code --add-mcp {json}",
        section="servers",
        parse=with_comments,
        hands_environment_on=True,
        fills_in=r"\$\{(env|input):[^}]+\}",
    ),
    Client(
        "Gemini CLI",
        ("{home}/.gemini/settings.json", "{folder}/.gemini/settings.json"),
        "write ${variable} there, under env",
        # It takes options for its own until "--".
        "gemini mcp add -s user -e {variable}=YOUR_KEY openai-responses {program} -- {arguments}",
        parse=with_comments,
        fills_in=r"\$(\w+|\{\w+\})",
    ),
)


# Places


def files_of(client: Client, environ: Mapping[str, str], folder: str, platform: str = sys.platform) -> tuple[str, ...]:
    """Where the client's set-up may be, the user's own file or that of the project in `folder`."""
    home = home_of(environ, platform)
    places = {
        "home": home,
        "folder": folder,
        "codex": environ.get("CODEX_HOME") or f"{home}/.codex",
        "app_data": _app_data(home, environ, platform),
    }
    return tuple(dict.fromkeys(os.path.normpath(file.format(**places)) for file in client.files))


def own_files_of(client: Client, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The user's own files. Those of a project may come from others."""
    own = tuple(file for file in client.files if not file.startswith("{folder}"))
    return files_of(replace(client, files=own), environ, "")


def home_of(environ: Mapping[str, str], platform: str = sys.platform) -> str:
    names = ("USERPROFILE", "HOME") if platform == "win32" else ("HOME",)
    return next((environ[name] for name in names if environ.get(name)), os.path.expanduser("~"))


def _app_data(home: str, environ: Mapping[str, str], platform: str) -> str:
    if platform == "win32":
        return environ.get("APPDATA") or f"{home}/AppData/Roaming"
    return f"{home}/Library/Application Support" if platform == "darwin" else f"{home}/.config"


# How to set a client up: with a command that is here, for a client that is here

_NAME = "openai-responses"
_PROGRAM = "openai-responses-mcp"
_WITH_UVX = ("uvx", "--from", REPOSITORY, _PROGRAM)
_TOML_ENTRY = "mcp_servers.{name} = {{command = {command}, args = {arguments}, env_vars = [{key}]}}"


def own_command(
    find_command: CommandFinder, executable: str = sys.executable, platform: str = sys.platform
) -> tuple[str, ...]:
    """The command that starts this program again, from any folder. A link on the PATH is preferred: it is shorter."""
    folder = os.path.dirname(executable)
    if is_run_by_uvx(executable):
        return _WITH_UVX
    script = os.path.join(folder, "openai-responses-mcp.exe" if platform == "win32" else "openai-responses-mcp")
    if not os.path.isfile(script):
        return (executable, "-m", "openai_responses_mcp")
    found = find_command(_PROGRAM)
    return (found if found is not None and os.path.samefile(found, script) else script,)


class HowToAdd(NamedTuple):
    """`words` say what to do with `paste`: a command to run, or an entry for a file."""

    words: str
    paste: str


def maybe_how_to_add(
    client: Client, path: str, key_variable: str, command: Sequence[str], find_command: CommandFinder, home: str
) -> HowToAdd | None:
    """None when there is no sign of the client here.

    A sign is its command, or the file or folder that it keeps its set-up in.
    """
    if client.adding and find_command(client.adding.partition(" ")[0]) is not None:
        return HowToAdd(Sentence("run:"), command_line(client, command, key_variable))
    folder = os.path.dirname(path)
    if os.path.exists(path) or (os.path.isdir(folder) and folder != os.path.normpath(home)):
        # Further down, the line would belong to the table above it.
        words = (
            Sentence("put at the top of {file}:", file=path)
            if client.section == "mcp_servers"
            else Sentence("put into {file}:", file=path)
        )
        return HowToAdd(words, entry_for(client, command, key_variable))
    return None


def command_line(client: Client, command: Sequence[str], key_variable: str) -> str:
    """What adds the server, on the command line of a client that has one."""
    entry = {"name": _NAME, **_fields(command, key_variable)}
    return client.adding.format(
        variable=key_variable,
        program=shlex.quote(command[0]),
        arguments=shlex.join([*command[1:], "--stdio"]),
        json=shlex.quote(json.dumps(entry, separators=(",", ":"))),
    )


def entry_for(client: Client, command: Sequence[str], key_variable: str) -> str:
    """What adds the server, in the file of the client."""
    if client.section == "mcp_servers":
        return _TOML_ENTRY.format(
            name=_NAME,
            command=json.dumps(command[0]),
            arguments=json.dumps([*command[1:], "--stdio"]),
            key=json.dumps(key_variable),
        )
    return json.dumps({client.section: {_NAME: _fields(command, key_variable)}})


def _fields(command: Sequence[str], key_variable: str) -> dict[str, object]:
    return {"command": command[0], "args": [*command[1:], "--stdio"], "env": {key_variable: PLACEHOLDER}}
