"""What a diagnosis asks of MCP servers."""

from collections.abc import Sequence
from typing import Protocol


class McpProbe(Protocol):
    """A server that can be asked for its tools, as the SDK's are. Listing may raise anything."""

    @property
    def name(self) -> str: ...

    async def list_tools(self) -> Sequence[object]: ...
