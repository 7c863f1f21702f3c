"""What the SDK raises, as an `AgentsError`: vendor errors stop here, and `_FAILURES` says what each becomes."""

from collections.abc import Iterator
from contextlib import contextmanager

from agents import (
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    ModelBehaviorError,
    ModelRefusalError,
    OutputGuardrailTripwireTriggered,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
    UserError,
)

from openai_responses_mcp.agents.runs.ports import TurnLedger
from openai_responses_mcp.agents.sdk.takeover import HandoffPause
from openai_responses_mcp.gate.errors import AgentsError

_GUARDRAILS = (
    InputGuardrailTripwireTriggered,
    OutputGuardrailTripwireTriggered,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
)
_PLANNING = (UserError, ModelBehaviorError, ModelRefusalError, MaxTurnsExceeded)
_FAILURES: tuple[tuple[tuple[type[Exception], ...], str], ...] = (
    (_GUARDRAILS, "AGENTS-E-GUARDRAIL-DENIED"),
    (_PLANNING, "AGENTS-E-RUNNER"),
)


@contextmanager
def translated(guard: TurnLedger, otherwise: str) -> Iterator[None]:
    try:
        yield
        failure: Exception | None = None
    except (AgentsError, HandoffPause) as exc:
        failure = exc
    except Exception as exc:  # models and tools are foreign code and raise what they like
        failure = _ours_inside(exc)
        if failure is None:
            code = next((code for kinds, code in _FAILURES if isinstance(exc, kinds)), otherwise)
            failure = AgentsError(code, f"{type(exc).__name__}: {exc}")
            failure.__cause__ = exc
    # A refusal that was turned into an answer for the model is still a refusal.
    if guard.refusal is not None:
        raise guard.refusal
    if failure is not None:
        raise failure


def _ours_inside(exc: BaseException | None) -> AgentsError | None:
    """An error of this library that a tool raised and the SDK wrapped."""
    while exc is not None and not isinstance(exc, AgentsError):
        exc = exc.__cause__
    return exc
