"""How to set a client up on this machine: with a command that is here, for a client that is here."""

import json
import os
import shlex
import sys
from collections.abc import Sequence
from typing import NamedTuple

from openai_responses_mcp.commands.doctor.client_setups import PLACEHOLDER, Client, CommandFinder
from openai_responses_mcp.domain.extras import REPOSITORY, is_run_by_uvx

_NAME = "openai-responses"
_PROGRAM = "openai-responses-mcp"
_WITH_UVX = ("uvx", "--from", REPOSITORY, _PROGRAM)
_TOML_ENTRY = "mcp_servers.{name} = {{command = {command}, args = {arguments}, env_vars = [{key}]}}"


def own_command(executable: str = sys.executable, platform: str = sys.platform) -> tuple[str, ...]:
    """What starts this very program again, wherever it is started from."""
    folder = os.path.dirname(executable)
    if is_run_by_uvx(executable):
        return _WITH_UVX
    script = os.path.join(folder, "openai-responses-mcp.exe" if platform == "win32" else "openai-responses-mcp")
    return (script,) if os.path.isfile(script) else (executable, "-m", "openai_responses_mcp")


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
    if client.program is not None and find_command(client.program) is not None:
        return HowToAdd("run:", _command_line(client, command).replace("OPENAI_API_KEY", key_variable))
    folder = os.path.dirname(path)
    if os.path.exists(path) or (os.path.isdir(folder) and folder != os.path.normpath(home)):
        # A line behind the heading of another table would belong to that one.
        where = "at the top of" if client.section == "mcp_servers" else "into"
        return HowToAdd(f"put {where} {path}:", _entry(client, command, key_variable))
    return None


def _command_line(client: Client, command: Sequence[str]) -> str:
    if client.how_to_add.endswith("'"):  # All of it is JSON in quotes.
        return (
            f"{client.how_to_add.partition(chr(39))[0]}{shlex.quote(json.dumps({'name': _NAME, **_fields(command)}))}"
        )
    before, _, after = client.how_to_add.partition(f" {_PROGRAM} ")
    # Gemini CLI takes options for its own until "--", which stands after the command.
    options = "-- " if after.startswith("-- ") else ""
    return f"{before} {shlex.quote(command[0])} {options}{shlex.join([*command[1:], '--stdio'])}"


def _entry(client: Client, command: Sequence[str], key_variable: str) -> str:
    if client.section == "mcp_servers":
        return _TOML_ENTRY.format(
            name=_NAME,
            command=json.dumps(command[0]),
            arguments=json.dumps([*command[1:], "--stdio"]),
            key=json.dumps(key_variable),
        )
    return json.dumps({client.section: {_NAME: _fields(command, key_variable)}})


def _fields(command: Sequence[str], key_variable: str = "OPENAI_API_KEY") -> dict[str, object]:
    return {"command": command[0], "args": [*command[1:], "--stdio"], "env": {key_variable: PLACEHOLDER}}
