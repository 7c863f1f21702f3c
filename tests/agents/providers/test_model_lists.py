"""The models of a provider, and what is listed when it does not answer."""

import pytest

from openai_responses_mcp.agents.composition import get_provider
from openai_responses_mcp.agents.providers import compat_model
from openai_responses_mcp.agents.providers.settings import PROVIDERS, ProviderName
from tests.agents.fakes import within
from tests.agents.providers.conftest import Play
from tests.agents.providers.stand_in import HANG_UP, as_json, refusal
from tests.stand_in.http_wire import Reply


@pytest.mark.parametrize("name", list(PROVIDERS))
async def test_the_live_list_comes_from_the_provider(name: ProviderName, play: Play) -> None:
    (await play(name)).models = ["one", "two"]
    models = await within(get_provider(name).list_models())
    assert (list(models), models.source, models.reason) == (["one", "two"], "live", None)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (refusal(500, "down"), "http_error"),
        (HANG_UP, "network_error"),
        (Reply(200, {}, b"<html>"), "invalid_payload"),
        (as_json({"data": [{"name": "one"}]}), "invalid_payload"),
        (as_json({"data": []}), "empty_response"),
    ],
)
async def test_without_one_the_configured_model_is_listed_with_the_reason(
    play: Play, reply: Reply, reason: str
) -> None:
    (await play("lmstudio")).models = reply
    models = await within(get_provider("lmstudio").list_models())
    assert (list(models), models.source, models.reason) == (["some-model"], "configured", reason)
    assert models.detail


async def test_a_list_that_never_comes_is_a_timeout(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTS_REQUEST_TIMEOUT_MS", "1000")
    await play("ollama")
    assert (await within(get_provider("ollama").list_models())).reason == "timeout"


async def test_a_list_without_end_is_cut_off(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compat_model, "LONGEST_LIST_BYTES", 10)
    (await play("ollama")).models = ["a-model-with-a-long-name"]
    assert (await within(get_provider("ollama").list_models())).reason == "invalid_payload"


async def test_without_any_model_nothing_is_listed(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    (await play("ollama")).models = refusal(500, "down")
    monkeypatch.delenv("AGENTS_OLLAMA_MODEL")
    models = await within(get_provider("ollama").list_models())
    assert (list(models), models.source, models.reason) == ([], "none", "http_error")
