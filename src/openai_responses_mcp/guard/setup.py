"""`guard setup`: puts the guard in front of every server that the clients on this machine start, and takes it out again.

    guard setup [CLIENT…] [--server NAME…] [--policy FILE] [--project] [--dry-run] [--yes] [--undo]

A diff is shown first, with secrets as labels. Exit 0: done, or nothing to do; 1: some files could not be written; 2: wrong
usage, or there is no terminal to ask on.
"""

import argparse
import difflib
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from openai_responses_mcp.commands.doctor.clients import CLIENTS, Client
from openai_responses_mcp.commands.live import fitted
from openai_responses_mcp.desk.terminal.console import words_here
from openai_responses_mcp.desk.terminal.parsing import CommandParser, nearest
from openai_responses_mcp.desk.words import Words
from openai_responses_mcp.domain.extras import REPOSITORY, needs_extra
from openai_responses_mcp.domain.masking import MASK
from openai_responses_mcp.domain.texts import Sentence, language_of, visible
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.secrets.masking import Masking
from openai_responses_mcp.gate.sql.own_files import own_folder
from openai_responses_mcp.guard.client_files import CannotRewrite, Notes, Plan, read_file, replace_file
from openai_responses_mcp.guard.setup_plans import ClientFile, files_with_servers, guarding, undoing

PROGRAM = "openai-responses-mcp guard setup"
KEYS: Mapping[str, str] = {
    "claude-code": "Claude Code",
    "claude-desktop": "Claude Desktop",
    "cursor": "Cursor",
    "vscode": "VS Code",
    "codex": "Codex",
    "gemini": "Gemini CLI",
}


def main(
    argv: Sequence[str],
    environ: Mapping[str, str] = os.environ,
    ask: Callable[[str], str] | None = input,
    folder: str | None = None,
) -> int:
    """`ask` puts a question to the person; None if there is no terminal."""
    parser = client_parser(PROGRAM, "Put the guard in front of the servers of your MCP clients.")
    parser.add_argument(
        "--policy", metavar="FILE", help="a policy file for every guard, also for those that setup made before"
    )
    parser.add_argument("--project", action="store_true", help="the files of this folder instead of the user's own")
    parser.add_argument("--dry-run", action="store_true", help="show what would be written, and write nothing")
    parser.add_argument("--yes", action="store_true", help="write without asking")
    parser.add_argument("--undo", action="store_true", help="take the guard out again")
    arguments, clients = parsed(parser, argv)
    here, words = folder or os.getcwd(), Words(language_of(environ))
    notes = Notes(Path(own_folder(environ)))
    try:
        policy = None if arguments.policy is None else checked_policy(arguments.policy)
    except CannotUsePolicy as exc:
        return _complain(words.of(exc.args[0]), 2)
    if arguments.undo:
        check_servers(parser, arguments.server, [one.keys[-1] for one in notes.read()])
        plans = undoing(notes, clients, environ, here, arguments.server)
    else:
        files = files_with_servers(clients, environ, here, is_project=arguments.project)
        names = [one.name for file in files if isinstance(file, ClientFile) for one in file.entries]
        check_servers(parser, arguments.server, names)
        plans = guarding(notes, files, own_command(environ), arguments.server, policy)
    changing = [plan for plan in plans if plan.before != plan.after]
    _show(plans, changing, words)
    if not changing:
        _say(words("Nothing to change."))
        return 0
    if arguments.dry_run or not arguments.yes:
        says = (
            "To guard no longer: {names} ({count} in {file})"
            if arguments.undo
            else "To guard: {names} ({count} in {file})"
        )
        for plan in changing:
            _say_fitted(words(says, names=_names(plan), count=len(plan.guarded), file=plan.file))
    if arguments.dry_run:
        _say(words("Nothing was written. To write it, leave out --dry-run."))
        return 0
    if not arguments.yes:
        if ask is None or not sys.stdin.isatty():
            return _complain(words("there is no terminal to ask on, so nothing was written; add --yes to write it"), 2)
        question = words("Write 1 file?" if len(changing) == 1 else "Write {count} files?", count=len(changing))
        if ask(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
            _say(words("Nothing was written."))
            return 0
    return _write(changing, notes, words, is_undo=arguments.undo)


def client_parser(program: str, description: str) -> argparse.ArgumentParser:
    """For a command about the servers of clients: which clients, and which servers."""
    parser = CommandParser(program, description=description, allow_abbrev=False)
    parser.add_argument("clients", metavar="CLIENT", nargs="*", help=f"one of {', '.join(KEYS)}")
    parser.add_argument("--server", metavar="NAME", action="append", default=[], help="only this server; repeatable")
    return parser


def parsed(parser: argparse.ArgumentParser, argv: Sequence[str]) -> tuple[argparse.Namespace, list[Client]]:
    """With the clients that are meant: those that are named, or all."""
    arguments = parser.parse_args(list(argv))
    for key in arguments.clients:
        if key not in KEYS:
            near = nearest(key, KEYS)
            parser.error(
                words_here()("unknown client {word}{near} ({known})", word=key, near=near, known=", ".join(KEYS))
            )
    named = {KEYS[key] for key in arguments.clients}
    return arguments, [one for one in CLIENTS if not named or one.name in named]


def check_servers(parser: argparse.ArgumentParser, wanted: Sequence[str], known: Iterable[str]) -> None:
    """Ends with a usage error for a name that no server has."""
    known = sorted(set(known))
    for name in wanted:
        if name not in known:
            parser.error(words_here()("unknown server {word}{near}", word=name, near=nearest(name, known)))


class CannotUsePolicy(Exception):
    """The text says why."""


def checked_policy(file: str) -> str:
    """Its whole path. A guard with a policy that cannot be read would not start. Raises `CannotUsePolicy`."""
    path = os.path.abspath(os.path.expanduser(file))
    try:
        from openai_responses_mcp.desk.opening import open_rules

        open_rules(path)
    except AgentsError as exc:
        raise CannotUsePolicy(exc.message) from None
    except ModuleNotFoundError as exc:
        raise CannotUsePolicy(needs_extra("guard", exc.name)) from None
    return path


def own_command(environ: Mapping[str, str], python: str = sys.executable) -> tuple[str, ...]:
    """How a client starts this program: the installed command, or the same way that this process was started."""
    found = shutil.which("openai-responses-mcp", path=environ.get("PATH"))
    if found is not None and not _is_passing(found):
        return (os.path.abspath(found),)
    if _is_passing(python):
        return ("uvx", "--from", f"openai-responses-mcp[guard] @ {REPOSITORY}", "openai-responses-mcp")
    return (python, "-m", "openai_responses_mcp")


def _is_passing(path: str) -> bool:
    """uvx runs programs from its cache, where they are not kept."""
    parts = Path(path).parts
    return "archive-v0" in parts or "environments-v2" in parts


# ---------------------------------------------------------------------------------------------------------------------
# Showing and writing


def _show(plans: Sequence[Plan], changing: Sequence[Plan], words: Words) -> None:
    masking = Masking()
    for plan in changing:
        old, new = (side.decode("utf-8", "replace").splitlines() for side in (plan.before, plan.after))
        for line in difflib.unified_diff(old, new, plan.file, plan.file, lineterm="", n=0):
            if not line.startswith("@@"):
                for secret in plan.secrets:
                    line = line.replace(json.dumps(secret)[1:-1], MASK).replace(secret, MASK)
                _say(masking.text(line))
        _say("")
    for plan in plans:
        for skipped in plan.skipped:
            _say_fitted(words("Left alone: {entry}", entry=words.of(skipped)))


def _names(plan: Plan) -> str:
    return ", ".join(shlex.quote(one.keys[-1]) for one in plan.guarded)


def _say(text: str) -> None:
    sys.stdout.write(f"{visible(text)}\n")


def _say_fitted(text: str) -> None:
    sys.stdout.write(fitted(visible(text), sys.stdout))


def _complain(text: str, code: int) -> int:
    sys.stderr.write(fitted(f"{PROGRAM}: {visible(text)}", sys.stderr))
    return code


def _write(plans: Sequence[Plan], notes: Notes, words: Words, *, is_undo: bool) -> int:
    failed = 0
    for plan in plans:
        try:
            if read_file(plan.file) != plan.before:
                raise CannotRewrite(Sentence("it has changed since it was read"))
            if not is_undo:
                notes.keep(plan)
            replace_file(plan.file, plan.after)
        except (OSError, CannotRewrite) as exc:
            why = words.of(exc.args[0]) if isinstance(exc, CannotRewrite) else str(exc)
            failed += _complain(words("{file} was not written: {why}", file=plan.file, why=why), 1)
            continue
        if is_undo:
            notes.forget(plan.guarded)
        says = "No longer guarded: {names} ({count} in {file})" if is_undo else "Guarded: {names} ({count} in {file})"
        _say_fitted(words(says, names=_names(plan), count=len(plan.guarded), file=plan.file))
        for one in () if is_undo else plan.guarded:
            if one.text_after and not any(word.startswith("Authorization=") for word in one.after):
                # With the HTTP client, which no other set-up needs.
                from openai_responses_mcp.guard.remote import login_command

                command = Masking().text(login_command(one.after[one.after.index("--url") + 1]))
                _say(words("If {name} asks for a login: {command}", name=shlex.quote(one.keys[-1]), command=command))
    if not is_undo and failed < len(plans):
        says = (
            "Restart your clients. Decide with `{program} approvals watch`; undo with `{program} guard setup --undo`."
        )
        _say_fitted(words(says, program="openai-responses-mcp"))
    return 1 if failed else 0
