"""A person at a terminal: what is shown, what is decided, and with which exit code."""

import asyncio
import errno
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from openai_responses_mcp.agents import Agent, create_runner, tool
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from openai_responses_mcp.desk.terminal.command_line import main as command
from openai_responses_mcp.gate.audit.records import ExecutionLog, first_break
from openai_responses_mcp.gate.sql.own_files import store_to_wait_at
from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
from openai_responses_mcp.gate.sql.sql_log import SqlExecutionLogStore
from tests.agents.fakes import FakeJudge


@tool(risk_level=3)
def pay(amount: int) -> str:
    """Pay somebody."""
    return f"paid {amount}"


def an_agent() -> Any:
    return Agent(
        name="Clerk", model=ScriptedModel(ScriptedCall("pay", {"amount": 5, "password": "x"}), "done"), tools=[pay]
    )


@pytest.fixture
def paused(sqlite_url: str) -> Any:
    return asyncio.run(create_runner(safety_agent=FakeJudge(), store=sqlite_url).run(an_agent(), "go"))


def main(words: list[str]) -> int:
    """As a program calls it."""
    return command([*words, "--json"])


def said(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_waiting_approvals_are_listed_shown_and_approved(
    paused: Any, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["approvals", "list", "--store", sqlite_url]) == 0
    (request,) = said(capsys)
    assert (request["run_id"], request["tool_name"]) == (paused.run_id, "pay")
    assert main(["approvals", "show", request["approval_id"], "--store", sqlite_url]) == 0
    assert said(capsys)["arguments"] == {"amount": 5, "password": "x"}
    assert main(["approvals", "approve", request["approval_id"], "--comment", "fine", "--store", sqlite_url]) == 0
    token = said(capsys)
    runner = create_runner(safety_agent=FakeJudge(), store=sqlite_url)
    result = asyncio.run(runner.resume_run(paused.run_id, token["token"], agent=an_agent_that_goes_on()))
    assert result.output_text == "done"
    assert main(["approvals", "list", "--run", paused.run_id, "--store", sqlite_url]) == 0
    assert said(capsys) == []


def an_agent_that_goes_on() -> Any:
    return Agent(name="Clerk", model=ScriptedModel("done"), tools=[pay])


def test_a_request_is_denied_once(paused: Any, sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    approval_id = paused.interruptions[0].approval_id
    assert main(["approvals", "deny", approval_id, "--store", sqlite_url]) == 0
    assert said(capsys)["status"] == "active"
    assert main(["approvals", "approve", approval_id, "--store", sqlite_url]) == 1
    assert "AGENTS-E-APPROVAL-INVALID" in capsys.readouterr().err
    assert main(["approvals", "show", "nobody", "--store", sqlite_url]) == 1
    assert "AGENTS-E-APPROVAL-NOT-FOUND" in capsys.readouterr().err


class FullDisk(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_decision_whose_token_cannot_be_shown_stands(
    paused: Any, sqlite_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waiting = paused.interruptions[0].approval_id
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", FullDisk())
        assert main(["approvals", "approve", waiting, "--store", sqlite_url]) == 1
    assert "This is decided. Its token cannot be shown (No space left on device)" in capsys.readouterr().err
    assert main(["approvals", "deny", waiting, "--store", sqlite_url]) == 1
    assert "decided already" in capsys.readouterr().err


def test_the_log_is_shown_and_verified(
    paused: Any, sqlite_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTS_STORE", sqlite_url)
    assert main(["log", "--run", paused.run_id]) == 0
    assert [log["event"] for log in said(capsys)] == ["decision", "approval_requested"]
    assert main(["log", "--since", "2999-01-01T00:00:00+00:00"]) == 0
    assert said(capsys) == []
    assert main(["log", "--verify"]) == 0
    assert said(capsys)["is_intact"] is True
    store = SqlExecutionLogStore(SqlDatabase(sqlite_url))
    asyncio.run(store.append(ExecutionLog("r", "c", "decision", "allow", "2026")))
    assert main(["log", "--verify"]) == 1
    assert said(capsys)["first_bad"] == 3
    assert first_break(asyncio.run(store.query())) is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["approvals", "show", "x"], "AGENTS_STORE"),
        (["approvals", "watch"], "cannot be made: Not a directory"),
        (["approvals", "list", "--store", "mysql://x"], "AGENTS-E-RUNNER-CONFIG"),
        (["log", "--store", "sqlite:////no/such/folder/x.db"], "AGENTS-E-LOG-STORE"),
    ],
)
def test_wrong_usage_is_exit_two(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENTS_STORE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


def test_before_the_first_guard_there_is_nothing_to_see_but_a_store_to_wait_at(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AGENTS_STORE", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for words in (["approvals", "list"], ["approvals", "standing"], ["log"], ["status"]):
        assert command(words) == 0
        assert capsys.readouterr().out == "There is no store yet; the first guarded call makes one.\n"
        assert main(words) == 0
        assert capsys.readouterr().out == "[]\n"
    for words in (["log", "verify"], ["log", "--verify"], ["policy", "suggest"], ["policy", "test", "a.yaml"]):
        assert command(words) == 2
        assert capsys.readouterr().err.startswith("openai-responses-mcp: there is no store yet: the first guarded call")
    assert list(tmp_path.iterdir()) == []
    store = store_to_wait_at(None, {"XDG_STATE_HOME": str(tmp_path)})
    assert store == f"sqlite:///{tmp_path}/openai-responses-mcp/guard.db"
    assert main(["approvals", "list"]) == 0


@pytest.mark.parametrize("words", [["approvals", "list"], ["log", "--verify"]])
def test_a_store_that_is_not_there_is_an_error_and_is_not_made(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--store", f"sqlite:///{tmp_path}/typo.db"]) == 2
    assert "There is no store at this address" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_loss_is_accepted_at_the_terminal(
    paused: Any, sqlite_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "sato")
    store = ["--store", sqlite_url]
    assert main(["log", "accept-loss", "--reason", "just so", *store]) == 2
    assert "intact" in capsys.readouterr().err
    (tmp_path / "agents.db.head").unlink()
    assert main(["log", *store, "--verify"]) == 1
    assert said(capsys)["problem"] == "the head of the log is missing"
    assert main(["log", "accept-loss", *store, "--reason", "the folder was moved"]) == 0
    record = said(capsys)
    assert (record["comment"], record["arguments"]["by"]) == ("the folder was moved", "sato")
    assert main(["log", "--verify", *store]) == 0
    assert said(capsys)["accepted"] == [
        f"the head of the log is missing; accepted in record {record['sequence']}: the folder was moved"
    ]
    assert main(["log", *store]) == 0
    assert said(capsys)[-1]["event"] == "loss_accepted"
