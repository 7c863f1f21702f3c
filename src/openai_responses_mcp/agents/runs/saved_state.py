"""A paused run as text: written when it pauses, read when it is resumed. Secrets are taken out and put back."""

import json
from collections.abc import Mapping
from typing import Any

from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.runs.book import Run
from openai_responses_mcp.agents.secrets.withholding import Withholding

_FORMAT = 2


class SavedStates:
    def __init__(self, withholding: Withholding) -> None:
        self._withholding = withholding

    def written(self, run: Run, engine_state: Mapping[str, Any]) -> str:
        state = {
            "format": _FORMAT,
            "engine": engine_state,
            "guard": run.guard.saved(),
            "user_intent": run.guard.user_intent,
            "policy_profile": run.guard.context.policy_profile,
            "require_human_approval": run.guard.context.require_human_approval,
            "max_turns": run.options.max_turns,
        }
        return json.dumps(self._withholding.take_out(state))

    def read(self, payload: str) -> dict[str, Any]:
        """Raises `AGENTS-E-RUNNER` for a text that this version did not write."""
        try:
            state = json.loads(payload)
        except ValueError:
            state = None
        if not isinstance(state, dict) or state.get("format") != _FORMAT:
            message = "The saved run is of a kind that this version cannot read"
            raise AgentsError("AGENTS-E-RUNNER", message, details={"reason": "state_unreadable"})
        read: dict[str, Any] = self._withholding.put_back(state)
        return read
