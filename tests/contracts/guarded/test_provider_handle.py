"""What every provider must do, asked of the fake and of a real one whose API is played on loopback."""

from collections.abc import AsyncIterator

import pytest

from openai_responses_mcp.agents.composition import get_provider
from openai_responses_mcp.agents.providers.settings import ModelList, ProviderHandle
from openai_responses_mcp.gate.errors import AgentsError
from tests.agents.environment import forget_providers
from tests.agents.fakes import FakeProvider, within
from tests.agents.providers.stand_in import KEY, ChatStandIn


@pytest.fixture(params=["fake", "environment"])
async def provider(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ProviderHandle]:
    if request.param == "fake":
        yield FakeProvider(ModelList(["one", "two"]), "ollama")
        return
    forget_providers(monkeypatch)
    async with ChatStandIn("ollama") as stand_in:
        stand_in.models = ["one", "two"]
        monkeypatch.setenv("AGENTS_OLLAMA_BASE_URL", stand_in.base_url)
        monkeypatch.setenv("AGENTS_OLLAMA_API_KEY", KEY)
        monkeypatch.setenv("AGENTS_OLLAMA_MODEL", "one")
        yield get_provider("ollama")


async def test_a_provider_lists_its_models_and_gives_one_by_name_or_by_configuration(provider: ProviderHandle) -> None:
    assert provider.name == "ollama"
    models = await within(provider.list_models())
    assert (list(models), models.source, models.reason) == (["one", "two"], "live", None)
    assert provider.get_model() is not None
    assert provider.get_model("two") is not None
    with pytest.raises(AgentsError, match="AGENTS-E-PROVIDER-CONFIG"):
        provider.get_model("")
