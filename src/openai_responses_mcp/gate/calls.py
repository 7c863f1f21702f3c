"""One call of a tool: the tool as the gate knows it, the call as it was planned, and what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeGuard

from openai_responses_mcp.gate.json_values import JsonObject, JsonValue, digest
from openai_responses_mcp.gate.reasons import Reason

ToolKind = Literal["mcp", "function", "skill"]

RISK_LEVELS = range(1, 6)
DEFAULT_RISK: Mapping[ToolKind, int] = {"function": 1, "skill": 2, "mcp": 3}
GUARD_RUN = "guard_"  # the ids of sessions of the guard begin with it
# Arguments that can be read in more than one way are kept as one text, under this name. It is impossible to decide on such a
# call.
AMBIGUOUS = "<ambiguous>"


def is_risk_level(value: object) -> TypeGuard[int]:
    return type(value) is int and value in RISK_LEVELS


@dataclass(frozen=True, slots=True)
class ToolDescription:
    """One tool as the gate knows it; an MCP tool is called `server/tool`, a handoff by its target.

    `doubts` are reasons to ask a human that no rule and no standing approval answers, such as a changed definition;
    `definition_change` tells what has changed since the tool was last approved. Relative paths in its arguments begin
    in `directory`; an empty one is the process's own. `annotations` are what an MCP tool claims about itself. `origin` is
    the fingerprint of the command that started a guarded server: what a person allows holds for that command alone.
    """

    name: str
    kind: ToolKind
    description: str = ""
    parameters: JsonObject = field(default_factory=dict)
    risk_level: int | None = None
    require_approval: bool = False
    definition_hash: str = ""
    doubts: tuple[Reason, ...] = ()
    definition_change: str = ""
    directory: str = ""
    annotations: JsonObject = field(default_factory=dict)
    origin: str = ""

    @property
    def own_risk(self) -> int:
        return self.risk_level or DEFAULT_RISK[self.kind]

    @property
    def scope_name(self) -> str:
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True)
class ToolCallResult:
    """A call that ran; `args` and `output` without secrets."""

    tool_call_id: str
    tool_name: str
    tool_kind: ToolKind
    args: JsonObject
    output: JsonValue = None


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call that a model or a caller wants made, before anything of its turn has run."""

    call_id: str
    tool: ToolDescription
    args: JsonObject


def arguments_hash(args: JsonObject) -> str:
    return digest("arguments", dict(args))
