"""What the engine asks while an agent is only looked at."""

from collections.abc import Sequence

from openai_responses_mcp.agents.calls import PlannedCall, ToolCallResult, ToolDescription
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.gate.models import ChangedCall
from openai_responses_mcp.agents.gate.ports import TurnGuard
from openai_responses_mcp.agents.json_values import JsonObject, JsonValue


class ReadOnlyGuard(TurnGuard):
    """Records nothing and lets nothing through."""

    @property
    def refusal(self) -> AgentsError | None:
        return None

    def refuse(self, error: AgentsError) -> AgentsError:
        return error

    async def judge(self, agent: object, calls: Sequence[PlannedCall], catalog: Sequence[ToolDescription]) -> None:
        raise _nothing_runs()

    def is_waiting(self, call_id: str) -> bool:
        return True

    async def used_tokens(self, tokens: int) -> None:
        raise _nothing_runs()

    def told(self, call_id: str) -> str | None:
        return None

    def changed(self, call_id: str) -> ChangedCall | None:
        return None

    async def starting(self, call_id: str, tool: ToolDescription, args: JsonObject) -> None:
        raise _nothing_runs()

    async def finished(self, call_id: str, output: JsonValue, error: str | None = None) -> None:
        raise _nothing_runs()

    def shown(self, call: PlannedCall, output: JsonValue = None) -> ToolCallResult:
        raise _nothing_runs()

    def result_of(self, call_id: str) -> ToolCallResult | None:
        return None

    async def suspend(self, call_id: str) -> None:
        raise _nothing_runs()

    async def offer_hosted(self, agent: object, tool: ToolDescription) -> None:
        return


def _nothing_runs() -> AgentsError:
    return AgentsError("AGENTS-E-GATE-DENIED", "Nothing runs while an agent is only looked at")
