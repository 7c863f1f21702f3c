"""What a person reads in the terminal: sentences, local time, commands that can be pasted."""

import ast
import asyncio
import json
import os
import pty
import re
import select
import shlex
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import openai_responses_mcp
from openai_responses_mcp.desk.terminal.command_line import main
from openai_responses_mcp.desk.terminal.console import Paper, call_shown, span
from openai_responses_mcp.desk.words import IN_JAPANESE, Words
from openai_responses_mcp.domain.texts import language_of
from openai_responses_mcp.gate.audit.log import AuditEntry
from openai_responses_mcp.gate.audit.records import Head, LogPlace, kept_finding, misfit
from openai_responses_mcp.gate.calls import GateDecision, PlannedCall, ToolDescription
from openai_responses_mcp.gate.clock import LEASE_SECONDS, Presence, timestamp
from openai_responses_mcp.gate.reasons import Reason, reason_in_record
from openai_responses_mcp.gate.sql.sql_stores import open_stores
from tests.desk.page.asking import Asker

READ: dict[str, Any] = {"name": "files/read_file"}
SOURCE = Path(openai_responses_mcp.__file__).parent


class Shell:
    """The commands on one store, with what they print."""

    def __init__(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.url = url
        self._capsys = capsys

    async def __call__(self, *words: str, code: int = 0) -> str:
        assert await asyncio.to_thread(main, [*words, "--store", self.url]) == code
        said = self._capsys.readouterr()
        return said.out if code == 0 else said.out + said.err


@pytest.fixture
def shell(sqlite_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    return Shell(sqlite_url, capsys)


@pytest.fixture
def asker(sqlite_url: str) -> Asker:
    return Asker(open_stores(sqlite_url), run_id="guard_1")


async def test_alike_requests_are_one_line_with_a_count(shell: Shell, asker: Asker) -> None:
    for number in range(3):
        await asker.ask({"path": f"notes/{number}.md"}, wait_seconds=250, **READ)
    written = await asker.ask({"path": "a.md"})
    said = await shell("approvals", "list")
    lines = said.splitlines()
    assert lines[0] == "4 calls wait for a decision."
    assert len([line for line in lines if "files/" in line]) == 2
    assert re.search(r"\d s ago +4 min left +files/read_file +× 3 +\{\"path\": \"notes/0.md\"\}", said)
    assert f"{written.approval_id[4:10]}" in said
    pasted = re.search(r"openai-responses-mcp (approvals show \w+)", said)
    assert pasted is not None
    assert "What will run: files/read_file" in await shell(*pasted[1].split())
    assert "To see each of them: openai-responses-mcp approvals list --all" in said
    assert len([line for line in (await shell("approvals", "list", "--all")).splitlines() if "files/" in line]) == 4


async def test_what_will_run_comes_first_and_the_commands_last(shell: Shell, asker: Asker) -> None:
    request = await asker.ask(
        {"path": "a.md", "content": "one\ntwo", "long": "x" * 201}, definition_change="/description: 1 is now 2"
    )
    lines = (await shell("approvals", "show", request.approval_id[:9])).splitlines()
    assert lines[:6] == [
        "What will run: files/write_file",
        '│ "path": "a.md"',
        '│ "content": 2 lines, 7 characters',
        "│ │ one",
        "│ │ two",
        '│ "long": 1 line, 201 characters',
    ]
    order = ["Why you are asked: it writes", "What changed:", "What the tool says about itself:", "To decide:"]
    assert [line for line in lines if line in order] == order
    assert lines[-1].startswith(f"  openai-responses-mcp approvals allow {request.approval_id[4:10]} --for 8h")


async def test_who_asked_and_who_decided_are_shown(shell: Shell, asker: Asker) -> None:
    call = PlannedCall("call_9", ToolDescription("files/read_file", "mcp"), {})
    decision = GateDecision("needs_human", 3, "it reads")
    request = await asker.controller.create_approval_request("guard_1", decision, call=call, caller="ann")
    assert "Asked for by ann" in await shell("approvals", "show", request.approval_id)
    await asker.controller.submit_decision(request.approval_id, "approve", who="bob")
    records = await shell("log", "--records")
    assert "pending · ann" in records
    assert "approved · bob" in records
    assert "files/read_file · ann  allowed (bob)" in await shell("log")


async def test_a_decided_request_is_found_by_its_beginning_too(shell: Shell, asker: Asker) -> None:
    request = await asker.ask()
    short = request.approval_id.removeprefix("apr_")[:6]
    assert await shell("approvals", "deny", short, "--comment", "not now") == (
        "Denied files/write_file to a.txt; it does not run.\n"
    )
    shown = await shell("approvals", "show", short)
    assert "It was denied at " in shown
    assert "Comment: not now" in shown
    assert "To decide:" not in shown


async def test_of_several_that_begin_alike_the_one_that_waits_is_shown_but_not_decided(
    shell: Shell, asker: Asker
) -> None:
    await asker.controller.submit_decision((await asker.ask({"path": "old.txt"})).approval_id, "deny")
    await asker.ask({"path": "new.txt"})
    assert '"path": "new.txt"' in await shell("approvals", "show", "apr_")
    assert "More than one request begins with" in await shell("approvals", "approve", "apr_", code=1)


async def killed_guard(url: str, run_id: str = "guard_1") -> None:
    """Its lease ran out."""
    before = timestamp(datetime.now(UTC) - timedelta(seconds=LEASE_SECONDS + 1))
    await open_stores(url).presence.renew(Presence(run_id, "guard", "files", before, before))


async def test_a_yes_that_no_guard_waits_for_says_so(
    shell: Shell, asker: Asker, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_up = (await asker.ask({"path": "b.txt"})).approval_id
    await asker.controller.close_undecided(given_up, "withdrawn", "")
    assert "The client has given up on it" in await shell("approvals", "approve", given_up)
    await killed_guard(sqlite_url)
    first, second, third = [(await asker.ask()).approval_id for _ in range(3)]
    shown = await shell("approvals", "show", first)
    assert "The guard that asked is gone. A yes counts for ten minutes, for the identical call." in shown
    assert await shell("approvals", "approve", first) == (
        "Approved files/write_file to a.txt."
        " The guard that asked is gone; the yes counts for ten minutes, for the identical call.\n"
    )
    assert "when the call did not wait any more" in await shell("approvals", "show", first)
    decided = json.loads(await shell("approvals", "approve", second, "--json"))["decided"]
    assert decided == "kept for ten minutes, for the identical call"
    monkeypatch.setenv("LANG", "ja_JP.UTF-8")
    assert "依頼したガードはもう動いていません。" in await shell("approvals", "show", third)
    said = await shell("approvals", "allow", third, "--always")
    assert "この承認は同じ呼び出しに 10 分間有効です。" in said.replace("\n", "")


async def test_new_arguments_for_a_guard_that_does_not_answer_say_so(
    shell: Shell, asker: Asker, sqlite_url: str
) -> None:
    now = timestamp(datetime.now(UTC))
    await open_stores(sqlite_url).presence.renew(Presence("guard_1", "guard", "files", now, now))
    request = await asker.ask(parameters={"type": "object"})
    said = await shell("approvals", "approve", request.approval_id, "--arguments", '{"path": "b.txt"}')
    assert "its guard has not answered yet. If that guard is gone, the call does not run." in said


async def test_a_beginning_that_fits_two_says_so(shell: Shell, asker: Asker) -> None:
    await asker.ask()
    await asker.ask()
    assert 'More than one request begins with "apr_": write more' in await shell("approvals", "show", "apr_", code=1)
    assert 'No request begins with "zz"; `approvals list`' in await shell("approvals", "show", "zz", code=1)
    for request in await asker.controller.pending():
        said = await shell("approvals", "allow", request.approval_id, "--always")
        assert "Approved files/write_file to a.txt; it runs now.\nFrom now on files/write_file runs unasked" in said
    assert "Several standing approvals are meant by sta_" in await shell("approvals", "revoke", "sta_", code=1)
    ending = re.search(r"openai-responses-mcp (approvals revoke \w+)", said)
    assert ending is not None
    assert "files/write_file is asked about again." in await shell(*ending[1].split())
    assert "needs a terminal" in await shell("approvals", "watch", code=2)


async def test_every_tool_that_reads_is_allowed_at_once_and_ended_at_once(shell: Shell, asker: Asker) -> None:
    reading = {"files/read_file": "d1", "files/list_directory": "d2"}
    request, waiting = await asker.ask(reading=reading, **READ), await asker.ask({"path": "b"}, reading=reading, **READ)
    short = request.approval_id.removeprefix("apr_")[:6]
    said = await shell("approvals", "allow", short, "--for", "8h", "--reads")
    assert "these 2 tools, which claim to read only, run unasked, until " in said
    assert ": files/read_file, files/list_directory." in said
    standing = json.loads(await shell("approvals", "standing", "--json"))
    assert {one["tool_name"]: one["definition_hash"] for one in standing} == reading
    assert all(one["expires_at"] and one["made_from"] == request.approval_id for one in standing)
    listed = await shell("approvals", "standing")
    assert re.search(
        rf"^{short}  until .+  any arguments  files/read_file, files/list_directory$", listed, re.MULTILINE
    )
    assert listed.endswith(f"To end one: openai-responses-mcp approvals revoke {short}\n")
    ended = await shell("approvals", "revoke", short)
    assert "files/read_file is asked about again." in ended
    assert "files/list_directory is asked about again." in ended
    assert await shell("approvals", "standing") == "Nothing is allowed from now on.\n"
    facts = json.loads(await shell("approvals", "allow", waiting.approval_id, "--session", "--reads", "--json"))
    assert facts["tools"] == ["files/read_file", "files/list_directory"]
    other = (await asker.ask()).approval_id
    assert "does not claim to read only" in await shell("approvals", "allow", other, "--always", "--reads", code=1)
    assert (await asker.controller.get(other)).request.status == "pending"


# ---------------------------------------------------------------------------------------------------------------------
# The log


async def some_calls(asker: Asker) -> None:
    def entry(call: str, event: str, decision: str, **facts: object) -> AuditEntry:
        arguments = {"path": f"{call}.md"}
        known: dict[str, object] = {"tool_name": "files/read_file", "tool_kind": "mcp", "arguments": arguments}
        return AuditEntry(run_id="guard_1", tool_call_id=call, event=event, decision=decision, **{**known, **facts})  # type: ignore[arg-type]

    await asker.audit.record(
        entry("c1", "decision", "allow"), entry("c1", "started", "started"), entry("c1", "outcome", "done")
    )
    await asker.audit.record(entry("c2", "decision", "deny"))
    await asker.audit.record(entry("c3", "decision", "needs_human"), entry("c3", "approval_requested", "pending"))
    await asker.audit.record(entry("c3", "approval", "approved"), entry("c3", "started", "started"))


async def test_the_log_is_one_line_a_call(shell: Shell, asker: Asker) -> None:
    await some_calls(asker)
    rows = [re.split(r" {2,}", line) for line in (await shell("log")).splitlines()]
    assert [(row[0], *row[2:]) for row in rows] == [
        ("1", "files/read_file", "ran (policy)", '{"path": "c1.md"}'),
        ("4", "files/read_file", "refused (policy)", '{"path": "c2.md"}'),
        ("5", "files/read_file", "unknown (person)", '{"path": "c3.md"}'),
    ]
    assert len((await shell("log", "--records")).splitlines()) == 8


async def test_an_expired_request_is_not_called_a_persons_refusal(shell: Shell, asker: Asker) -> None:
    for event, decision in (("decision", "needs_human"), ("approval", "expired")):
        await asker.audit.record(AuditEntry("guard_1", "c1", event, decision, "files/read_file", "mcp"))
    assert "files/read_file  not decided" in await shell("log")


async def test_a_call_is_shown_by_the_number_that_the_log_prints(shell: Shell, asker: Asker) -> None:
    await some_calls(asker)
    shown = await shell("log", "show", "5")
    assert shown.startswith('5  files/read_file\n│ "path": "c3.md"\n')
    steps = [re.split(r" {2,}", line) for line in shown.splitlines()[3:]]
    assert [(number, says) for number, _, says in steps] == [
        ("5", "needs a person"),
        ("6", "a person is asked"),
        ("7", "approved"),
        ("8", "outcome unknown"),
    ]
    assert (await shell("log", "show", "1")).endswith("outcome: done\n")
    assert "The log has no call 99" in await shell("log", "show", "99", code=1)


async def test_a_reason_and_a_name_are_shown_once_for_a_call(shell: Shell, asker: Asker) -> None:
    request = await asker.ask()
    await asker.controller.submit_decision(request.approval_id, "deny", "not\ntoday", who="bob")
    shown = await shell("log", "show", "1")
    assert shown.count("it writes") == 1
    assert re.search(r"denied · bob +not today\n\Z", shown)


async def test_the_log_is_verified_in_a_sentence(shell: Shell, asker: Asker, sqlite_url: str) -> None:
    await some_calls(asker)
    assert await shell("log", "verify") == "The log is intact: 8 records.\n"
    assert await shell("log", "--verify") == "The log is intact: 8 records.\n"
    os.unlink(f"{sqlite_url.removeprefix('sqlite:///')}.head")
    assert await shell("log", "verify", code=1) == (
        "The log is not intact (8 records):\n  the head of the log is missing\n"
        "If you know why, accept it: openai-responses-mcp log accept-loss --reason TEXT\n"
    )


async def test_old_records_move_into_a_file_that_can_be_checked(shell: Shell, asker: Asker, tmp_path: Path) -> None:
    await some_calls(asker)
    file = tmp_path / "old log.jsonl"
    said = await shell("log", "archive", "--before", "2999-01-01", str(file))
    assert said.startswith(f'Moved 8 records to "{file}"; record 9 of the log says so.\n')
    pasted = re.search(r"openai-responses-mcp (log verify .*)", said)
    assert pasted is not None
    assert await shell(*shlex.split(pasted[1])) == "The archive is intact: 8 records.\n"
    assert await shell("log", "verify") == "The log is intact: 1 record.\n"
    assert await shell("log") == "The log has no calls yet.\n"
    assert "No record from before 2020" in await shell("log", "archive", "--before", "2020-01-01", "a.jsonl", code=2)
    assert "There is no file a.jsonl" in await shell("log", "verify", "a.jsonl", code=2)
    file.write_text(file.read_text().replace("c1.md", "c9.md"))
    assert await shell("log", "verify", str(file), code=1) == (
        "The archive is not intact (8 records):\n  record 1 was changed\n"
    )


# ---------------------------------------------------------------------------------------------------------------------
# Status, language, layout


async def test_status_says_what_runs_what_waits_and_who_is_there(shell: Shell, asker: Asker, sqlite_url: str) -> None:
    stores = open_stores(sqlite_url)
    await some_calls(asker)
    await asker.ask()
    said = await shell("status")
    assert "No guard runs now." in said
    assert "Nobody is at the desk" in said
    assert "1 call waits for a decision." in said
    assert "The log is intact: 9 records." in said
    now = stores.clock.now().isoformat()
    await stores.presence.renew(Presence("g", "guard", "files", now, now, "policy.yaml"))
    await stores.presence.renew(Presence("d", "desk", "page", now, now))
    said = await shell("status")
    assert re.search(r"Guards that run now:\n  files  since \d\d:\d\d:\d\d  policy.yaml\n", said)
    assert re.search(r"At the desk:\n  page  since ", said)


async def test_errors_and_what_is_wrong_in_a_log_are_japanese_too(
    shell: Shell, asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asker.audit.record(AuditEntry("guard_1", "c1", "started", "started", "files/read_file", "mcp"))
    assert "call c1 of guard_1 (mcp files/read_file) started, and no decision" in await shell("log", "verify", code=1)
    monkeypatch.setenv("LANG", "ja_JP.UTF-8")
    found = await shell("log", "verify", code=1)
    assert "guard_1 の呼び出し c1 (mcp files/read_file): 開始されましたが、判断の記録がありません" in found
    assert json.loads(await shell("log", "verify", "--json", code=1))["problem"].endswith("no decision was recorded")
    reasons = (Reason("rule", "deny", {"rule": 2}),)
    why = reason_in_record(reasons, "deny")
    await asker.audit.record(
        AuditEntry("guard_1", "c2", "decision", "deny", "files/x", "mcp", reason=why, reasons=reasons)
    )
    assert "ポリシーファイルのルール 2 が拒否しています" in await shell("log", "--records")
    request = await asker.ask()
    assert "files/write_file (a.txt) を拒否しました。" in await shell("approvals", "deny", request.approval_id)
    with pytest.raises(SystemExit, match="2"):
        await shell("approvals", "lst")
    with pytest.raises(SystemExit, match="2"):
        await shell("approvals", "allow", "x", "--for", "8")
    wrong = await shell("log", "show", "99", code=1)
    assert "不明なコマンドです: lst (list のことですか?) (openai-responses-mcp approvals --help" in wrong
    assert "'8' は 30m、8h、7d のような時間 (10 年まで) ではありません" in wrong
    said = await shell("approvals", "show", "zzz", code=1)
    assert 'AGENTS-E-APPROVAL-NOT-FOUND: "zzz" で始まる依頼はありません' in said


def facts(text: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", text))


def test_a_translation_has_the_facts_of_its_sentence() -> None:
    assert {key: facts(key) for key in IN_JAPANESE} == {key: facts(text) for key, text in IN_JAPANESE.items()}


def test_every_sentence_in_the_source_is_in_the_table() -> None:
    said = set()
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Call(
                    func=ast.Name("Sentence" | "words")
                    | ast.Attribute(attr="words")
                    | ast.Call(ast.Name("words_here")),
                    args=[ast.Constant(str() as text), *_],
                ):
                    said.add(text)
    assert said - set(IN_JAPANESE) == set()


@pytest.mark.parametrize(
    ("known", "last", "hashes"),
    [
        (None, 3, {}),
        (LogPlace(5, "five"), 3, {}),
        (LogPlace(2, "two"), 3, {}),
        (LogPlace(2, "two"), 3, {2: "other"}),
        (LogPlace(2, "two"), 3, {2: "two"}),
    ],
)
def test_what_a_head_has_kept_can_be_said_in_japanese_again(
    known: LogPlace | None, last: int, hashes: dict[int, str]
) -> None:
    head = known and Head(known, known, is_confirmed=True)
    found = misfit(head, LogPlace(last, "last"), hashes.get, is_sole_writer=True)
    assert found is not None
    again = kept_finding(found.sequence, str(found.problem))
    assert again == found
    assert Words("ja").of(again.problem) == Words("ja").of(found.problem) != found.problem
    assert kept_finding(1, "written by hand").problem == "written by hand"


def test_the_first_variable_that_is_set_chooses_the_language() -> None:
    given: list[dict[str, str]] = [{}, {"LANG": "ja_JP.UTF-8"}, {"LANG": "ja", "LC_ALL": "C"}, {"LC_MESSAGES": "ja_JP"}]
    assert [language_of(environ) for environ in given] == ["en", "ja", "en", "ja"]


def test_a_span_has_the_largest_unit_that_says_enough() -> None:
    spans = [span(Words("en"), seconds) for seconds in (-3, 59, 60, 7300, 90_000)]
    assert spans == ["0 s", "59 s", "1 min", "2 h", "1 d"]


def test_a_call_in_a_sentence_quotes_what_could_be_taken_for_words_of_ours() -> None:
    words = Words("en")
    assert call_shown(words, "files/read_file", {"path": "a b"}) == 'files/read_file of "a b"'
    assert call_shown(words, "pay", {"amount": 5}) == "pay"
    assert call_shown(words, "files/write\nfile", {}) == '"files/write\\nfile"'


def test_columns_are_aligned_and_only_the_last_is_cut() -> None:
    rows = [("日本", "x" * 50), ("a", "short")]
    assert Paper(30).columns(rows) == [f"日本  {'x' * 23}…", "a     short"]
    assert Paper().columns(rows) == [f"日本  {'x' * 50}", "a     short"]


# ---------------------------------------------------------------------------------------------------------------------
# Watching


class Watching:
    """`approvals watch` on a terminal of its own."""

    def __init__(self, url: str | None = None, editor: str = "sed -i s/a.txt/b.txt/") -> None:
        ours, theirs = pty.openpty()
        self.mode_before, self.mode_after = termios.tcgetattr(ours), [0]
        words = [sys.executable, "-m", "openai_responses_mcp", "agents", "approvals", "watch"]
        words += [] if url is None else ["--store", url]
        environ = {**os.environ, "LANG": "C.UTF-8", "EDITOR": editor, "VISUAL": "", "NO_COLOR": "1"}
        self.process = subprocess.Popen(
            words, stdin=theirs, stdout=theirs, stderr=theirs, env=environ, start_new_session=True
        )
        os.close(theirs)
        self._descriptor = ours
        self.shown = ""

    def until(self, words: str) -> None:
        deadline = time.monotonic() + 30
        while words not in self.shown:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._descriptor], [], [], left)[0]:
                raise AssertionError(self.shown)
            self.shown += os.read(self._descriptor, 10_000).decode().replace("\r\n", "\n")
        self.shown = self.shown.partition(words)[2]

    def press(self, key: str) -> None:
        os.write(self._descriptor, key.encode())

    def close(self) -> int:
        self.process.send_signal(2)
        code = self.process.wait(30)
        self.mode_after = termios.tcgetattr(self._descriptor)
        os.close(self._descriptor)
        return code


@contextmanager
def watching(url: str, **given: str) -> Iterator[Watching]:
    open_stores(url)
    one = Watching(url, **given)
    try:
        yield one
    finally:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait(30)


async def test_requests_are_decided_with_single_keys_as_they_come(sqlite_url: str) -> None:
    stores = open_stores(sqlite_url)
    asker = Asker(stores, run_id="guard_1")
    await asker.ask()
    with watching(sqlite_url) as screen:
        await asyncio.to_thread(screen.until, "[a] approve")
        assert [one.name for one in await stores.presence.renewed_since("")] == ["terminal"]
        screen.press("?")
        await asyncio.to_thread(screen.until, "a approves this call once.")
        screen.press("a")
        await asyncio.to_thread(screen.until, "Approved files/write_file to a.txt; it runs now.")
        await asker.ask({"path": "a.txt"}, parameters={"type": "object"})
        await asyncio.to_thread(screen.until, "[a] approve")
        screen.press("e")
        await asyncio.to_thread(screen.until, "Approved files/write_file to b.txt; it runs now.")
        gone = await asker.ask()
        await asyncio.to_thread(screen.until, "[a] approve")
        screen.press("\x1b[A")  # An arrow is no decision.
        await asker.controller.submit_decision(gone.approval_id, "deny")
        await asyncio.to_thread(screen.until, "was decided elsewhere")
        await asker.ask(**READ)
        await asyncio.to_thread(screen.until, "[a] approve")
        screen.press("s")
        await asyncio.to_thread(screen.until, "From now on files/read_file runs unasked, for its session.")
        await asker.ask(reading={"files/read_file": "d1", "files/list_directory": "d2"}, **READ)
        await asyncio.to_thread(screen.until, "[r] allow every tool of this server that claims to read only")
        screen.press("r")
        await asyncio.to_thread(screen.until, "files/read_file, files/list_directory.")
        await killed_guard(sqlite_url)
        await asker.ask()
        await asyncio.to_thread(screen.until, "The guard that asked is gone. A yes counts for ten minutes")
        await asyncio.to_thread(screen.until, "[a] approve")
        screen.press("a")
        await asyncio.to_thread(screen.until, "The guard that asked is gone; the yes")
        assert await asyncio.to_thread(screen.close) == 130
        assert screen.mode_after == screen.mode_before
    assert await stores.presence.renewed_since("", "desk") == []


async def test_an_editor_that_is_not_there_decides_nothing(sqlite_url: str, asker: Asker) -> None:
    request = await asker.ask(parameters={"type": "object"})
    with watching(sqlite_url, editor="no-such-editor") as screen:
        await asyncio.to_thread(screen.until, "[a] approve")
        screen.press("e")
        await asyncio.to_thread(screen.until, "The editor cannot be used")
        assert await asyncio.to_thread(screen.close) == 130
    assert (await asker.controller.get(request.approval_id)).request.status == "pending"


# ---------------------------------------------------------------------------------------------------------------------
# For programs

REQUEST = """approval_id run_id required_action prompt status tool_call_id tool_name tool_kind arguments risk_level reason
comment created_at decided_at tool_description definition_change tell_model changed_arguments reasons caller"""
RECORD = """run_id tool_call_id event decision timestamp tool_name tool_kind risk_level reason arguments comment sequence
previous_hash hash reasons who"""


async def test_json_has_the_fields_of_earlier_versions(shell: Shell, asker: Asker) -> None:
    """Fields may be added; none goes away or gets another name."""
    await asker.ask()
    (request,) = json.loads(await shell("approvals", "list", "--json"))
    (record,) = json.loads(await shell("log", "--json"))
    assert set(REQUEST.split()) <= set(request)
    assert set(RECORD.split()) <= set(record)
