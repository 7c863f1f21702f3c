"""The vendor's client, made to send each provider what it understands and nothing that is meant for OpenAI."""

from typing import Any

import httpx2
from openai import AsyncOpenAI

from openai_responses_mcp.agents.adapters.models.reply_bounds import WholeStreams, bound_body
from openai_responses_mcp.agents.json_values import JsonObject, JsonValue
from openai_responses_mcp.agents.providers.settings import CompatModelConfig
from openai_responses_mcp.agents.providers.table import Quirks


class _Client(AsyncOpenAI):
    """Keeps headers that the vendor's own client takes from the environment away from other providers."""

    quirks = Quirks()
    is_for_openai = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if not self.is_for_openai:
            self.organization = None
            self.project = None
            self._custom_headers = dict(options.get("default_headers") or {})

    async def _prepare_options(self, options: Any) -> Any:
        options = await super()._prepare_options(options)
        if isinstance(options.json_data, dict):
            options.json_data = fitting_body(options.json_data, self.quirks)
        return options

    def _make_sse_decoder(self) -> Any:
        return WholeStreams(super()._make_sse_decoder())


def client_for(config: CompatModelConfig) -> AsyncOpenAI:
    # A class of its own, because the vendor's client makes copies of itself with its own arguments only.
    kind = type("ProviderClient", (_Client,), {"quirks": config.quirks, "is_for_openai": config.provider == "openai"})
    client: AsyncOpenAI = kind(
        api_key=config.api_key,
        base_url=config.base_url,
        default_headers=dict(config.headers),
        max_retries=0,
        timeout=config.timeout_seconds,
        http_client=httpx2.AsyncClient(
            follow_redirects=False,
            timeout=config.timeout_seconds,
            event_hooks={"response": [bound_body]},
            # Models are never closed, so a connection kept open would leak with every event loop that ends.
            limits=httpx2.Limits(max_keepalive_connections=0),
        ),
    )
    return client


def fitting_body(body: JsonObject, quirks: Quirks) -> dict[str, JsonValue]:
    fitting = {name: value for name, value in body.items() if name not in quirks.dropped_fields}
    tools = fitting.get("tools")
    if isinstance(tools, list):
        fitting["tools"] = [_fitting_tool(tool, quirks) for tool in tools]
    return fitting


def _fitting_tool(tool: JsonValue, quirks: Quirks) -> JsonValue:
    if not isinstance(tool, dict) or not isinstance(function := tool.get("function"), dict):
        return tool
    fitting = {name: value for name, value in function.items() if name != "strict" or quirks.strict}
    if quirks.dropped_keywords:
        fitting["parameters"] = _without_keywords(fitting.get("parameters"), quirks.dropped_keywords)
    return {**tool, "function": fitting}


def _without_keywords(schema: JsonValue, keywords: frozenset[str]) -> JsonValue:
    if isinstance(schema, list):
        return [_without_keywords(part, keywords) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        # Below `properties` stand names of arguments, which may be anything.
        name: {inner: _without_keywords(part, keywords) for inner, part in value.items()}
        if name in ("properties", "$defs") and isinstance(value, dict)
        else _without_keywords(value, keywords)
        for name, value in schema.items()
        if name not in keywords
    }
