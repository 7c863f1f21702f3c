"""What a run gives back: this library's fields, and everything else as the SDK's own result has it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from openai_responses_mcp.agents.approvals.models import HumanApprovalRequest
from openai_responses_mcp.agents.calls import ToolCallResult
from openai_responses_mcp.agents.json_values import JsonValue
from openai_responses_mcp.agents.runs.models import UsageStats


class RunResult:
    """`interruptions` holds `HumanApprovalRequest`s; any name that is not listed here is the SDK result's."""

    def __init__(
        self,
        *,
        run_id: str,
        output_text: str = "",
        messages: Sequence[JsonValue] = (),
        tool_calls: Sequence[ToolCallResult] = (),
        usage: UsageStats | None = None,
        interruptions: Sequence[HumanApprovalRequest] = (),
        extensions: Mapping[str, object] | None = None,
        last_agent: Any = None,
        sdk_result: object = None,
    ) -> None:
        self.run_id = run_id
        self.output_text = output_text
        self.messages = list(messages)
        self.tool_calls = list(tool_calls)
        self.usage = usage or UsageStats()
        self.interruptions = list(interruptions)
        self.extensions = dict(extensions or {})
        self.last_agent = last_agent
        self.sdk_result = sdk_result

    def __getattr__(self, name: str) -> Any:
        # Only asked for what is not set above.
        if name.startswith("__") or "sdk_result" not in self.__dict__ or self.sdk_result is None:
            raise AttributeError(f"RunResult has no {name!r}")
        return getattr(self.sdk_result, name)

    def __repr__(self) -> str:
        waiting = f", waiting for {len(self.interruptions)}" if self.interruptions else ""
        return f"<RunResult {self.run_id}: {len(self.tool_calls)} calls{waiting}>"


@dataclass(frozen=True, slots=True)
class RunEvent:
    """`type` is text_delta, tool_call, tool_output, interrupted or final_output; the last two carry the `result`."""

    type: str
    delta: str | None = None
    tool_call: ToolCallResult | None = None
    final_output: JsonValue = None
    result: RunResult | None = None
