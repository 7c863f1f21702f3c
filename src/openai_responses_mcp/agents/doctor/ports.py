"""What a diagnosis asks: MCP servers for their tools, the log whether it is intact."""

from collections.abc import Sequence
from typing import Any, Protocol

from openai_responses_mcp.agents.audit.models import LogVerification


class McpProbe(Protocol):
    """A server that can be asked for its tools, as the SDK's are."""

    @property
    def name(self) -> str: ...

    async def list_tools(self) -> Sequence[Any]: ...


class LogProbe(Protocol):
    async def verify(self) -> LogVerification: ...
