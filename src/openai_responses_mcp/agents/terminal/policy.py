"""`openai-responses-mcp agents policy …`: a policy file is checked, or tried on the calls in the log.

    agents policy check FILE [--json]
    agents policy test FILE [--store URL] [--json]

`check` tells problems and rules that can never apply, one per line; `test` tells recorded calls that would be decided
otherwise, as a table on a terminal and as JSON into a pipe. Exit 0: nothing found; 1: something found; 2: wrong usage,
or a file or a store that cannot be used.
"""

import argparse
import asyncio
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict

from openai_responses_mcp.agents.adapters.stores.own_store import store_from, why_no_store
from openai_responses_mcp.agents.composition import check_policy, replay_policy
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.gate.replaying import Replay, Replayed
from openai_responses_mcp.agents.json_values import JsonObject, JsonValue
from openai_responses_mcp.agents.policy.checking import PolicyFindings
from openai_responses_mcp.agents.terminal.output import json_of, writable
from openai_responses_mcp.agents.terminal.tables import table

_HEADINGS = ("NO", "TIME (UTC)", "RUN", "TOOL", "RECORDED", "WITH THE FILE", "WHY")


def main(argv: Sequence[str]) -> int:
    arguments = _parser().parse_args(list(argv))
    try:
        return _check(arguments) if arguments.command == "check" else _test(arguments)
    except AgentsError as exc:
        return _complain(str(exc))
    except ModuleNotFoundError as exc:
        return _complain(f'{exc}; this needs the extra: pip install "openai-responses-mcp[agents]"')


def _complain(message: str) -> int:
    sys.stderr.write(f"openai-responses-mcp agents: {message}\n")
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("openai-responses-mcp agents policy", description="Check or try a policy file.")
    verbs = parser.add_subparsers(dest="command", required=True, metavar="check|test")
    check = verbs.add_parser("check", help="problems, and rules that can never apply")
    test = verbs.add_parser("test", help="calls in the log that the file would decide otherwise")
    test.add_argument("--store", metavar="URL", help="the store with the log (else AGENTS_STORE, else the guard's own)")
    for verb in (check, test):
        verb.add_argument("file", metavar="FILE")
        verb.add_argument("--json", action="store_true", help="JSON instead of lines or a table")
    return parser


# ---------------------------------------------------------------------------------------------------------------------
# check


def _check(arguments: argparse.Namespace) -> int:
    found = check_policy(arguments.file)
    _write(_json(asdict(found)) if arguments.json else _lines(arguments.file, found))
    return 1 if found.problems or found.never_apply else 0


def _lines(file: str, found: PolicyFindings) -> str:
    rules = f"{found.rules} rule{'' if found.rules == 1 else 's'}"
    return "\n".join((*found.problems, *found.never_apply)) or f"{file}: {rules}, no problems"


# ---------------------------------------------------------------------------------------------------------------------
# test


def _test(arguments: argparse.Namespace) -> int:
    store = store_from(arguments.store, os.environ)
    if not store:
        return _complain(why_no_store())
    found = asyncio.run(replay_policy(arguments.file, store))
    is_json = arguments.json or not sys.stdout.isatty()
    _write(_json(_facts(found)) if is_json else _report(found))
    return 1 if any(one.decision for one in found.found) else 0


def _facts(replay: Replay) -> JsonObject:
    rows = [dict(zip(("number", *_KEYS), (one.log.sequence, *_cells(one)), strict=True)) for one in replay.found]
    return {"calls": replay.calls, "found": rows}


_KEYS = ("time", "run_id", "tool", "recorded", "with_the_file", "why")


def _cells(one: Replayed) -> tuple[str, ...]:
    tool = f"{one.log.tool_kind}:{one.log.tool_name}"
    return (
        one.log.timestamp[:19],
        one.log.run_id,
        tool,
        one.log.decision,
        one.decision or "cannot be told",
        one.reason,
    )


def _report(replay: Replay) -> str:
    rows = [(str(one.log.sequence), *_cells(one)) for one in replay.found]
    otherwise = sum(1 for one in replay.found if one.decision)
    hidden = len(replay.found) - otherwise
    summary = f"{otherwise} of {replay.calls} recorded calls would be decided otherwise"
    summary += f"; of {hidden} it cannot be told" if hidden else ""
    return (table(_HEADINGS, rows, shutil.get_terminal_size().columns) if rows else "") + summary


def _json(facts: JsonValue) -> str:
    return json_of(facts, _encoding())


def _write(text: str) -> None:
    sys.stdout.write(writable(text, _encoding()) + "\n")


def _encoding() -> str:
    return sys.stdout.encoding or "utf-8"
