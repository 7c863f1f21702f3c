"""`create_runner(policy_file=…)`: real runs under the rules of a real file."""

from pathlib import Path
from typing import Any

import pytest
from agents.mcp import MCPServerStdio

from openai_responses_mcp.agents import (
    Agent,
    AgentsError,
    Extensions,
    RequestedToolCall,
    RunOptions,
    create_runner,
    hosted_mcp_tool,
    tool,
)
from openai_responses_mcp.agents.mcp.hosted_server import directory_of
from openai_responses_mcp.agents.runner import AgentRunner
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from openai_responses_mcp.gate.sql.sql_stores import open_stores
from tests.agents.fakes import BreakableLogStore, FakeJudge, code_of, within


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "policy.yaml"


class Office:
    """An agent with one tool, under a policy file."""

    def __init__(self, file: Path, text: str, **options: Any) -> None:
        self.saved: list[str] = []
        self.writes = file.write_text
        self.writes(text)

        @tool(risk_level=3)
        def save(path: str) -> str:
            """Save a file."""
            self.saved.append(path)
            return "saved"

        self.model = ScriptedModel()
        self.agent = Agent(name="Clerk", model=self.model, tools=[save])
        self.runner: AgentRunner = create_runner(safety_agent=FakeJudge(), policy_file=file, **options)

    async def asks_to_save(self, path: str, **extensions: Any) -> Any:
        wanted = Extensions(tool_calls=(RequestedToolCall("save", {"path": path}),), **extensions)
        return await within(self.runner.run(self.agent, "", RunOptions(extensions=wanted)))


RULES = """\
version: 1
rules:
  - tools: [function/save]
    when: {{path: "{folder}/secret/**"}}
    decide: deny
    reason: that is nobody's business
  - tools: [function/save]
    when: {{path: "{folder}/**"}}
    decide: allow
"""


async def test_the_first_rule_that_fits_decides(file: Path, tmp_path: Path) -> None:
    office = Office(file, RULES.format(folder=tmp_path))
    assert (await office.asks_to_save(f"{tmp_path}/a")).interruptions == []
    assert (await office.asks_to_save("/elsewhere/a")).interruptions
    with pytest.raises(AgentsError, match=r"that is nobody's business \(policy rule 1\)"):
        await office.asks_to_save(f"{tmp_path}/x/../secret/a")
    assert office.saved == [f"{tmp_path}/a"]
    logs = await office.runner.get_execution_logs()
    assert [log.reason for log in logs if log.event == "decision"] == [
        "fine; the policy file allows it (policy rule 2)",
        "risk 3 needs a human under the profile balanced",
        "that is nobody's business (policy rule 1)",
    ]


async def test_a_file_that_changes_during_a_run_counts_with_the_next_call(file: Path) -> None:
    office = Office(file, "version: 1\nprofile: fast\n")

    @tool
    def tighten() -> str:
        """Make the policy stricter."""
        file.write_text("version: 1\nprofile: fast\nrules: [{tools: ['*'], decide: deny}]\n")
        return "done"

    office.agent.tools.append(tighten)
    save, harder = ScriptedCall("save", {"path": "a"}), ScriptedCall("tighten", {})
    office.model.enqueue(save, harder, save, "never said")
    with pytest.raises(AgentsError, match="policy rule 1"):
        await within(office.runner.run(office.agent, "go"))
    assert office.saved == ["a"]


async def test_a_file_that_asks_for_the_log_gets_it(file: Path) -> None:
    logs = BreakableLogStore(open_stores().logs)
    logs.is_broken = True
    office = Office(file, "version: 1\nprofile: fast\naudit: required\n", store="sqlite://", log_store=logs)
    assert await code_of(office.asks_to_save("a")) == "AGENTS-E-LOG-STORE"
    assert office.saved == []


def test_a_file_with_mistakes_stops_the_runner_before_it_starts(file: Path) -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-POLICY-INVALID") as caught:
        Office(file, "version: 1\nrules: [{tools: [save], decide: alow}]\n")
    assert "did you mean allow?" in caught.value.message
    assert "write */save for the tool of any server" in caught.value.message


def test_the_directory_of_a_server_is_known(tmp_path: Path) -> None:
    plain = MCPServerStdio({"command": "x", "cwd": str(tmp_path)})
    assert directory_of(plain) == str(tmp_path)
    assert directory_of(hosted_mcp_tool(plain)) == str(tmp_path)
    assert directory_of(hosted_mcp_tool({"command": "x", "cwd": "/srv"})) == "/srv"
    assert directory_of(hosted_mcp_tool("x")) == ""
    assert directory_of(hosted_mcp_tool("http://127.0.0.1:1/mcp")) == ""
