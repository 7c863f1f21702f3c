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


def test_a_denial_is_told_to_the_model_across_processes(paused: Any, sqlite_url: str) -> None:
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


def test_what_is_allowed_from_now_on_asks_nobody_across_processes(paused: Any, sqlite_url: str) -> None:
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
    told = json.loads(capsys.readouterr().out)
    assert told["decided"] == "the guard goes on by itself"
    assert "token" not in told


def test_a_session_is_the_run(paused: Any, sqlite_url: str) -> None:
    command("approvals", "allow", paused.interruptions[0].approval_id, "--session", url=sqlite_url)
    again = ScriptedCall("送金", {"金額": 1}, "c-2")
    result, _ = resumed(sqlite_url, paused.run_id, again, "済み")
    assert result.output_text == "済み"
    assert ran == ["佐藤へ5000円", "佐藤へ1円"]
    assert command("approvals", "standing", url=sqlite_url) == []
    assert started(sqlite_url, "c-3").interruptions


def test_the_same_arguments_are_the_same(paused: Any, sqlite_url: str) -> None:
    command("approvals", "allow", paused.interruptions[0].approval_id, "--always", "--same-arguments", url=sqlite_url)
    resumed(sqlite_url, paused.run_id, "済み")
    assert started(sqlite_url, "c-2", 5001).interruptions
    assert not started_to_the_end(sqlite_url, 5000).interruptions


def started_to_the_end(url: str, 金額: int) -> Any:
    agent = an_agent(ScriptedCall("送金", {"金額": 金額}, "c-9"), "済み")
    return asyncio.run(runner(url).run(agent, "送って"))


# ---------------------------------------------------------------------------------------------------------------------
# At 80 columns


def columns_of(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in line)


def test_standing_approvals_fit_80_columns(paused: Any, sqlite_url: str) -> None:
    main(["approvals", "allow", paused.interruptions[0].approval_id, "--for", "8h", "--store", sqlite_url,
          "--comment", "とても長い説明" * 20])  # fmt: skip
    (line,) = on_a_terminal(["approvals", "standing", "--store", sqlite_url], 80).splitlines()
    assert "until " in line
    assert columns_of(line) <= 80


def test_a_decided_request_is_shown_whole_at_80_columns(paused: Any, sqlite_url: str) -> None:
    approval_id = paused.interruptions[0].approval_id
    arguments = json.dumps({"金額": 1, "宛先": "あ" * 100}, ensure_ascii=False)
    main(["approvals", "approve", approval_id, "--arguments", arguments, "--store", sqlite_url])
    shown = on_a_terminal(["approvals", "show", approval_id, "--store", sqlite_url], 80)
    assert "It was approved at " in shown
    assert max(map(columns_of, shown.splitlines())) <= 80
    assert shown.count("あ") == 100


def test_nothing_standing_says_so(paused: Any, sqlite_url: str) -> None:
    shown = on_a_terminal(["approvals", "standing", "--store", sqlite_url], 80)
    assert shown == "Nothing is allowed from now on.\n"


# ---------------------------------------------------------------------------------------------------------------------
# Wrong usage


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["allow", "A"], "one of the arguments --for --session --always is required"),
        (["allow", "A", "--for", "8h", "--always"], "not allowed with argument"),
        (["allow", "A", "--for", "8"], "such as 30m, 8h or 7d"),
        (["allow", "A", "--for", "-8h"], "expected one argument"),
        (["allow", "A", "--for", "0m"], "such as 30m, 8h or 7d"),
        (["allow", "A", "--for", "八時間"], "such as 30m, 8h or 7d"),
        (["allow", "A", "--for", "８h"], "such as 30m, 8h or 7d"),
        (["allow", "A", "--for", "99999w"], "such as 30m, 8h or 7d"),
        (["approve", "A", "--arguments", "{"], "that is not JSON"),
        (["approve", "A", "--arguments", "[1]"], "that is not a JSON object"),
        (["approve", "A", "--arguments", '{"a": 1, "a": 2}'], "a key appears twice"),
        (["approve", "A", "--arguments", "[" * 100_000], "that is not JSON"),
        (["approve", "A", "--arguments", "@/no/such/file"], "/no/such/file cannot be read"),
        (["approve", "A", "--tell-model"], "unknown option --tell-model"),
        (["deny", "A", "--arguments", "{}"], "unknown option --arguments"),
        (["revoke"], "required: ID"),
        (["lst"], "openai-responses-mcp approvals: unknown command lst: did you mean list? (see openai-resp"),
        (["quit"], "unknown command quit (list, show, approve"),
        (["list", "--runn", "x"], "openai-responses-mcp approvals list: unknown option --runn: did you mean --run?"),
        (["list", "x"], "openai-responses-mcp approvals list: unknown argument x ("),
    ],
)
def test_wrong_usage_says_what_is_wrong(
    words: list[str], said: str, paused: Any, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    approval_id = paused.interruptions[0].approval_id
    words = [approval_id if word == "A" else word for word in words]
    with pytest.raises(SystemExit) as caught:
        main(["approvals", *words, "--store", sqlite_url])
    assert caught.value.code == 2
    assert said in capsys.readouterr().err
    assert main(["approvals", "list", "--store", sqlite_url]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 1


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["approve", "A", "--arguments", '{"金額": "たくさん"}'], "AGENTS-E-APPROVAL-INVALID"),
        (["approve", "A", "--arguments", '{"金額": 1, "誰": "私"}'], "AGENTS-E-APPROVAL-INVALID"),
        (["allow", "nobody", "--always"], "AGENTS-E-APPROVAL-NOT-FOUND"),
        (["revoke", "nobody"], "AGENTS-E-APPROVAL-NOT-FOUND"),
    ],
)
def test_what_is_refused_is_exit_one(
    words: list[str], code: str, paused: Any, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    approval_id = paused.interruptions[0].approval_id
    words = [approval_id if word == "A" else word for word in words]
    assert main(["approvals", *words, "--store", sqlite_url]) == 1
    assert code in capsys.readouterr().err


def test_a_file_that_is_no_text_is_wrong_usage(
    paused: Any, sqlite_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SystemExit):
        main(["approvals", "approve", "A", "--arguments", f"@{tmp_path}/x.json", "--store", sqlite_url])
    assert "that is not JSON" in capsys.readouterr().err


@pytest.mark.parametrize("said", ["30s", "90m", "8h", "7d", "2w", "1h30m"])
def test_durations_are_understood(said: str, paused: Any, sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    approval_id = paused.interruptions[0].approval_id
    assert main(["approvals", "allow", approval_id, "--for", said, "--store", sqlite_url]) == 0
    assert json.loads(capsys.readouterr().out)["holds"].startswith("until 20")


@pytest.mark.parametrize(
    ("words", "said"),
    [
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
