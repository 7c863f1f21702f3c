"""`guard setup`: puts the guard in front of every server that the clients on this machine start, and takes it out again.

    guard setup [CLIENT…] [--server NAME…] [--policy FILE] [--project] [--dry-run] [--yes] [--undo]

A diff is shown first, with secrets as labels. What was written is noted in the guard's own folder, with a backup of each
file, so that `--undo` finds it. Exit 0: done, or nothing to do; 1: some files could not be written; 2: wrong usage, or
there is no terminal to ask on.
"""

import argparse
import difflib
import hashlib
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from openai_responses_mcp.commands.doctor.clients import CLIENTS, Client, files_of, own_files_of
from openai_responses_mcp.commands.doctor.entries import Entry, maybe_guard, starts_this_program
from openai_responses_mcp.desk.terminal.typed_values import CommandParser, nearest, words_here
from openai_responses_mcp.desk.words import Words, language_of
from openai_responses_mcp.domain.extras import REPOSITORY, needs_extra
from openai_responses_mcp.domain.masking import MASK
from openai_responses_mcp.domain.texts import Sentence, visible
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import OwnJson
from openai_responses_mcp.gate.secrets.masking import Masking
from openai_responses_mcp.gate.sql.own_files import own_folder
from openai_responses_mcp.guard.client_files import (
    CannotRewrite,
    Place,
    ServerEntry,
    entries_in,
    entry_text,
    guarded_url,
    rewritten,
    with_entry_text,
)
from openai_responses_mcp.guard.login import login_command

PROGRAM = "openai-responses-mcp guard setup"
KEYS: Mapping[str, str] = {
    "claude-code": "Claude Code",
    "claude-desktop": "Claude Desktop",
    "cursor": "Cursor",
    "vscode": "VS Code",
    "codex": "Codex",
    "gemini": "Gemini CLI",
}
_GUARDED = Sentence("it is guarded already")
_NOTES = "setup.json"
_BACKUPS = "backups"
_LARGEST_FILE = 16 * 1024 * 1024


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
    """What of the file is never shown."""


def main(
    argv: Sequence[str],
    environ: Mapping[str, str] = os.environ,
    ask: Callable[[str], str] | None = input,
    folder: str | None = None,
) -> int:
    """`ask` puts a question to the person; None where there is no terminal."""
    arguments = _parser().parse_args(list(argv))
    here = folder or os.getcwd()
    clients = [one for one in CLIENTS if not arguments.clients or one.name in arguments.clients]
    notes = Notes(Path(own_folder(environ)))
    words = Words(language_of(environ))
    try:
        policy = None if arguments.policy is None else checked_policy(arguments.policy)
    except CannotUsePolicy as exc:
        return _complain(words.of(exc.args[0]), 2)
    if arguments.undo:
        plans = _undoing(notes, clients, environ, here, arguments)
    else:
        plans = _guarding(notes, clients, environ, here, arguments, policy)
    changing = [plan for plan in plans if plan.before != plan.after]
    _show(plans, changing, words)
    if not changing:
        _say(words("nothing to change"))
        return 0
    if arguments.dry_run:
        return 0
    if not arguments.yes:
        if ask is None or not sys.stdin.isatty():
            return _complain(words("no terminal to ask on"), 2)
        question = words("write one file" if len(changing) == 1 else "write files", count=len(changing))
        if ask(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
            _say(words("nothing written"))
            return 0
    return _write(changing, notes, words, is_undo=arguments.undo)


def _parser() -> argparse.ArgumentParser:
    parser = client_parser(PROGRAM, "Put the guard in front of the servers of your MCP clients.")
    parser.add_argument(
        "--policy", metavar="FILE", help="a policy file for every guard, also for those that setup made before"
    )
    parser.add_argument("--project", action="store_true", help="the files of this folder instead of the user's own")
    parser.add_argument("--dry-run", action="store_true", help="show what would be written, and write nothing")
    parser.add_argument("--yes", action="store_true", help="write without asking")
    parser.add_argument("--undo", action="store_true", help="take the guard out again")
    return parser


def client_parser(program: str, description: str) -> argparse.ArgumentParser:
    """For a command about the servers of clients: which clients, and which servers."""
    parser = CommandParser(program, description=description, allow_abbrev=False)
    parser.add_argument("clients", metavar="CLIENT", nargs="*", type=_client, help=f"one of {', '.join(KEYS)}")
    parser.add_argument("--server", metavar="NAME", action="append", default=[], help="only this server; repeatable")
    return parser


def _client(key: str) -> str:
    if key not in KEYS:
        known = words_here()("unknown client", word=key, near=nearest(key, KEYS), known=", ".join(KEYS))
        raise argparse.ArgumentTypeError(known)
    return KEYS[key]


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


# ---------------------------------------------------------------------------------------------------------------------
# What would change


def _guarding(
    notes: "Notes",
    clients: Iterable[Client],
    environ: Mapping[str, str],
    folder: str,
    arguments: argparse.Namespace,
    policy: str | None,
) -> list[Plan]:
    own = own_command(environ)
    made = {(one.file, one.keys): one for one in notes.read()}
    plans = []
    for client, file, project in _places(clients, environ, folder, arguments.project):
        try:
            before = _read(file)
            entries = entries_in(client, before.decode("utf-8-sig"), project)
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as exc:
            plans.append(
                Plan(
                    file,
                    b"",
                    b"",
                    (),
                    (Sentence("{file}: it cannot be read ({why})", file=file, why=type(exc).__name__),),
                )
            )
            continue
        guarded: list[tuple[ServerEntry, Guarded]] = []
        skipped: list[str] = []
        for entry in entries:
            if arguments.server and entry.place.name not in arguments.server:
                continue
            earlier = made.get((file, entry.place.keys))
            if policy is not None and earlier is not None and _is_unchanged(client, before, entry, earlier):
                words = _with_policy(earlier.after, policy)
                if words != earlier.after:
                    guarded.append((entry, replace(earlier, after=words)))
                    continue
            why_not = _why_not(entry)
            if why_not == _GUARDED and policy is not None and earlier is None:
                why_not = Sentence("it was guarded by hand: write --policy into its command yourself")
            if why_not is not None:
                skipped.append(Sentence("{name} in {file}: {why}", name=entry.place.name, file=file, why=why_not))
                continue
            name = entry.place.name.replace("/", "-")[:64]
            rule = () if policy is None else ("--policy", policy)
            headers = tuple(word for header in entry.headers for word in ("--header-env", header))
            behind = ("--", *entry.words) if entry.url is None else ("--url", entry.url, *headers)
            words = (*own, "guard", "--name", name, *rule, *behind)
            guarded.append((entry, Guarded(file, entry.place.keys, () if entry.url else entry.words, words)))
        plans.append(_guarding_plan(client, file, before, guarded, skipped))
    return plans


def _guarding_plan(
    client: Client, file: str, before: bytes, guarded: Sequence[tuple[ServerEntry, Guarded]], skipped: list[str]
) -> Plan:
    def change(text: str, one: Guarded) -> tuple[str, Guarded]:
        entry = by_keys[one.keys]
        if entry.url is not None:
            after = guarded_url(client, text, entry, one.after)
            one = replace(one, text_before=entry_text(client, text, entry.place))
        else:
            after = rewritten(client, text, {entry.place: one.after})
        is_whole = bool(one.text_before)
        return after, replace(one, text_after=entry_text(client, after, entry.place) if is_whole else "")

    by_keys = {one.keys: entry for entry, one in guarded}
    plan = _plan(file, before, [one for _, one in guarded], skipped, change)
    return replace(plan, secrets=tuple(secret for entry, _ in guarded for secret in entry.secrets))


def _why_not(entry: ServerEntry) -> str | None:
    """Why this entry stays as it is; None where the guard goes in front of it."""
    if entry.problem:
        return entry.problem
    if entry.url is not None:
        return Sentence("it is disabled") if entry.is_disabled else None
    words = tuple(word for argument in entry.args for word in argument.split())
    known = Entry(entry.place.name, entry.command or "", words, {}, ())
    if maybe_guard(known) is not None:
        return _GUARDED
    if entry.is_disabled:
        return Sentence("it is disabled")
    return Sentence("it is this product's own server") if starts_this_program(known) else None


def _is_unchanged(client: Client, before: bytes, entry: ServerEntry, made: Guarded) -> bool:
    """Whether this entry is still what `setup` wrote."""
    return not entry.is_disabled and entry.words == made.after and _is_as_written(client, before, made)


def _with_policy(words: tuple[str, ...], policy: str) -> tuple[str, ...]:
    """A command that `setup` wrote, with this policy in the place of the one that it had."""
    at = words.index("--name") + 2
    behind = words[at + 2 :] if words[at] == "--policy" else words[at:]
    return (*words[:at], "--policy", policy, *behind)


def _undoing(
    notes: "Notes", clients: Sequence[Client], environ: Mapping[str, str], folder: str, arguments: argparse.Namespace
) -> list[Plan]:
    by_file: dict[str, list[Guarded]] = {}
    for one in notes.read():
        if not arguments.server or one.keys[-1] in arguments.server:
            by_file.setdefault(one.file, []).append(one)
    plans = []
    files = [(one, file) for one in clients for file in files_of(one, environ, folder) if file in by_file]
    for client, file in files:
        noted = by_file[file]
        try:
            before = _read(file)
        except OSError as exc:
            plans.append(
                Plan(
                    file,
                    b"",
                    b"",
                    (),
                    (Sentence("{file}: it cannot be read ({why})", file=file, why=type(exc).__name__),),
                )
            )
            continue
        original = notes.original_of(before) if not arguments.server else None
        if original is not None:
            plans.append(Plan(file, before, original, tuple(noted), (), _secrets_in(client, original, noted)))
            continue
        undone: list[Guarded] = []
        skipped: list[str] = []
        for one in noted:
            place = Place(one.keys)
            now = {entry.place: entry for entry in _entries_at(client, before, place)}.get(place)
            if now is None or now.words != one.after or not _is_as_written(client, before, one):
                skipped.append(
                    Sentence("{name} in {file}: it has changed since, so it stays as it is", name=place.name, file=file)
                )
                continue
            undone.append(one)
        plan = _plan(file, before, undone, skipped, partial(_undone, client))
        plans.append(replace(plan, secrets=_secrets_in(client, plan.after, undone)))
    return plans


def _secrets_in(client: Client, content: bytes, entries: Sequence[Guarded]) -> tuple[str, ...]:
    places = {Place(one.keys) for one in entries}
    found = [entry for place in places for entry in _entries_at(client, content, place) if entry.place == place]
    return tuple(secret for entry in found for secret in entry.secrets)


def _is_as_written(client: Client, before: bytes, one: Guarded) -> bool:
    """An entry with a URL is put back as a whole, and a change made since must not get lost."""
    try:
        return not one.text_after or entry_text(client, _text(before), Place(one.keys)) == one.text_after
    except CannotRewrite:
        return False


def _undone(client: Client, text: str, one: Guarded) -> tuple[str, Guarded]:
    if one.text_before:
        return with_entry_text(client, text, Place(one.keys), one.text_before), one
    return rewritten(client, text, {Place(one.keys): one.before}), one


def _entries_at(client: Client, before: bytes, place: Place) -> list[ServerEntry]:
    project = place.keys[1] if place.keys[0] == "projects" else None
    try:
        return entries_in(client, before.decode("utf-8-sig"), project)
    except ValueError:
        return []


def _plan(
    file: str,
    before: bytes,
    entries: Sequence[Guarded],
    skipped: list[str],
    change: Callable[[str, Guarded], tuple[str, Guarded]],
) -> Plan:
    """Each entry by itself, so that one that cannot be rewritten does not hold up the others."""
    text, done = _text(before), []
    for one in entries:
        try:
            text, changed = change(text, one)
        except CannotRewrite as exc:
            skipped.append(Sentence("{name} in {file}: {why}", name=one.keys[-1], file=file, why=exc.args[0]))
        else:
            done.append(changed)
    mark = b"\xef\xbb\xbf" if before.startswith(b"\xef\xbb\xbf") else b""
    return Plan(file, before, mark + text.encode(), tuple(done), tuple(skipped))


def _text(content: bytes) -> str:
    return content.decode("utf-8-sig")


def _places(
    clients: Iterable[Client], environ: Mapping[str, str], folder: str, is_project: bool
) -> list[tuple[Client, str, str | None]]:
    """The user's own files, or those of the folder. Claude Code keeps servers of a folder in the user's file, too."""
    found: list[tuple[Client, str, str | None]] = []
    for client in clients:
        own = own_files_of(client, environ)
        for file in files_of(client, environ, folder):
            # In the user's own folder both are the same file.
            if (file not in own) == is_project:
                found.append((client, file, None))
            elif is_project and os.path.basename(file) == ".claude.json":
                found.append((client, file, folder))
    return found


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
            _say(words("left alone", entry=words.of(skipped)))


def _say(text: str) -> None:
    sys.stdout.write(f"{visible(text)}\n")


def _complain(text: str, code: int) -> int:
    sys.stderr.write(f"{PROGRAM}: {visible(text)}\n")
    return code


def _write(plans: Sequence[Plan], notes: "Notes", words: Words, *, is_undo: bool) -> int:
    failed = 0
    for plan in plans:
        try:
            if _read(plan.file) != plan.before:
                raise CannotRewrite(Sentence("it has changed since it was read"))
            if not is_undo:
                notes.keep(plan)
            _replace(plan.file, plan.after)
        except (OSError, CannotRewrite) as exc:
            why = words.of(exc.args[0]) if isinstance(exc, CannotRewrite) else str(exc)
            failed += _complain(words("not written", file=plan.file, why=why), 1)
            continue
        if is_undo:
            notes.forget(plan.guarded)
        names = ", ".join(shlex.quote(one.keys[-1]) for one in plan.guarded)
        key = "no longer guarded" if is_undo else "guarded"
        _say(words(key, names=names, count=len(plan.guarded), file=plan.file))
        for one in () if is_undo else plan.guarded:
            if one.text_after and not any(word.startswith("Authorization=") for word in one.after):
                command = Masking().text(login_command(one.after[one.after.index("--url") + 1]))
                _say(words("if it asks for a login", name=shlex.quote(one.keys[-1]), command=command))
    if not is_undo and failed < len(plans):
        _say(words("restart your clients"))
    return 1 if failed else 0


def _read(file: str) -> bytes:
    with open(file, "rb") as opened:
        content = opened.read(_LARGEST_FILE + 1)
    if len(content) > _LARGEST_FILE:
        raise OSError("it is too large")
    return content


def _replace(file: str, content: bytes) -> None:
    """At once, with the mode that the file has; a link stays a link."""
    target = os.path.realpath(file)
    mode = os.stat(target).st_mode & 0o777
    descriptor, name = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".setup-")
    try:
        with os.fdopen(descriptor, "wb") as written:
            written.write(content)
            written.flush()
            os.fsync(written.fileno())
        os.chmod(name, mode)
        os.replace(name, target)
    finally:
        with suppress(FileNotFoundError):  # It has become the file itself.
            os.unlink(name)


class Notes:
    """What `setup` has written, and the files as they were before, in the guard's own folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / _NOTES

    def read(self) -> list[Guarded]:
        return [
            Guarded(
                one["file"],
                tuple(one["keys"]),
                tuple(one["before"]),
                tuple(one["after"]),
                one.get("text_before", ""),
                one.get("text_after", ""),
            )
            for one in self._content()["guarded"]
        ]

    def original_of(self, written: bytes) -> bytes | None:
        """The file as it was, where it is still exactly what was written."""
        name = self._content()["originals"].get(_digest(written))
        try:
            return None if name is None else (self._folder / _BACKUPS / name).read_bytes()
        except OSError:
            return None

    def keep(self, plan: Plan) -> None:
        backups = self._folder / _BACKUPS
        backups.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{_digest(plan.before)[:8]}-{os.path.basename(plan.file)}"
        _write_private(backups / name, plan.before)
        noted = [one for one in self.read() if (one.file, one.keys) not in {(g.file, g.keys) for g in plan.guarded}]
        originals = dict(self._content()["originals"])
        earlier = originals.get(_digest(plan.before))
        # What was guarded in several steps is taken out entry by entry, unless nothing else has changed in between.
        if earlier is not None or all(one.file != plan.file for one in noted):
            originals[_digest(plan.after)] = earlier or name
        self._save([*noted, *plan.guarded], originals)

    def forget(self, undone: Iterable[Guarded]) -> None:
        gone = {(one.file, one.keys) for one in undone}
        self._save([one for one in self.read() if (one.file, one.keys) not in gone], self._content()["originals"])

    def _save(self, guarded: Sequence[Guarded], originals: Mapping[str, str]) -> None:
        content = {"guarded": [asdict(one) for one in guarded], "originals": originals}
        _write_private(self._file, json.dumps(content, indent=1).encode())

    def _content(self) -> OwnJson:
        try:
            content: OwnJson = json.loads(self._file.read_text("utf-8"))
        except (OSError, ValueError):
            return {"guarded": [], "originals": {}}
        return content


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write_private(path: Path, content: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".setup-")
    with os.fdopen(descriptor, "wb") as written:
        written.write(content)
    os.replace(name, path)
