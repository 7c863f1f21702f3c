"""Every request that the tools and the settings can make fits the API's published schema."""

import importlib
import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from openai_responses_mcp.adapters.openai.wire import request_body
from openai_responses_mcp.config.file import SERVER_FIELDS
from openai_responses_mcp.config.settings import (
    ContextSize,
    Effort,
    ModelProfiles,
    OmittedField,
    Profile,
    RequestSettings,
    SearchDefaults,
    SearchSettings,
    Settings,
    UserLocation,
    Verbosity,
)
from openai_responses_mcp.container import answering_rules
from openai_responses_mcp.domain.answering import model_request
from openai_responses_mcp.server.tools import RESULT_TOOL, TOOLS, Tool, read_question

SCHEMA = json.loads((Path(__file__).parent / "request_schema.json").read_text("utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)
TODAY = date(2026, 11, 16)
ASKING = {name: tool for name, tool in TOOLS.items() if name != RESULT_TOOL}

ALL_SEARCHING = SearchSettings(
    defaults=SearchDefaults(domains=("a.example", "b.example")),
    restrict_to_domains=True,
    context_size="high",
    user_location=UserLocation("JP", "Tokyo", "Tokyo", "Asia/Tokyo"),
    live=False,
)
ALL = Settings(
    request=RequestSettings(store=False, max_output_tokens=99, extra={"service_tier": "flex", "max_tool_calls": 5}),
    search=ALL_SEARCHING,
)
SETTINGS = {
    "defaults": Settings(),
    "all": ALL,
    "nowhere in particular": Settings(search=SearchSettings(user_location=UserLocation())),
    "near": Settings(search=SearchSettings(user_location=UserLocation(country="JP"))),
    **{
        f"model {model}": Settings(model_profiles=ModelProfiles(Profile(model)))
        for model in ("gpt-6-astra", "o3", "gpt-4.1")
    },
    **{
        f"effort {effort}": Settings(model_profiles=ModelProfiles(Profile(reasoning_effort=effort)))
        for effort in get_args(Effort)
    },
    **{
        f"verbosity {verbosity}": Settings(model_profiles=ModelProfiles(Profile(verbosity=verbosity)))
        for verbosity in get_args(Verbosity)
    },
    "background": Settings(model_profiles=ModelProfiles(*[Profile(background=True)] * 3)),
    "no background": Settings(model_profiles=ModelProfiles(*[Profile(background=False)] * 3)),
    **{f"context {size}": Settings(search=SearchSettings(context_size=size)) for size in get_args(ContextSize)},
    **{f"without {name}": ALL._replace(request=ALL.request._replace(omit=(name,))) for name in get_args(OmittedField)},
}
ARGUMENTS = {
    "query": "Why?",
    "input": "Why?",
    "recency_days": 1.5,
    "max_results": 3,
    "domains": ["c.example"],
    "style": "bullets",
    "previous_response_id": "resp_1",
    "searchContextSize": "low",
    "reasoningEffort": "high",
    "model": "gpt-6.1-sol",
    "useCodeInterpreter": True,
}


def body_of(tool: Tool, arguments: dict[str, Any], settings: Settings) -> dict[str, Any]:
    request = model_request(read_question(tool, arguments), answering_rules(settings, "the policy"), TODAY)
    return request_body(request, settings.request.omit, settings.request.extra)


@pytest.mark.parametrize("tool", ASKING.values(), ids=ASKING)
def test_every_request_fits_the_published_schema(tool: Tool) -> None:
    required = {argument.name: "Why?" for argument in tool.arguments if argument.is_required}
    for name, settings in SETTINGS.items():
        for arguments in (required, ARGUMENTS):
            body = body_of(tool, arguments, settings)
            assert [error.message for error in VALIDATOR.iter_errors(body)] == [], name


@pytest.mark.parametrize(("tool", "is_in_background"), [("answer", False), ("answer_detailed", True), ("iris", False)])
def test_only_detailed_answers_run_in_the_background(tool: str, is_in_background: bool) -> None:
    body = body_of(TOOLS[tool], ARGUMENTS, Settings())
    assert body.get("background") == (True if is_in_background else None)
    assert "background" not in body_of(TOOLS[tool], ARGUMENTS, ALL)


def test_request_extra_may_not_set_any_field_that_the_server_sets() -> None:
    settings = ALL._replace(request=ALL.request._replace(store=True, extra={}))
    fields = [body_of(TOOLS[tool], ARGUMENTS, settings) for tool in ("iris", "answer_detailed")]
    assert {name for body in fields for name in body} == set(SERVER_FIELDS)


# The extract of the schema against the types that it comes from


@pytest.mark.parametrize("name", SCHEMA["$defs"])
def test_the_extract_has_the_names_and_values_of_the_sdk_types(name: str) -> None:
    extract = SCHEMA["$defs"][name]
    module, _, kind = extract["from"].rpartition(".")
    hints = get_type_hints(getattr(importlib.import_module(module), kind))
    for field, facts in extract["properties"].items():
        allowed = facts.get("items", facts).get("enum")
        assert allowed is None or sorted(allowed) == sorted(_values(hints[field])), field
    assert set(extract["properties"]) <= set(hints)
    assert set(extract.get("required", ())) <= set(extract["properties"])


def _values(kind: Any) -> Iterator[Any]:
    """The values of a Literal, however deeply nested in lists and unions."""
    if get_origin(kind) is Literal:
        yield from get_args(kind)
        return
    for inner in get_args(kind):
        yield from _values(inner)
