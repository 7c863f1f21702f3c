"""Plans of `guard setup`: how to put the guard in front of the servers in a client's file, or take it out again.

Nothing is written here. For each entry that a plan leaves alone, it gives the reason.
"""

import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from openai_responses_mcp.commands.doctor.clients import Client, files_of, own_files_of
from openai_responses_mcp.commands.doctor.entries import Entry, maybe_guard, starts_this_program
from openai_responses_mcp.domain.texts import Sentence
from openai_responses_mcp.guard.client_files import (
    CannotRewrite,
    Guarded,
    Notes,
    Plan,
    ServerEntry,
    entries_in,
    entries_of_folders,
    read_file,
)
from openai_responses_mcp.guard.rewriting import entry_text, guarded_url, rewritten, with_entry_text

_GUARDED_BY_HAND = Sentence("it was guarded or changed by hand: write --policy into its command, before --")


class ClientFile(NamedTuple):
    """A client's file and its entries. `elsewhere` has the entries of other folders, each with its folder."""

    client: Client
    path: str
    content: bytes
    entries: Sequence[ServerEntry]
    elsewhere: Sequence[tuple[str, ServerEntry]] = ()


def files_with_servers(
    clients: Iterable[Client], environ: Mapping[str, str], folder: str, *, is_project: bool
) -> list[ClientFile | Plan]:
    """The files that exist. A file that cannot be read is a plan that changes nothing and says why."""
    found: list[ClientFile | Plan] = []
    for client, path, project in _places(clients, environ, folder, is_project):
        try:
            content = read_file(path)
            text = _text(content)
            elsewhere = entries_of_folders(client, text) if not is_project else ()
            found.append(ClientFile(client, path, content, entries_in(client, text, project), elsewhere))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as exc:
            found.append(_unreadable(path, exc))
    return found


def _unreadable(file: str, exc: Exception) -> Plan:
    why = Sentence("{file}: it cannot be read ({why})", file=file, why=getattr(exc, "strerror", None) or exc)
    return Plan(file, b"", b"", (), (why,))


def guarding(
    notes: Notes, files: Sequence[ClientFile | Plan], own: Sequence[str], servers: Sequence[str], policy: str | None
) -> list[Plan]:
    made = {(one.file, one.keys): one for one in notes.read()}
    plans = []
    for file in files:
        if isinstance(file, Plan):
            plans.append(file)
            continue
        client, path, before = file.client, file.path, file.content
        guarded: list[tuple[ServerEntry, Guarded]] = []
        skipped: list[str] = []
        for entry in file.entries:
            if servers and entry.name not in servers:
                continue
            earlier = made.get((path, entry.keys))
            if policy is not None and earlier is not None and _is_unchanged(client, before, entry, earlier):
                words = _with_policy(earlier.after, policy)
                if words != earlier.after:
                    guarded.append((entry, replace(earlier, after=words)))
                    continue
            why_not = _GUARDED_BY_HAND if _lacks(policy, entry) else _why_not(entry)
            if why_not is not None:
                skipped.append(_left_alone(entry.name, path, why_not))
                continue
            name = entry.name.replace("/", "-")[:64]
            rule = () if policy is None else ("--policy", policy)
            headers = tuple(word for header in entry.headers for word in ("--header-env", header))
            behind = ("--", *entry.words) if entry.url is None else ("--url", entry.url, *headers)
            words = (*own, "guard", "--name", name, *rule, *behind)
            guarded.append((entry, Guarded(path, entry.keys, () if entry.url else entry.words, words)))
        for folder, entry in () if servers else file.elsewhere:
            lacks_policy = _lacks(policy, entry)
            if _why_not(entry) is None or (lacks_policy and (path, entry.keys) in made):
                command = f"cd {shlex.quote(folder)} && openai-responses-mcp guard setup --project"
                command += "" if policy is None else f" --policy {shlex.quote(policy)}"
                why = Sentence("it belongs to a project: {command}", command=command)
                skipped.append(_left_alone(entry.name, path, why))
            elif lacks_policy:
                skipped.append(_left_alone(entry.name, path, _GUARDED_BY_HAND))
        plans.append(_guarding_plan(client, path, before, guarded, skipped))
    return plans


def _lacks(policy: str | None, entry: ServerEntry) -> bool:
    """True for a guarded entry without this policy."""
    return policy is not None and policy not in entry.words and maybe_guard(_known(entry)) is not None


def _known(entry: ServerEntry) -> Entry:
    words = tuple(word for argument in entry.args for word in argument.split())
    return Entry(entry.name, entry.command or "", words, {}, ())


def _left_alone(name: str, file: str, why: str) -> Sentence:
    return Sentence("{name} in {file}: {why}", name=name, file=file, why=why)


def _guarding_plan(
    client: Client, file: str, before: bytes, guarded: Sequence[tuple[ServerEntry, Guarded]], skipped: list[str]
) -> Plan:
    def change(text: str, one: Guarded) -> tuple[str, Guarded]:
        entry = by_keys[one.keys]
        if entry.url is not None:
            after = guarded_url(client, text, entry, one.after)
            one = replace(one, text_before=entry_text(client, text, entry.keys))
        else:
            after = rewritten(client, text, entry.keys, one.after)
        is_whole = bool(one.text_before)
        return after, replace(one, text_after=entry_text(client, after, entry.keys) if is_whole else "")

    by_keys = {one.keys: entry for entry, one in guarded}
    plan = _plan(file, before, [one for _, one in guarded], skipped, change)
    return replace(plan, secrets=tuple(secret for entry, _ in guarded for secret in entry.secrets))


def _why_not(entry: ServerEntry) -> str | None:
    """The reason to leave this entry alone; None if it can be guarded."""
    if entry.problem:
        return entry.problem
    if entry.url is not None:
        return Sentence("it is disabled") if entry.is_disabled else None
    if maybe_guard(_known(entry)) is not None:
        return Sentence("it is guarded already")
    if entry.is_disabled:
        return Sentence("it is disabled")
    return Sentence("it is this product's own server") if starts_this_program(_known(entry)) else None


def _is_unchanged(client: Client, before: bytes, entry: ServerEntry, made: Guarded) -> bool:
    """True if the entry is enabled and still as `setup` wrote it."""
    return not entry.is_disabled and entry.words == made.after and _is_as_written(client, before, made)


def _with_policy(words: tuple[str, ...], policy: str) -> tuple[str, ...]:
    """A command that `setup` wrote, with its policy added or replaced."""
    at = words.index("--name") + 2
    behind = words[at + 2 :] if words[at] == "--policy" else words[at:]
    return (*words[:at], "--policy", policy, *behind)


def undoing(
    notes: Notes, clients: Sequence[Client], environ: Mapping[str, str], folder: str, servers: Sequence[str]
) -> list[Plan]:
    by_file: dict[str, list[Guarded]] = {}
    for one in notes.read():
        if not servers or one.keys[-1] in servers:
            by_file.setdefault(one.file, []).append(one)
    plans = []
    files = [(one, file) for one in clients for file in files_of(one, environ, folder) if file in by_file]
    for client, file in files:
        noted = by_file[file]
        try:
            before = read_file(file)
        except OSError as exc:
            plans.append(_unreadable(file, exc))
            continue
        original = notes.original_of(before) if not servers else None
        if original is not None:
            plans.append(Plan(file, before, original, tuple(noted), (), _secrets_in(client, original, noted)))
            continue
        undone: list[Guarded] = []
        skipped: list[str] = []
        for one in noted:
            now = _entry_at(client, before, one.keys)
            if now is not None and now.words == one.after and _is_as_written(client, before, one):
                undone.append(one)
            else:
                why = "{name} in {file}: it has changed since, so it stays as it is"
                skipped.append(Sentence(why, name=one.keys[-1], file=file))
        plan = _plan(file, before, undone, skipped, partial(_undone, client))
        plans.append(replace(plan, secrets=_secrets_in(client, plan.after, undone)))
    return plans


def _secrets_in(client: Client, content: bytes, entries: Sequence[Guarded]) -> tuple[str, ...]:
    found = [_entry_at(client, content, one.keys) for one in entries]
    return tuple(secret for entry in found if entry for secret in entry.secrets)


def _is_as_written(client: Client, before: bytes, one: Guarded) -> bool:
    """True if the entry was not edited since. One with a URL is put back as a whole, which would lose the edit."""
    try:
        return not one.text_after or entry_text(client, _text(before), one.keys) == one.text_after
    except CannotRewrite:
        return False


def _undone(client: Client, text: str, one: Guarded) -> tuple[str, Guarded]:
    if one.text_before:
        return with_entry_text(client, text, one.keys, one.text_before), one
    return rewritten(client, text, one.keys, one.before), one


def _entry_at(client: Client, content: bytes, keys: Sequence[str]) -> ServerEntry | None:
    project = keys[1] if keys[0] == "projects" else None
    try:
        return next((entry for entry in entries_in(client, _text(content), project) if entry.keys == keys), None)
    except ValueError:
        return None


def _plan(
    file: str,
    before: bytes,
    entries: Sequence[Guarded],
    skipped: list[str],
    change: Callable[[str, Guarded], tuple[str, Guarded]],
) -> Plan:
    """Changes entry by entry, so that one that cannot be rewritten does not stop the others."""
    text, done = _text(before), []
    for one in entries:
        try:
            text, changed = change(text, one)
        except CannotRewrite as exc:
            skipped.append(_left_alone(one.keys[-1], file, exc.args[0]))
        else:
            done.append(changed)
    mark = b"\xef\xbb\xbf" if before.startswith(b"\xef\xbb\xbf") else b""
    return Plan(file, before, mark + text.encode(), tuple(done), tuple(skipped))


def _text(content: bytes) -> str:
    return content.decode("utf-8-sig")


def _places(
    clients: Iterable[Client], environ: Mapping[str, str], folder: str, is_project: bool
) -> list[tuple[Client, str, str | None]]:
    """The user's own files, or those of the folder.

    Claude Code also keeps servers of a folder in the user's file. There the third value names the folder.
    """
    found: list[tuple[Client, str, str | None]] = []
    for client in clients:
        own = own_files_of(client, environ)
        for file in files_of(client, environ, folder):
            # In the home folder both are the same file.
            if (file not in own) == is_project:
                found.append((client, file, None))
            elif is_project and os.path.basename(file) == ".claude.json":
                found.append((client, file, folder))
    return found
