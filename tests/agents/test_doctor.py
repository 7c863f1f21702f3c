"""status() and doctor(): what is well, what is not, and what to do about it."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from agents import WebSearchTool

from openai_responses_mcp.agents import Agent, SafetyAgent, create_runner, hosted_mcp_tool, load_skills, to_tools
from openai_responses_mcp.agents import command_line as doctor_command
from openai_responses_mcp.agents.doctor import Diagnosis, DoctorReport, McpListing
from openai_responses_mcp.agents.providers.settings import ModelList
from openai_responses_mcp.gate.audit.records import LogVerification
from openai_responses_mcp.gate.errors import AgentsError, StoreUnavailable
from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
from tests.agents.fakes import within
from tests.agents.mcp.conftest import wild
from tests.agents.providers.stand_in import KEY, ChatStandIn
from tests.agents.skills.places import BAD, GOOD

OLLAMA = {"AGENTS_MODEL_PROVIDER": "ollama", "AGENTS_OLLAMA_MODEL": "llama"}


def verifying(outcome: LogVerification | Exception) -> Callable[[], Awaitable[LogVerification]]:
    """A check of the log that comes out like this."""

    async def verify() -> LogVerification:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return verify


def listing(name: str, outcome: list[object] | Exception) -> McpListing:
    """A server that lists these tools, or fails so."""

    async def list_tools() -> list[object]:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return name, list_tools


LIVE = ModelList(["llama", "qwen"])


def diagnosis(environ: dict[str, str] | None = None, models: ModelList = LIVE, **parts: Any) -> Diagnosis:
    async def list_models(name: str) -> ModelList:
        return models

    return Diagnosis(OLLAMA if environ is None else environ, list_models, load_skills, **parts)


async def lines(report: Any) -> list[str]:
    found: DoctorReport = await within(report)
    return str(found).splitlines()


async def test_all_is_well() -> None:
    verify = verifying(LogVerification(True, 7))
    doctor = diagnosis(verify_log=verify).doctor(servers=[listing("notes", [1, 2])], skills=[str(GOOD)])
    report = await within(doctor)
    assert report.is_healthy
    assert str(report).splitlines() == [
        "ok    provider: ollama at http://127.0.0.1:11434/v1",
        "ok    ollama API: answers, 2 models",
        "ok    model: llama",
        "ok    MCP server notes: 2 tools",
        "ok    store: the log of 7 records is intact",
        f"ok    skills: 5 in {GOOD}",
    ]


def unlisted(reason: Any, source: Any = "configured") -> ModelList:
    return ModelList(["llama"], source, reason, "status 401")


@pytest.mark.parametrize(
    ("environ", "models", "expected"),
    [
        ({}, LIVE, "warn  provider: none is set up, and the guard needs none; to run agents, set OPENAI_API_KEY"),
        ({"AGENTS_MODEL_PROVIDER": "openai"}, LIVE, "FAIL  provider: openai needs a key: set OPENAI_API_KEY"),
        (OLLAMA, unlisted("network_error"), "start ollama, or check AGENTS_OLLAMA_BASE_URL"),
        (OLLAMA, unlisted("network_error"), "warn  model: llama was not checked"),
        (OLLAMA, unlisted("invalid_payload"), "; check AGENTS_OLLAMA_BASE_URL"),
        (OLLAMA, unlisted("http_error"), "check AGENTS_OLLAMA_API_KEY"),
        (OLLAMA, unlisted("empty_response"), "warn  ollama API: answers, and has no models"),
        (OLLAMA, ModelList(["qwen"]), "warn  model: llama is not in the list; check AGENTS_OLLAMA_MODEL"),
        ({"AGENTS_MODEL_PROVIDER": "ollama"}, LIVE, "none is chosen; set AGENTS_OLLAMA_MODEL, such as llama"),
        ({"AGENTS_MODEL_PROVIDER": "ollama"}, unlisted("timeout", "none"), "none is chosen; set AGENTS_OLLAMA_MODEL"),
    ],
)
async def test_a_problem_with_a_provider_says_what_to_do(
    environ: dict[str, str], models: ModelList, expected: str
) -> None:
    assert any(expected in line for line in await lines(diagnosis(environ, models).doctor()))


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (AgentsError("AGENTS-E-MCP-UNREACHABLE", "gone"), "AGENTS-E-MCP-UNREACHABLE: gone; check that its command"),
        (
            AgentsError("AGENTS-E-MCP-SCHEMA", "twice"),
            "AGENTS-E-MCP-SCHEMA: twice; report it to the makers of the server",
        ),
        (RuntimeError("key=secret"), "does not list its tools; connect it"),
    ],
)
async def test_a_problem_with_a_server_says_what_to_do(outcome: Exception, expected: str) -> None:
    report = await within(diagnosis().doctor(servers=[listing("notes", outcome)]))
    assert not report.is_healthy
    assert f"FAIL  MCP server notes: {expected}" in str(report)


@pytest.mark.parametrize(
    ("outcome", "level", "expected"),
    [
        (StoreUnavailable("locked"), "FAIL", "locked; check the address"),
        (LogVerification(False, 7, 3, "record 3 was changed"), "FAIL", "not intact: record 3 was changed"),
        (LogVerification(True, 7, uncovered="a cut tail"), "warn", "not covered: a cut tail"),
    ],
)
async def test_a_problem_with_the_store_says_what_to_do(outcome: Any, level: str, expected: str) -> None:
    (line,) = [line for line in await lines(diagnosis(verify_log=verifying(outcome)).doctor()) if " store: " in line]
    assert line.startswith(level)
    assert expected in line


async def test_a_problem_with_skills_says_what_to_do(tmp_path: Path) -> None:
    report = await within(diagnosis().doctor(skills=[str(tmp_path), str(BAD), str(tmp_path / "nowhere")]))
    found = str(report)
    assert f"warn  skills: 0 in {tmp_path}; put folders" in found
    assert "FAIL  skill: AGENTS-E-SKILL-PARSE: alias-bomb/SKILL.md" in found
    assert "FAIL  skills: There is no folder" in found
    assert not report.is_healthy


async def test_findings_hold_no_secrets_and_no_second_line() -> None:
    server = listing("a\nb", AgentsError("AGENTS-E-MCP-UNREACHABLE", f"no {KEY}"))
    (line,) = [
        line
        for line in await lines(diagnosis({**OLLAMA, "AGENTS_OLLAMA_API_KEY": KEY}).doctor(servers=[server]))
        if "MCP" in line
    ]
    assert KEY not in line
    assert "a b" in line


# ---------------------------------------------------------------------------------------------------------------------
# Of a runner


async def test_the_status_of_a_runner_has_provider_model_policy_and_tools_and_records_nothing(
    environment: pytest.MonkeyPatch,
) -> None:
    runner = create_runner(safety_agent=SafetyAgent.allow_all())
    agent = Agent(name="a", tools=[*to_tools(await load_skills(GOOD)), WebSearchTool()])
    status = await within(runner.status(agent))
    assert (status.provider, status.model, status.policy.name, status.tools) == ("ollama", "llama", "balanced", 5)
    environment.setenv("AGENTS_MODEL_PROVIDER", "openai")
    environment.delenv("OPENAI_API_KEY", raising=False)
    unknown = await within(runner.status())
    assert (unknown.provider, unknown.model, unknown.tools) == ("none", None, 0)
    assert "OPENAI_API_KEY" in unknown.problem
    assert await within(runner.get_execution_logs()) == []


async def test_a_runner_looks_at_its_store_and_the_servers_of_an_agent(
    environment: pytest.MonkeyPatch, sqlite_url: str
) -> None:
    environment.setenv("AGENTS_OLLAMA_BASE_URL", "http://127.0.0.1:9")
    runner = create_runner(safety_agent=SafetyAgent.allow_all(), store=sqlite_url)
    async with hosted_mcp_tool(wild(), name="wild") as server:
        report = await within(runner.doctor(Agent(name="a", mcp_servers=[server]), skills=[str(GOOD)]))
    assert not report.is_healthy
    assert [finding.what for finding in report.findings if finding.level == "ok"] == [
        "provider",
        "MCP server wild",
        "store",
        "skills",
    ]


# ---------------------------------------------------------------------------------------------------------------------
# At the terminal


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("AGENTS_STORE", "AGENTS_OLLAMA_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**OLLAMA, "NO_PROXY": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


async def doctor(*arguments: str) -> int:
    """In a thread, because the command runs an event loop of its own."""
    return await asyncio.wait_for(asyncio.to_thread(doctor_command.main, arguments), 30)


async def test_the_command_looks_at_everything_it_is_given(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], sqlite_url: str
) -> None:
    await SqlDatabase(sqlite_url).work(lambda connection: None)
    async with ChatStandIn("ollama") as stand_in:
        stand_in.models = ["llama"]
        environment.setenv("AGENTS_OLLAMA_BASE_URL", stand_in.base_url)
        command = " ".join(f"'{word}'" for word in wild())
        code = await doctor("--store", sqlite_url, "--skills", str(GOOD), "--mcp", command)
    out = capsys.readouterr().out
    assert code == 0
    assert [line.split(":")[0].split(maxsplit=1)[1] for line in out.splitlines()] == [
        "provider",
        "ollama API",
        "model",
        "MCP server wild_server",
        "store",
        "skills",
    ]


async def test_the_command_fails_when_something_is_wrong_with_the_chosen_provider(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment.setenv("AGENTS_OLLAMA_BASE_URL", "http://127.0.0.1:9")
    assert await doctor("--json") == 1
    findings = json.loads(capsys.readouterr().out)
    assert {"level": "FAIL", "what": "ollama API"}.items() <= findings[1].items()
    environment.delenv("AGENTS_GEMINI_API_KEY", raising=False)
    assert await doctor("--provider", "gemini") == 1
    assert "AGENTS_GEMINI_API_KEY" in capsys.readouterr().out


@pytest.mark.usefixtures("environment")
async def test_wrong_usage_is_exit_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert await doctor("--mcp", "a 'b") == 2
    assert "AGENTS-E-MCP-SCHEMA" in capsys.readouterr().err
    assert await doctor("--store", "nonsense") == 2


async def test_without_the_extra_the_command_that_installs_it_is_named(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment.setitem(sys.modules, "openai_responses_mcp.gate.sql.sql_stores", None)
    assert await doctor("--store", "sqlite://") == 2
    assert 'pip install "openai-responses-mcp[agents] @ git+' in capsys.readouterr().err
