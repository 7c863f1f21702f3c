"""The errors of gate, guard and agents. Programs distinguish them by `code`; few have a class of their own.

AgentsError
├── StoreUnavailable        a store cannot be reached, is full, locked or read-only (AGENTS-E-LOG-STORE)
│   ├── ReadOnlyStore       it can be read, but not written (AGENTS-E-LOG-STORE)
│   └── RecordRefused       it works, but rejects this one record (AGENTS-E-LOG-STORE)
└── DuplicateRecord         an audit record with this run, call and event already exists (AGENTS-E-LOG-STORE)

`CODES` is the whole list, each with the layer it comes from; `docs/agents.md` shows the same table.
"""

from collections.abc import Mapping
from typing import Final, Literal

LONGEST_ID = 128
LONGEST_TEXT = 2000

Category = Literal["facade", "orchestration", "safety", "tool_integration", "model_provider", "audit_config"]

CODES: Final[Mapping[str, tuple[Category, str]]] = {
    "AGENTS-E-RUNNER-CONFIG": ("orchestration", "Something the runner needs is missing or out of range"),
    "AGENTS-E-RUNNER": ("orchestration", "The run could not be planned, continued or loaded"),
    "AGENTS-E-STREAM": ("orchestration", "The stream broke before the run was over"),
    "AGENTS-E-GATE-DENIED": ("safety", "The gate or a human refused the call; no call of its turn ran"),
    "AGENTS-E-GATE-EVAL": ("safety", "The judge failed or gave no usable verdict; treated as a refusal"),
    "AGENTS-E-GUARDRAIL-DENIED": ("safety", "A guardrail refused the input, the call or the output"),
    "AGENTS-E-AGENT-CAPABILITY-RESOLVE": ("safety", "The agent's tools cannot be determined, so it cannot be guarded"),
    "AGENTS-E-APPROVAL-NOT-FOUND": ("safety", "No such approval, or no such run"),
    "AGENTS-E-APPROVAL-INVALID": ("safety", "The approval is decided already, not decided yet, or the input is wrong"),
    "AGENTS-E-RESUME-TOKEN": (
        "safety",
        "The token is wrong, used, expired or of another run, or what it approved changed",
    ),
    "AGENTS-E-MCP-UNREACHABLE": ("tool_integration", "An MCP server cannot be reached"),
    "AGENTS-E-MCP-SCHEMA": ("tool_integration", "An MCP server or its tool definitions cannot be used"),
    "AGENTS-E-MCP-EXEC": ("tool_integration", "An MCP tool failed"),
    "AGENTS-E-SKILL-PARSE": ("tool_integration", "A SKILL.md cannot be read"),
    "AGENTS-E-SKILL-NOT-LOADED": ("tool_integration", "The folder of skills is missing, or nothing was loaded from it"),
    "AGENTS-E-SKILL-NOT-FOUND": ("tool_integration", "No skill with this id"),
    "AGENTS-E-SKILL-SCHEMA": ("tool_integration", "A skill's input schema cannot be used"),
    "AGENTS-E-PROVIDER-CONFIG": ("model_provider", "A provider lacks its key, model or address"),
    "AGENTS-E-COMPAT-UNSUPPORTED": ("model_provider", "The provider cannot do what was asked for"),
    "AGENTS-E-POLICY-INVALID": (
        "audit_config",
        "No such policy profile, or the profile or policy file is invalid",
    ),
    "AGENTS-E-LOG-STORE": ("audit_config", "A store cannot be reached, is full, locked or read-only"),
}


class AgentsError(Exception):
    """`code` is one of `CODES`, `category` its layer; `details` holds facts for programs and never a secret."""

    def __init__(
        self,
        code: str,
        message: str,
        category: Category | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        # Without super().__init__, `args` stay those of the subclass, so that every error can be pickled.
        self.code = code
        self.message = message
        self.category: Category = category or CODES[code][0]
        self.details: dict[str, object] = dict(details or {})

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class StoreUnavailable(AgentsError):
    """Nothing was written, or it is unknown whether it was."""

    def __init__(self, message: str) -> None:
        super().__init__("AGENTS-E-LOG-STORE", message, details={"reason": "unavailable"})


class ReadOnlyStore(StoreUnavailable):
    """Commands that only read go on."""


class RecordRefused(StoreUnavailable):
    """A retry will not help. Other records are not affected."""


class DuplicateRecord(AgentsError):
    """The first record stays."""

    def __init__(self, message: str) -> None:
        super().__init__("AGENTS-E-LOG-STORE", message, details={"reason": "duplicate"})


def config_error(message: str) -> AgentsError:
    return AgentsError("AGENTS-E-RUNNER-CONFIG", message)


def require(is_fine: bool, code: str, message: str) -> None:
    """Raises `AgentsError` unless `is_fine`. For values from outside, where annotations are not enforced."""
    if not is_fine:
        raise AgentsError(code, message)


def is_short_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_TEXT


def is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)
