"""The models that the stand-in knows, as the API lists them. The doctor, which does not rehearse, asks for them."""

from typing import Any

from openai_responses_mcp.rehearsal.wire import ApiError

UNKNOWN_MODEL = "no-such-model"
MODELS = ("gpt-5.2", "gpt-5.4-mini", "gpt-5.5")

_CREATED = 1_700_000_000


def list_models() -> dict[str, Any]:
    return {"object": "list", "data": [get_model(name) for name in MODELS]}


def get_model(name: str) -> dict[str, Any]:
    if name == UNKNOWN_MODEL:
        raise ApiError(404, f"The model '{name}' does not exist", param="model", code="model_not_found")
    return {"id": name, "object": "model", "created": _CREATED, "owned_by": "rehearsal"}
