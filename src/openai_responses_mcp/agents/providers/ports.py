"""What the rest of the library needs from a provider of models."""

from typing import Any, Protocol

from openai_responses_mcp.agents.providers.models import ModelList, ProviderName


class ProviderHandle(Protocol):
    """A provider of models, ready to be asked for one."""

    @property
    def name(self) -> ProviderName: ...

    def get_model(self, model: str | None = None) -> Any:
        """A model of the SDK, for an agent."""
        ...

    async def list_models(self) -> ModelList: ...
