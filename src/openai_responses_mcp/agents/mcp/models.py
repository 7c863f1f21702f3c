"""An MCP server, its tools, and what the user said about them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from openai_responses_mcp.agents.calls import is_risk_level
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.json_values import JsonObject
from openai_responses_mcp.agents.mcp.definitions import pin_of
from openai_responses_mcp.agents.providers.settings import DEFAULT_TIMEOUT_MS


@dataclass(frozen=True, slots=True)
class McpServerConfig:
    """A server: a `command` with its arguments, or the `url` of one. Headers and variables may hold secrets."""

    name: str
    command: tuple[str, ...] = ()
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    timeout_ms: int = DEFAULT_TIMEOUT_MS

    @property
    def timeout_seconds(self) -> float:
        return self.timeout_ms / 1000


@dataclass(frozen=True, slots=True)
class McpCapability:
    """One tool of a server; `entry` is all that the server says about it, `pin` what is kept of that."""

    name: str
    description: str
    schema: JsonObject
    entry: JsonObject

    @property
    def pin(self) -> str:
        return pin_of(self.entry)


@dataclass(frozen=True, slots=True)
class McpServerHandle:
    server_id: str
    capabilities: tuple[McpCapability, ...]


def schema_error(message: str) -> AgentsError:
    return AgentsError("AGENTS-E-MCP-SCHEMA", message)


@dataclass(frozen=True, slots=True)
class McpRules:
    """What the user said about a server's tools: whether to ask, how risky they are, which may be repeated."""

    require_approval: bool = True
    risk_levels: Mapping[str, int] = field(default_factory=dict)
    repeatable: Iterable[str] = frozenset()

    def __post_init__(self) -> None:
        levels: object = self.risk_levels
        repeatable: object = self.repeatable
        if type(self.require_approval) is not bool:
            raise schema_error("require_approval must be True or False")
        if not isinstance(levels, Mapping) or not all(map(is_risk_level, levels.values())):
            raise schema_error("risk_levels must give each tool a whole number from 1 to 5")
        if isinstance(repeatable, str) or not all(isinstance(name, str) for name in self.repeatable):
            raise schema_error("repeatable must be a list of names of tools")
        object.__setattr__(self, "repeatable", frozenset(self.repeatable))

    def risk_of(self, tool: str) -> int | None:
        return self.risk_levels.get(tool, self.risk_levels.get("*"))
