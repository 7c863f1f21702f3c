"""A person at a terminal decides more than yes and no, in another process than the one whose run waits."""

import asyncio
import json
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from openai_responses_mcp.agents import Agent, RunResult, create_runner, tool
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from openai_responses_mcp.desk.terminal.command_line import main as for_people
from openai_responses_mcp.gate.sql.sql_stores import open_stores
from tests.agents.fakes import FakeJudge
from tests.desk.page.asking import Asker
from tests.desk.terminal.pseudo_terminal import on_a_terminal

PROCESS_SECONDS = 30
ran: list[str] = []


@tool(risk_level=3)
def 送金(金額: int, 宛先: str = "佐藤") -> str:
    """お金を送る。"""
    ran.append(f"{宛先}へ{金額}円")
    return f"{金額}円を送りました"


def an_agent(*turns: Any) -> Any:
    return Agent(name="経理", model=ScriptedModel(*turns), tools=[送金])


def runner(url: str) -> Any:
    return create_runner(safety_agent=FakeJudge(), store=url)


def started(url: str, call_id: str = "c-1", 金額: int = 5000) -> Any:
    return asyncio.run(runner(url).run(an_agent(ScriptedCall("送金", {"金額": 金額}, call_id)), "送って"))


def resumed(url: str, run_id: str, *turns: Any) -> tuple[RunResult, Any]:
    agent = an_agent(*turns)
    return asyncio.run(runner(url).resume_run(run_id, agent=agent)), agent.model


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


@pytest.fixture
def paused(sqlite_url: str) -> Any:
    return started(sqlite_url)


def main(words: list[str]) -> int:
    return for_people([*words, "--json"])


def command(*arguments: str, url: str, code: int = 0) -> Any:
    """The real program in a process of its own; what it says as JSON."""
    words = [sys.executable, "-m", "openai_responses_mcp", "agents", *arguments, "--store", url, "--json"]
    done = subprocess.run(words, capture_output=True, timeout=PROCESS_SECONDS, check=False)
    assert done.returncode == code, done.stderr.decode()
    return json.loads(done.stdout) if code == 0 else done.stderr.decode()


def heard(model: Any) -> str:
    return json.dumps(model.calls[-1].input, ensure_ascii=False, default=str)


# ---------------------------------------------------------------------------------------------------------------------
# Across processes


def test_a_denial_reaches_the_model_across_processes(paused: Any, sqlite_url: str) -> None:
    approval_id = paused.interruptions[0].approval_id
    command("approvals", "deny", approval_id, "--tell-model", "--comment", "先に請求書を見せて", url=sqlite_url)
    result, model = resumed(sqlite_url, paused.run_id, "請求書を探します")
    assert result.output_text == "請求書を探します"
    assert ran == []
    assert "A human refused this call: 先に請求書を見せて" in heard(model)
    shown = command("approvals", "show", approval_id, url=sqlite_url)
    assert (shown["status"], shown["tell_model"]) == ("denied", True)
    assert command("log", "--verify", url=sqlite_url)["is_intact"] is True


def test_a_call_is_changed_across_processes(paused: Any, sqlite_url: str, tmp_path: Path) -> None:
    file = tmp_path / "引数.json"
    file.write_text('{"金額": 3000, "宛先": "鈴木"}', encoding="utf-8")
    approval_id = paused.interruptions[0].approval_id
    command("approvals", "approve", approval_id, "--arguments", f"@{file}", "--comment", "減額", url=sqlite_url)
    result, model = resumed(sqlite_url, paused.run_id, "送りました")
    assert result.output_text == "送りました"
    assert ran == ["鈴木へ3000円"]
    assert "A human changed the arguments of this call" in heard(model)
    assert "5000 is now 3000" in heard(model)
    decided = [log for log in command("log", url=sqlite_url) if log["event"] == "approval"]
    assert (decided[0]["comment"], decided[0]["arguments"]) == ("減額", {"金額": 3000, "宛先": "鈴木"})
    assert "5000 is now 3000" in decided[0]["reason"]
    assert command("log", "--verify", url=sqlite_url)["is_intact"] is True


def test_a_standing_approval_asks_no_more_across_processes(paused: Any, sqlite_url: str) -> None:
    approval_id = paused.interruptions[0].approval_id
    said = command("approvals", "allow", approval_id, "--for", "8h", "--comment", "今日だけ", url=sqlite_url)
    assert said["token"]
    result, _ = resumed(sqlite_url, paused.run_id, "済み")
    assert result.output_text == "済み"
    agent = an_agent(ScriptedCall("送金", {"金額": 7}, "c-2"), "これも済み")
    assert asyncio.run(runner(sqlite_url).run(agent, "もう一度")).output_text == "これも済み"
    assert ran == ["佐藤へ5000円", "佐藤へ7円"]
    (standing,) = command("approvals", "standing", url=sqlite_url)
    assert (standing["standing_id"], standing["comment"]) == (said["standing_id"], "今日だけ")
    command("approvals", "revoke", said["standing_id"], "--comment", "終わり", url=sqlite_url)
    assert command("approvals", "standing", url=sqlite_url) == []
    assert started(sqlite_url, "c-3").interruptions
    events = [(log["event"], log["comment"]) for log in command("log", url=sqlite_url) if "standing" in log["event"]]
    assert events == [("standing_made", "今日だけ"), ("standing_used", "今日だけ"), ("standing_ended", "終わり")]
    assert command("log", "--verify", url=sqlite_url)["is_intact"] is True


@pytest.mark.parametrize("words", [["approve"], ["deny"], ["allow", "--always"]])
async def test_a_call_behind_the_guard_has_no_token_to_carry(
    words: list[str], sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    request = await Asker(open_stores(sqlite_url), run_id="guard_1").ask()
    arguments = ["approvals", words[0], request.approval_id, *words[1:], "--store", sqlite_url]
    assert await asyncio.to_thread(main, arguments) == 0
    reply = json.loads(capsys.readouterr().out)
    assert reply["decided"] == "the guard goes on by itself"
    assert "token" not in reply


# ---------------------------------------------------------------------------------------------------------------------
# At 80 columns


def columns_of(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in line)


def test_standing_approvals_fit_80_columns(paused: Any, sqlite_url: str) -> None:
    main(["approvals", "allow", paused.interruptions[0].approval_id, "--for", "8h", "--store", sqlite_url,
          "--comment", "とても長い説明" * 20])  # fmt: skip
    line, _, ending = on_a_terminal(["approvals", "standing", "--store", sqlite_url], 80).splitlines()
    assert "until " in line
    assert "送金" in line
    assert ending.startswith("To end one: openai-responses-mcp approvals revoke ")
    assert columns_of(line) <= 80


def test_a_decided_request_is_shown_whole_at_80_columns(paused: Any, sqlite_url: str) -> None:
    approval_id = paused.interruptions[0].approval_id
    arguments = json.dumps({"金額": 1, "宛先": "あ" * 100}, ensure_ascii=False)
    main(["approvals", "approve", approval_id, "--arguments", arguments, "--store", sqlite_url])
    shown = on_a_terminal(["approvals", "show", approval_id, "--store", sqlite_url], 80)
    assert "It was approved at " in shown
    assert max(map(columns_of, shown.splitlines())) <= 80
    assert shown.count("あ") == 100


# ---------------------------------------------------------------------------------------------------------------------
# Wrong usage


def test_wrong_usage_says_what_is_wrong_and_decides_nothing(
    paused: Any, sqlite_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    approval_id = paused.interruptions[0].approval_id
    (tmp_path / "x.json").write_bytes(b"\xff\xfe\x00")
    for words, problem in (
        (["allow"], "one of the arguments --for --session --always is required"),
        (["allow", "--for", "8h", "--always"], "not allowed with argument"),
        (["allow", "--for", "-8h"], "expected one argument"),
        (["allow", "--for", "８h"], "such as 30m, 8h or 7d"),
        (["approve", "--arguments", "[1]"], "that is not a JSON object"),
        (["approve", "--arguments", '{"a": 1, "a": 2}'], "a key appears twice"),
        (["approve", "--arguments", "@/no/such/file"], "/no/such/file cannot be read"),
        (["approve", "--arguments", f"@{tmp_path}/x.json"], "that is not JSON"),
        (["approve", "--tell-model"], "unknown option --tell-model"),
        (["deny", "--arguments", "{}"], "unknown option --arguments"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(["approvals", words[0], approval_id, *words[1:], "--store", sqlite_url])
        assert problem in capsys.readouterr().err
    for wrong in ('{"金額": "たくさん"}', '{"金額": 1, "誰": "私"}'):
        assert main(["approvals", "approve", approval_id, "--arguments", wrong, "--store", sqlite_url]) == 1
        assert "AGENTS-E-APPROVAL-INVALID" in capsys.readouterr().err
    assert len(command("approvals", "list", url=sqlite_url)) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["approvals", "quit"], "unknown command quit (list, show, approve"),
        (["approvals", "list", "x"], "openai-responses-mcp approvals list: unknown argument x ("),
        (["log", "verfy"], "openai-responses-mcp log: unknown command verfy: did you mean verify?"),
        (["policy", "tset", "x.yaml"], "openai-responses-mcp policy: unknown command tset: did you mean test?"),
        (["stats"], "openai-responses-mcp: unknown command stats: did you mean status?"),
        (["approvals", "serve", "--prt", "1"], "unknown option --prt: did you mean --port?"),
    ],
)
def test_the_nearest_command_is_named_at_every_level(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert said in capsys.readouterr().err
