"""What the gate asks (a judge, standing approvals, counts of budgets), and the guard that an engine must ask."""

from collections.abc import Sequence
from typing import Protocol

from openai_responses_mcp.gate.calls import PlannedCall, ToolCallResult, ToolDescription
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue
from openai_responses_mcp.gate.models import ChangedCall, GateDecision, ToolCallRequest
from openai_responses_mcp.gate.policy.profiles import PolicyProfile
from openai_responses_mcp.gate.reasons import Reason


class Judge(Protocol):
    """Anything with this method can be given as `safety_agent`."""

    async def evaluate(self, agent: object, request: ToolCallRequest, policy: PolicyProfile) -> GateDecision:
        """May raise anything. Only a valid verdict counts; anything else is a refusal."""
        ...


class StandingVoice(Protocol):
    async def answer(self, call: PlannedCall, session_id: str, attempt: int = 1) -> Reason | None:
        """Why the call is allowed without asking anybody; None where no standing approval says so. The use is recorded.

        `attempt` counts how often the same call is decided. Raises `StoreUnavailable`.
        """
        ...

    async def end_others(self, tool: ToolDescription, session_id: str) -> None:
        """The tool's definition has changed: what was allowed for another one ends."""
        ...


class BudgetStore(Protocol):
    """Counts of calls and tokens, by the name of their window. Any text is a name. Raises `StoreUnavailable`."""

    async def read(self, window: str) -> tuple[int, int]:
        """How much is used, and up to how much a human has allowed; both 0 where nothing is known."""
        ...

    async def spend(self, window: str, amount: int) -> None:
        """Add to what is used. None of many at once is lost."""
        ...

    async def allow_to(self, window: str, amount: int) -> None:
        """Never less than was allowed before."""
        ...


class TurnLedger(Protocol):
    """What the engine must ask before and tell after every execution."""

    @property
    def refusal(self) -> AgentsError | None:
        """The first refusal of the run. An engine that swallowed it must raise it as soon as it can."""
        ...

    def refuse(self, error: AgentsError) -> AgentsError:
        """Note a refusal and give it back to be raised."""
        ...

    async def judge(self, agent: object, calls: Sequence[PlannedCall], catalog: Sequence[ToolDescription]) -> None:
        """Decide a whole turn. Raises `AgentsError` when any of it is refused; may ask for a pause."""
        ...

    @property
    def is_asking(self) -> bool:
        """Whether any call of the run waits for a human, or was refused by one."""
        ...

    def is_waiting(self, call_id: str) -> bool:
        """Whether the call may not run yet; also true for a call that was never judged, and false for one that is done."""
        ...

    async def used_tokens(self, tokens: int) -> None:
        """A model used these tokens. Called before its turn is judged."""
        ...

    def told(self, call_id: str) -> str | None:
        """What the model gets instead of the call's output, if a human denied it. The call does not start."""
        ...

    def changed(self, call_id: str) -> ChangedCall | None:
        """The call as a human changed it, if they did. The call starts with these arguments."""
        ...

    async def starting(self, call_id: str, tool: ToolDescription, args: JsonObject) -> None:
        """Raises unless exactly this call was let through, once."""
        ...

    async def finished(self, call_id: str, output: JsonValue, error: str | None = None) -> None:
        """`error` is what the tool raised; with an `output` too if the error became an answer for the model."""
        ...

    def shown(self, call: PlannedCall, output: JsonValue = None) -> ToolCallResult:
        """The call as it may be shown."""
        ...

    def result_of(self, call_id: str) -> ToolCallResult | None:
        """What came of a call that has run, as it may be shown."""
        ...

    async def suspend(self, call_id: str) -> None:
        """The call started and waits for a pause inside it; it will be started again on resume."""
        ...

    async def offer_hosted(self, agent: object, tool: ToolDescription) -> None:
        """A tool on the provider's side: in scope, or refused before the model is asked."""
        ...
