"""`openai-responses-mcp policy …`: a policy file is checked, tried on the calls in the log, or suggested from them.

    policy check FILE [--store URL] [--json]
    policy test FILE [--store URL] [--json]
    policy suggest [--store URL] [--server NAME] [--write FILE]

`check` reports problems, rules that can never apply or come too late, and with a store names that it does not know, one
per line. `test` shows recorded calls that would be decided otherwise, as a table. `suggest` prints a file, or writes it
where there is none. Exit 0: nothing found; 1: something found; 2: wrong usage, or a file or a store that cannot be used.
"""

import argparse
import asyncio
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from openai_responses_mcp.desk.opening import check_policy, replay_policy, suggest_policy
from openai_responses_mcp.desk.terminal.output import json_of, writable
from openai_responses_mcp.desk.terminal.tables import table
from openai_responses_mcp.desk.terminal.text import local
from openai_responses_mcp.desk.terminal.typed_values import CommandParser, words_here
from openai_responses_mcp.domain.extras import needs_extra
from openai_responses_mcp.domain.texts import Sentence
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue
from openai_responses_mcp.gate.policy.checking import PolicyFindings
from openai_responses_mcp.gate.policy.fitting import policy_name
from openai_responses_mcp.gate.replaying import Replay, Replayed
from openai_responses_mcp.gate.sentences import shown
from openai_responses_mcp.gate.sql.own_files import store_from, why_no_store


def main(argv: Sequence[str]) -> int:
    arguments = _parser().parse_args(list(argv))
    try:
        return _COMMANDS[arguments.command](arguments)
    except AgentsError as exc:
        return _complain(words_here().error(exc))
    except ModuleNotFoundError as exc:
        return _complain(needs_extra("guard", exc.name))


def _complain(message: str) -> int:
    sys.stderr.write(f"openai-responses-mcp: {words_here().of(message)}\n")
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        "openai-responses-mcp policy",
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


def _check(arguments: argparse.Namespace) -> int:
    found = asyncio.run(check_policy(arguments.file, arguments.store))
    _write(_json(asdict(found)) if arguments.json else _lines(arguments.file, found))
    return 1 if found.lines else 0


def _lines(file: str, found: PolicyFindings) -> str:
    key = "one rule" if found.rules == 1 else "many rules"
    return "\n".join(found.lines) or words_here()(key, file=file, rules=found.rules)


# ---------------------------------------------------------------------------------------------------------------------
# test

_KEYS = ("number", "time", "run_id", "tool", "recorded", "with_the_file", "why")
_NEVER_CUT = 1_000_000


def _test(arguments: argparse.Namespace) -> int:
    found = asyncio.run(replay_policy(arguments.file, _store(arguments)))
    _write(_json(_facts(found)) if arguments.json else _report(found))
    return 1 if any(one.decision for one in found.found) else 0


def _store(arguments: argparse.Namespace) -> str:
    store = store_from(arguments.store, os.environ)
    if not store:
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", why_no_store())
    return store


def _facts(replay: Replay) -> JsonObject:
    return {"calls": replay.calls, "found": [dict(zip(_KEYS, _fields(one), strict=True)) for one in replay.found]}


def _fields(one: Replayed) -> tuple[JsonValue, ...]:
    log = one.log
    tool, would = f"{log.tool_kind}:{log.tool_name}", one.decision or "cannot be told"
    return log.sequence, log.timestamp[:19], log.run_id, tool, log.decision, would, one.reason


def _report(replay: Replay) -> str:
    rows = [_row(one) for one in replay.found]
    otherwise = sum(1 for one in replay.found if one.decision)
    hidden = len(replay.found) - otherwise
    words = words_here()
    summary = words("otherwise", count=otherwise, calls=replay.calls)
    summary += words("hidden", count=hidden) if hidden else ""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _NEVER_CUT
    return (table(words("policy columns").split("|"), rows, width) if rows else "") + summary


def _row(one: Replayed) -> tuple[str, ...]:
    log = one.log
    tool, words = policy_name(log.tool_kind, log.tool_name), words_here()
    return (
        str(log.sequence),
        local(log.timestamp, datetime.now(UTC)),
        tool,
        words(f"was {log.decision}"),
        words(f"would {one.decision or 'unknown'}"),
        shown(one.reasons, one.decision, words.language, otherwise=one.reason) if one.decision else one.reason,
    )


# ---------------------------------------------------------------------------------------------------------------------
# suggest


def _suggest(arguments: argparse.Namespace) -> int:
    text = asyncio.run(suggest_policy(_store(arguments), arguments.server))
    if arguments.write is None:
        sys.stdout.write(writable(text, _encoding()))
        return 0
    try:
        with open(arguments.write, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return _complain(
            Sentence("{file} is there already; choose another name, or take it away first", file=arguments.write)
        )
    except (OSError, ValueError) as exc:
        return _complain(
            Sentence(
                "{file} cannot be written: {why}",
                file=arguments.write,
                why=getattr(exc, "strerror", None) or exc,
            )
        )
    written, program = shlex.quote(arguments.write), "openai-responses-mcp"
    _write(words_here()("wrote", file=arguments.write, command=f"{program} policy test {written}"))
    _write(words_here()("use it", command=f"{program} guard setup --policy {written}"))
    return 0


_COMMANDS = {"check": _check, "test": _test, "suggest": _suggest}


def _json(facts: JsonValue) -> str:
    return json_of(facts, _encoding())


def _write(text: str) -> None:
    sys.stdout.write(writable(text, _encoding()) + "\n")


def _encoding() -> str:
    return sys.stdout.encoding or "utf-8"
