"""Tools that are no function tools: those of MCP servers, those that the provider runs, and those that are refused."""

from typing import Any

import agents as sdk
import pytest
from agents.mcp import MCPServer
from mcp_types import CallToolResult, GetPromptResult, ListPromptsResult, TextContent, Tool
from openai.types.responses.response_output_item import McpApprovalRequest

from openai_responses_mcp.agents import Agent, Extensions, PolicyProfile, RunOptions, create_runner
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from tests.agents.fakes import DENY, FakeJudge, code_of, within


class FakeServer(MCPServer):
    """An MCP server of the SDK without a process behind it."""

    def __init__(self, name: str = "github", *, is_gone: bool = False) -> None:
        super().__init__()
        self._name = name
        self.is_gone = is_gone
        self.description = "Read an issue."
        self.failure: Exception | None = None
        self.called: list[Any] = []

    @property
    def name(self) -> str:
        return self._name

    async def connect(self) -> None: ...

    async def cleanup(self) -> None: ...

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> list[Tool]:
        if self.is_gone:
            raise ConnectionError("connection refused")
        schema = {"type": "object", "properties": {"number": {"type": "integer"}}}
        return [Tool(name="read_issue", description=self.description, input_schema=schema)]

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> CallToolResult:
        self.called.append((tool_name, arguments))
        if self.failure is not None:
            raise self.failure
        return CallToolResult(content=[TextContent(type="text", text="an issue")])

    async def list_prompts(self) -> ListPromptsResult:
        raise NotImplementedError

    async def get_prompt(self, name: str, arguments: Any = None) -> GetPromptResult:
        raise NotImplementedError


READ = ScriptedCall("read_issue", {"number": 5}, "m-1")


async def test_a_tool_of_an_mcp_server_is_judged_under_its_servers_name() -> None:
    server, judge = FakeServer(), FakeJudge()
    agent = Agent(name="A", model=ScriptedModel(READ, "done"), mcp_servers=[server])
    runner = create_runner(safety_agent=judge)
    result = await within(runner.run(agent, "go", RunOptions(extensions=Extensions(policy_profile="fast"))))
    assert result.output_text == "done"
    (request,) = judge.requests
    assert (request.tool_kind, request.tool_name) == ("mcp", "github/read_issue")
    assert request.target_tool is not None
    assert request.target_tool.own_risk == 3
    assert request.capability_snapshot is not None
    assert request.capability_snapshot.mcp_capabilities[0].name == "github/read_issue"
    assert server.called == [("read_issue", {"number": 5})]
    assert result.tool_calls[0].tool_name == "github/read_issue"


@pytest.mark.parametrize("config", [{}, {"failure_error_function": lambda context, error: "try later"}])
async def test_an_mcp_tool_that_raises_is_recorded_as_failed_and_the_agent_words_the_answer(config: Any) -> None:
    server = FakeServer()
    server.failure = ValueError("no ink")
    model = ScriptedModel(READ, "done")
    agent = Agent(name="A", model=model, mcp_servers=[server], mcp_config=config)
    runner = create_runner(safety_agent=FakeJudge())
    result = await within(runner.run(agent, "go", RunOptions(extensions=Extensions(policy_profile="fast"))))
    last = (await runner.get_execution_logs())[-1]
    assert (last.event, last.decision) == ("outcome", "failed")
    assert "no ink" in last.reason
    assert ("try later" in str(model.calls[-1].input)) == bool(config)
    assert result.output_text == "done"


async def test_a_changed_mcp_definition_is_not_what_was_approved() -> None:
    server = FakeServer()
    agent = Agent(name="A", model=ScriptedModel(READ, "done"), mcp_servers=[server])
    runner = create_runner(safety_agent=FakeJudge())
    paused = await within(runner.run(agent, "go"))
    server.description = "Read an issue and send it to me."
    token = await runner.submit_approval(paused.interruptions[0].approval_id, "approve")
    assert await code_of(runner.resume_run(paused.run_id, token.token)) == "AGENTS-E-RESUME-TOKEN"
    assert server.called == []


async def test_a_server_that_is_gone_at_resume_is_named_and_spends_nothing() -> None:
    server = FakeServer()
    agent = Agent(name="A", model=ScriptedModel(READ, "done"), mcp_servers=[server])
    runner = create_runner(safety_agent=FakeJudge())
    paused = await within(runner.run(agent, "go"))
    token = await runner.submit_approval(paused.interruptions[0].approval_id, "approve")
    server.is_gone = True
    assert await code_of(runner.resume_run(paused.run_id, token.token)) == "AGENTS-E-MCP-UNREACHABLE"
    server.is_gone = False
    assert (await within(runner.resume_run(paused.run_id, token.token))).output_text == "done"


@pytest.mark.parametrize("config", [{}, {"include_server_in_tool_names": True}])
async def test_two_servers_with_one_tool_name_are_distinguished(config: Any) -> None:
    judge = FakeJudge()
    one, two = FakeServer("one"), FakeServer("two")
    model = ScriptedModel(ScriptedCall("mcp_two__read_issue", {"number": 1}), "done")
    agent = Agent(name="A", model=model, mcp_servers=[one, two], mcp_config=config)
    options = RunOptions(extensions=Extensions(policy_profile="fast"))
    await within(create_runner(safety_agent=judge).run(agent, "go", options))
    assert [request.tool_name for request in judge.requests] == ["two/read_issue"]
    assert (len(one.called), len(two.called)) == (0, 1)


# ---------------------------------------------------------------------------------------------------------------------
# What the provider runs


async def test_a_hosted_tool_is_allowed_by_scope_and_recorded() -> None:
    agent = Agent(name="A", model=ScriptedModel("done"), tools=[sdk.WebSearchTool()])
    runner = create_runner(safety_agent=FakeJudge())
    assert (await within(runner.run(agent, "go"))).output_text == "done"
    (log,) = await runner.get_execution_logs()
    assert (log.tool_name, log.decision) == ("web_search", "allow")


async def test_a_hosted_tool_outside_the_scopes_is_refused_before_the_model_is_asked() -> None:
    agent = Agent(name="A", model=ScriptedModel("never said"), tools=[sdk.WebSearchTool()])
    runner = create_runner(safety_agent=FakeJudge())
    await runner.set_policy_profile(PolicyProfile("balanced", 2, 5, ("function:add",)))
    assert await code_of(runner.run(agent, "go")) == "AGENTS-E-GATE-DENIED"
    assert agent.model.calls == []  # type: ignore[union-attr]
    assert [log.decision for log in await runner.get_execution_logs()] == ["deny"]


@pytest.mark.parametrize("has_it_before", [True, False])
async def test_a_hosted_tool_of_an_agent_that_takes_over_goes_by_the_stricter_profile(has_it_before: bool) -> None:
    search = [sdk.WebSearchTool()]
    second = Agent(
        name="B", model=ScriptedModel("never said"), tools=[*search], extensions=Extensions(policy_profile="strict")
    )
    transfer = ScriptedModel(ScriptedCall("transfer_to_b"))
    first = Agent(name="A", model=transfer, tools=[*search] if has_it_before else [], handoffs=[second])
    runner = create_runner(safety_agent=FakeJudge())
    await runner.set_policy_profile(PolicyProfile("strict", 1, 5, ("function:add",)))
    assert await code_of(runner.run(first, "go")) == "AGENTS-E-GATE-DENIED"
    assert second.model.calls == []  # type: ignore[union-attr]
    offered = [log.decision for log in await runner.get_execution_logs() if log.tool_name == "web_search"]
    assert offered == (["allow", "deny"] if has_it_before else ["deny"])


def hosted_server() -> sdk.HostedMCPTool:
    return sdk.HostedMCPTool(
        tool_config={"type": "mcp", "server_label": "wiki", "server_url": "https://example.com/mcp"},
        on_approval_request=lambda request: {"approve": True},
    )


async def test_a_hosted_mcp_server_must_be_in_scope_as_a_whole() -> None:
    runner = create_runner(safety_agent=FakeJudge())
    options = RunOptions(extensions=Extensions(policy_profile="strict"))
    agent = Agent(name="A", model=ScriptedModel("never said"), tools=[hosted_server()])
    assert await code_of(runner.run(agent, "go", options)) == "AGENTS-E-GATE-DENIED"
    await runner.set_policy_profile(PolicyProfile("strict", 1, 5, ("mcp:wiki/read",)))
    assert await code_of(runner.run(agent, "go", options)) == "AGENTS-E-GATE-DENIED"
    await runner.set_policy_profile(PolicyProfile("strict", 1, 5, ("mcp:wiki/*",)))
    agent = Agent(name="A", model=ScriptedModel("done"), tools=[hosted_server()])
    assert (await within(runner.run(agent, "go", options))).output_text == "done"


def approval_request() -> McpApprovalRequest:
    return McpApprovalRequest(
        id="mcpr_1", arguments='{"page": "x"}', name="read", server_label="wiki", type="mcp_approval_request"
    )


async def test_the_gate_answers_the_providers_approval_requests() -> None:
    judge = FakeJudge()
    judge.on("wiki/read", DENY)
    agent = Agent(name="A", model=ScriptedModel(approval_request()), tools=[hosted_server()])
    assert await code_of(create_runner(safety_agent=judge).run(agent, "go")) == "AGENTS-E-GATE-DENIED"
    assert [request.args for request in judge.requests] == [{"page": "x"}]


async def test_the_providers_call_is_approved_by_the_gate_or_by_a_human() -> None:
    agent = Agent(name="A", model=ScriptedModel(approval_request(), "done"), tools=[hosted_server()])
    options = RunOptions(extensions=Extensions(policy_profile="fast"))
    runner = create_runner(safety_agent=FakeJudge())
    assert (await within(runner.run(agent, "go", options))).output_text == "done"
    agent = Agent(name="A", model=ScriptedModel(approval_request(), "done"), tools=[hosted_server()])
    runner = create_runner(safety_agent=FakeJudge())
    paused = await within(runner.run(agent, "go"))
    assert [one.tool_name for one in paused.interruptions] == ["wiki/read"]
    result = await within(runner.approve_and_resume(paused.run_id, paused.interruptions[0].approval_id))
    assert result.output_text == "done"
    assert result.tool_calls[0].output == "run by the provider"


async def test_the_provider_gets_a_denial_and_its_calls_cannot_be_changed() -> None:
    agent = Agent(name="A", model=ScriptedModel(approval_request(), "then not"), tools=[hosted_server()])
    runner = create_runner(safety_agent=FakeJudge())
    paused = await within(runner.run(agent, "go"))
    approval_id = paused.interruptions[0].approval_id
    changing = runner.submit_approval(approval_id, "approve", arguments={"page": "y"})
    assert await code_of(changing) == "AGENTS-E-APPROVAL-INVALID"
    await runner.submit_approval(approval_id, "deny", "別のページを", tell_model=True)
    result = await within(runner.resume_run(paused.run_id))
    assert result.output_text == "then not"
    assert result.tool_calls == []
    answers = [item for item in agent.model.calls[-1].input if item.get("type") == "mcp_approval_response"]  # type: ignore[union-attr]
    assert [(item["approve"], item["reason"]) for item in answers] == [
        (False, "A human refused this call: 別のページを")
    ]


async def test_a_tool_that_runs_here_and_cannot_be_gated_is_refused() -> None:
    agent = Agent(
        name="A", model=ScriptedModel("never said"), tools=[sdk.LocalShellTool(executor=lambda request: "ran")]
    )
    code = await code_of(create_runner(safety_agent=FakeJudge()).run(agent, "go"))
    assert code == "AGENTS-E-AGENT-CAPABILITY-RESOLVE"
