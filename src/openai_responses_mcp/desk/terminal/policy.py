"""`openai-responses-mcp policy …`: a policy file is checked, tried on the calls in the log, or suggested from them.

    policy check FILE [--store URL] [--json]
    policy test FILE [--store URL] [--json]
    policy suggest [--store URL] [--server NAME] [--write FILE]

`check` reports problems, rules that never apply or come too late, and with a store unknown names, one per line. `test`
shows recorded calls that would be decided otherwise, as a table. `suggest` prints a file, or writes a new one. Exit 0:
nothing found; 1: something found; 2: wrong usage, or a file or a store that cannot be used.
"""

import argparse
import asyncio
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from openai_responses_mcp.desk.opening import open_rules
from openai_responses_mcp.desk.terminal.console import PROGRAM, Paper, Writer, complain, local, words_here
from openai_responses_mcp.desk.terminal.parsing import CommandParser
from openai_responses_mcp.desk.words import on_one_line
from openai_responses_mcp.domain.extras import needs_extra
from openai_responses_mcp.domain.texts import Sentence
from openai_responses_mcp.gate.definitions import annotations_of, pinned_entries
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.policy.checking import KnownTools
from openai_responses_mcp.gate.policy.fitting import claims_of, policy_name
from openai_responses_mcp.gate.reasons import shown
from openai_responses_mcp.gate.replaying import Replayed, replay
from openai_responses_mcp.gate.sql.own_files import store_from, why_no_store
from openai_responses_mcp.gate.stores import Stores
from openai_responses_mcp.gate.suggesting import suggest


def main(argv: Sequence[str]) -> int:
    arguments = _parser().parse_args(list(argv))
    try:
        writer = Writer(is_json=getattr(arguments, "json", False))
        return asyncio.run(_COMMANDS[arguments.command](writer, arguments))
    except AgentsError as exc:
        return complain(words_here().error(exc))
    except ModuleNotFoundError as exc:
        return complain(needs_extra("guard", exc.name))


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        f"{PROGRAM} policy",
        description="Check a policy file, try it, or have one suggested.",
        allow_abbrev=False,
    )
    verbs = parser.add_subparsers(dest="command", required=True, metavar="check|test|suggest")
    check = verbs.add_parser("check", help="problems, and rules that can never apply or come too late")
    test = verbs.add_parser("test", help="calls in the log that the file would decide otherwise")
    suggest = verbs.add_parser("suggest", help="a file from what people have decided so far")
    check.add_argument(
        "--store", metavar="URL", help="a store; names of tools and arguments that it does not know are found"
    )
    for verb in (test, suggest):
        verb.add_argument(
            "--store", metavar="URL", help="the store with the log (else AGENTS_STORE, else the guard's own)"
        )
    for verb in (check, test):
        verb.add_argument("file", metavar="FILE")
        verb.add_argument("--json", action="store_true", help="JSON instead of lines or a table")
    suggest.add_argument("--server", metavar="NAME", help="rules for this server alone")
    suggest.add_argument("--write", metavar="FILE", help="write the file instead of showing it; never over another one")
    return parser


# ---------------------------------------------------------------------------------------------------------------------
# check


async def _check(writer: Writer, arguments: argparse.Namespace) -> int:
    from openai_responses_mcp.adapters.policy_file import LinearPatterns, SystemPaths, check_policy_file
    from openai_responses_mcp.gate.sql.sql_stores import open_stores

    known = await _known_tools(open_stores(arguments.store, must_exist=True)) if arguments.store else None
    found = check_policy_file(arguments.file, LinearPatterns(), SystemPaths(), known)
    says = "{file}: 1 rule, no problems" if found.rules == 1 else "{file}: {rules} rules, no problems"
    lines = found.lines or [writer.words(says, file=arguments.file, rules=found.rules)]
    writer.show(asdict(found), *lines)
    return 1 if found.lines else 0


async def _known_tools(stores: Stores) -> KnownTools:
    """Pinned tools, and tools that are only in the log because every call was refused."""
    entries = await pinned_entries(stores.pins)
    schemas = {policy_name("mcp", name): entry.get("inputSchema") for name, entry in entries.items()}
    called = {policy_name(log.tool_kind, log.tool_name) for log in await stores.logs.query() if log.tool_name}
    return KnownTools(
        frozenset(schemas) | called,
        {name: schema for name, schema in schemas.items() if isinstance(schema, Mapping)},
        {policy_name("mcp", name): claims_of(annotations_of(entry)) for name, entry in entries.items()},
    )


# ---------------------------------------------------------------------------------------------------------------------
# test

WAS: Mapping[str, str] = {"allow": "allowed", "needs_human": "asked", "deny": "denied"}
WOULD: Mapping[str | None, str] = {"allow": "allow", "needs_human": "ask", "deny": "deny", None: "cannot tell"}


async def _test(writer: Writer, arguments: argparse.Namespace) -> int:
    from openai_responses_mcp.gate.sql.sql_stores import open_stores

    store = store_from(arguments.store, os.environ)
    if not store:
        return complain(why_no_store())
    rules, stores = open_rules(arguments.file, store), open_stores(store, must_exist=True)
    claims = {name: annotations_of(entry) for name, entry in (await pinned_entries(stores.pins)).items()}
    found = await replay(rules, stores.policies, stores.logs, claims)
    facts = [
        {
            "number": one.log.sequence,
            "time": one.log.timestamp[:19],
            "run_id": one.log.run_id,
            "tool": f"{one.log.tool_kind}:{one.log.tool_name}",
            "recorded": one.log.decision,
            "with_the_file": one.decision or "cannot be told",
            "why": one.reason,
        }
        for one in found.found
    ]
    otherwise, words = sum(1 for one in found.found if one.decision), writer.words
    hidden = len(found.found) - otherwise
    summary = words("{count} of {calls} recorded calls would be decided otherwise", count=otherwise, calls=found.calls)
    summary += words("; for {count} the log does not show enough", count=hidden) if hidden else ""
    writer.show({"calls": found.calls, "found": facts}, *_table(writer, found.found), summary)
    return 1 if otherwise else 0


def _table(writer: Writer, found: Sequence[Replayed]) -> list[str]:
    """On a narrow terminal the last column is below the others."""
    if not found:
        return []
    paper, heading = writer.paper, writer.words("NO|TIME|TOOL|WAS|WITH THE FILE|WHY").split("|")
    rows = [heading, *(_row(writer, one) for one in found)]
    wide = Paper().columns(rows)
    if paper.fits(wide):
        return wide
    firsts = paper.columns([row[:-1] for row in rows])
    return [line for first, row in zip(firsts, rows, strict=True) for line in (first, *paper.wrapped(row[-1], "    "))]


def _row(writer: Writer, one: Replayed) -> Sequence[str]:
    log, words = one.log, writer.words
    why = shown(one.reasons, one.decision, words.language, otherwise=one.reason) if one.decision else one.reason
    return (
        str(log.sequence),
        local(log.timestamp, writer.now()),
        on_one_line(policy_name(log.tool_kind, log.tool_name)),
        words(WAS[log.decision]),
        words(WOULD[one.decision]),
        on_one_line(why),
    )


# ---------------------------------------------------------------------------------------------------------------------
# suggest


async def _suggest(writer: Writer, arguments: argparse.Namespace) -> int:
    from openai_responses_mcp.adapters.policy_file import LinearPatterns, SystemPaths
    from openai_responses_mcp.gate.sql.sql_stores import open_stores

    store = store_from(arguments.store, os.environ)
    if not store:
        return complain(why_no_store())
    stores = open_stores(store, must_exist=True)
    entries, logs = await pinned_entries(stores.pins), await stores.logs.query()
    text = suggest(logs, entries, SystemPaths(), LinearPatterns(), arguments.server or "")
    if arguments.write is not None:
        return _write(writer, arguments.write, text)
    writer.say(text.removesuffix("\n"))
    return 0


def _write(writer: Writer, name: str, text: str) -> int:
    try:
        with open(name, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return complain(Sentence("{file} is there already; choose another name, or take it away first", file=name))
    except (OSError, ValueError) as exc:
        why = getattr(exc, "strerror", None) or exc
        return complain(Sentence("{file} cannot be written: {why}", file=name, why=why))
    words, written = writer.words, shlex.quote(name)
    trying, using = f"{PROGRAM} policy test {written}", f"{PROGRAM} guard setup --policy {written}"
    writer.say(
        words("Wrote {file}. Try it: {command}", file=name, command=trying),
        words("Use it: {command}", command=using),
    )
    return 0


_COMMANDS = {"check": _check, "test": _test, "suggest": _suggest}
