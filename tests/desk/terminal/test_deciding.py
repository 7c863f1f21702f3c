"""A person at a terminal decides more than yes and no, in another process than the one whose run waits."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from openai_responses_mcp.agents import Agent, RunResult, create_runner, tool
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from openai_responses_mcp.desk.terminal.command_line import main as for_people
from openai_responses_mcp.gate.sql.sql_stores import open_stores
from tests.agents.fakes import FakeJudge
from tests.desk.page.asking import Asker

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


def test_a_call_is_changed_across_processes(
    paused: Any, sqlite_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
    assert for_people(["approvals", "show", approval_id, "--store", sqlite_url]) == 0
    assert '"宛先": "鈴木"' in capsys.readouterr().out
    assert command("log", "--verify", url=sqlite_url)["is_intact"] is True


async def test_a_call_behind_the_guard_has_no_token_to_carry(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    request = await Asker(open_stores(sqlite_url), run_id="guard_1").ask()
    assert await asyncio.to_thread(main, ["approvals", "approve", request.approval_id, "--store", sqlite_url]) == 0
    reply = json.loads(capsys.readouterr().out)
    assert reply["decided"] == "the guard goes on by itself"
    assert "token" not in reply


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
        (["allow", "--for", "８h"], "such as 30m, 8h or 7d"),
        (["approve", "--arguments", "@/no/such/file"], "/no/such/file cannot be read"),
        (["approve", "--arguments", f"@{tmp_path}/x.json"], "that is not JSON"),
        (["approve", "--tell-model"], "unknown option --tell-model"),
        (["deny", "--arguments", "{}"], "unknown option --arguments"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(["approvals", words[0], approval_id, *words[1:], "--store", sqlite_url])
        assert problem in capsys.readouterr().err
    wrong = '{"金額": "たくさん"}'
    assert main(["approvals", "approve", approval_id, "--arguments", wrong, "--store", sqlite_url]) == 1
    assert "AGENTS-E-APPROVAL-INVALID" in capsys.readouterr().err
    assert len(command("approvals", "list", url=sqlite_url)) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["approvals", "quit"], "unknown command quit (list, show, approve"),
        (["approvals", "list", "x"], "openai-responses-mcp approvals list: unknown argument x ("),
        (["policy", "tset", "x.yaml"], "openai-responses-mcp policy: unknown command tset: did you mean test?"),
        (["stats"], "openai-responses-mcp: unknown command stats: did you mean status?"),
    ],
)
def test_the_nearest_command_is_named_at_every_level(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert said in capsys.readouterr().err
