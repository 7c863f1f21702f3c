"""A paused run as text: written when it pauses, read when it is resumed. Secrets are taken out and put back."""

import json
from collections.abc import Mapping
from typing import cast

from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.json_values import JsonObject, OwnJson
from openai_responses_mcp.agents.runs.book import Run
from openai_responses_mcp.agents.secrets.withholding import Withholding

_FORMAT = 3
# Never the context, not even one that is a text: it is the caller's own.
_KEPT = ("max_turns", "previous_response_id", "auto_previous_response_id", "conversation_id")


class SavedStates:
    def __init__(self, withholding: Withholding) -> None:
        self._withholding = withholding

    def written(self, run: Run, engine_state: JsonObject) -> str:
        state = {
            "engine": engine_state,
            "guard": run.guard.saved(),
            "user_intent": run.guard.user_intent,
            "policy_profile": run.guard.context.policy_profile,
            "require_human_approval": run.guard.context.require_human_approval,
            "max_turns": run.options.max_turns,
            "max_tool_calls": run.extensions.max_tool_calls,
            "max_tokens": run.extensions.max_tokens,
            "sdk": _kept(run.options.sdk),
            "sdk_objects": _objects(run.options.sdk),
        }
        taken_out = {"format": _FORMAT, **self._withholding.take_out(state, run.guard.secret_texts)}
        return json.dumps(taken_out, ensure_ascii=False)

    def read(self, payload: str) -> OwnJson:
        """Raises `AGENTS-E-RUNNER` for a text that this version did not write."""
        try:
            state = json.loads(payload)
        except ValueError:
            state = None
        if not isinstance(state, dict) or state.get("format") != _FORMAT:
            raise _unreadable()
        try:
            return cast(OwnJson, self._withholding.put_back(state))
        except (KeyError, IndexError, TypeError):
            raise _unreadable() from None


def _kept(sdk: Mapping[str, object]) -> dict[str, object]:
    """Options of the SDK that mean the same in another process."""
    return {name: sdk[name] for name in _KEPT if isinstance(sdk.get(name), str | int)}


def _objects(sdk: Mapping[str, object]) -> list[str]:
    """The names of options that have to be given again in another process: a context, a session, hooks and so on."""
    return sorted(name for name, value in sdk.items() if value is not None and name not in _kept(sdk))


def _unreadable() -> AgentsError:
    message = "The saved run is of a kind that this version cannot read"
    return AgentsError("AGENTS-E-RUNNER", message, details={"reason": "state_unreadable"})
