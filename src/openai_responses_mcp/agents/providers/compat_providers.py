"""Providers as the environment sets them up, each giving models that the SDK can run."""

from openai_responses_mcp.agents.providers.compat_model import CompatModel
from openai_responses_mcp.agents.providers.model_lists import ListUnavailable, live_models
from openai_responses_mcp.agents.providers.settings import (
    LONGEST_MODEL_NAME,
    CompatModelConfig,
    ProviderSettings,
    config_error,
)
from openai_responses_mcp.agents.providers.table import ListSource, ModelList, ProviderHandle, ProviderName


class CompatModelProvider:
    def create_model(self, model_name: str, config: CompatModelConfig) -> "CompatModel":
        name: object = model_name
        if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_MODEL_NAME:
            raise config_error(f"A model's name has 1 to {LONGEST_MODEL_NAME} characters")
        return CompatModel(name, config)


class EnvironmentProvider(ProviderHandle):
    """A provider as the environment describes it at the time it is asked for."""

    def __init__(self, settings: ProviderSettings) -> None:
        self._settings = settings

    @property
    def name(self) -> ProviderName:
        return self._settings.spec.name

    @property
    def settings(self) -> ProviderSettings:
        return self._settings

    def get_model(self, model: str | None = None) -> "CompatModel":
        return CompatModelProvider().create_model(self._settings.model_name(model), self._settings.config)

    async def list_models(self) -> ModelList:
        """The provider's own list, else the model that is configured, else the one that it has by default."""
        try:
            return ModelList(await live_models(self._settings))
        except ListUnavailable as exc:
            model, spec = self._settings.model, self._settings.spec
            if model is None:
                return ModelList([], "none", exc.reason, exc.detail)
            source: ListSource = "default" if model == spec.default_model else "configured"
            return ModelList([model], source, exc.reason, exc.detail)

    def __repr__(self) -> str:
        return f"<provider {self.name} at {self._settings.config.base_url}>"
