import inspect
from dataclasses import is_dataclass

import pytest

from openai_responses_mcp.domain import models

MODELS = [kind for _, kind in inspect.getmembers(models, is_dataclass) if kind.__module__ == models.__name__]


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_cannot_be_changed(kind: type) -> None:
    fields = inspect.signature(kind).parameters
    model = kind(**dict.fromkeys(fields, "value"))
    for field in fields:
        with pytest.raises(AttributeError):
            setattr(model, field, "another")


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_refuses_a_field_it_does_not_know(kind: type) -> None:
    fields = dict.fromkeys(inspect.signature(kind).parameters, "value")
    with pytest.raises(TypeError):
        kind(**fields, colour="red")
