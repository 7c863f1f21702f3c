"""A provider on loopback, and an environment that names it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from openai_responses_mcp.agents.composition import get_provider
from openai_responses_mcp.agents.providers.compat_model import CompatModel
from openai_responses_mcp.agents.providers.settings import PROVIDERS, ProviderName
from tests.agents.environment import forget_providers
from tests.agents.providers.stand_in import KEY, ChatStandIn

Play = Callable[[ProviderName], Awaitable[ChatStandIn]]
Ask = Callable[[ProviderName], CompatModel]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_providers(monkeypatch)


@pytest.fixture
async def play(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Play]:
    async with AsyncExitStack() as stack:

        async def start(name: ProviderName) -> ChatStandIn:
            stand_in = await stack.enter_async_context(ChatStandIn(name))
            spec = PROVIDERS[name]
            monkeypatch.setenv(spec.base_url_variable, stand_in.base_url)
            monkeypatch.setenv(spec.key_variable, KEY)
            monkeypatch.setenv(spec.model_variable, "some-model")
            return stand_in

        yield start


@pytest.fixture
async def model_of() -> AsyncIterator[Ask]:
    made: list[CompatModel] = []

    def make(name: ProviderName) -> CompatModel:
        made.append(get_provider(name).get_model())
        return made[-1]

    yield make
    for model in made:
        await model.close()
