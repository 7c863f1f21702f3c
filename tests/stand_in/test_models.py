import httpx2
import pytest
from openai.types import Model

from tests.stand_in.models import MODELS


async def test_models_are_listed_and_found(client: httpx2.AsyncClient) -> None:
    models = (await client.get("/models")).json()["data"]
    assert [Model.model_validate(model, strict=True).id for model in models] == list(MODELS)
    assert (await client.get("/models/gpt-5")).json()["id"] == "gpt-5"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("POST", "/models", 405), ("DELETE", "/models/gpt-5", 405), ("GET", "/models/no-such-model", 404)],
)
async def test_other_models_and_methods_are_refused(
    client: httpx2.AsyncClient, method: str, path: str, status: int
) -> None:
    reply = await client.request(method, path)
    assert reply.status_code == status
    assert set(reply.json()["error"]) == {"message", "type", "param", "code"}
