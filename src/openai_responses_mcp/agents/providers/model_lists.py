"""Asking a provider which models it has. Over plain HTTP, because the reason for a failure must be known exactly."""

import asyncio
import json
from collections.abc import Mapping

import httpx2

from openai_responses_mcp.agents.providers.settings import ProviderSettings
from openai_responses_mcp.agents.providers.table import ListFailure

LONGEST_LIST_BYTES = 8 * 1024 * 1024


class ListUnavailable(Exception):
    def __init__(self, reason: ListFailure, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


async def live_models(settings: ProviderSettings) -> list[str]:
    spec, config = settings.spec, settings.config
    key = config.api_key if spec.key_header != "Authorization" else f"Bearer {config.api_key}"
    headers = {spec.key_header: key, **spec.list_headers, **config.headers}
    try:
        async with asyncio.timeout(config.timeout_seconds), httpx2.AsyncClient(follow_redirects=False) as client:
            status, body = await _fetch(client, f"{config.base_url}/models", headers)
    except (TimeoutError, httpx2.TimeoutException):
        raise ListUnavailable("timeout", f"no answer within {config.timeout_seconds:g} s") from None
    except (httpx2.HTTPError, OSError):
        raise ListUnavailable("network_error", "no connection") from None
    if status != 200:
        raise ListUnavailable("http_error", f"status {status}")
    return _models_in(body, spec.model_prefix)


async def _fetch(client: httpx2.AsyncClient, url: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
    body = bytearray()
    async with client.stream("GET", url, headers=dict(headers)) as response:
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > LONGEST_LIST_BYTES:
                raise ListUnavailable("invalid_payload", "the list is too long")
    return response.status_code, bytes(body)


def _models_in(body: bytes, prefix: str) -> list[str]:
    try:
        data = json.loads(body)["data"]
        names = [entry["id"].removeprefix(prefix) for entry in data]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise ListUnavailable("invalid_payload", "the list cannot be read") from None
    if not names:
        raise ListUnavailable("empty_response", "the list is empty")
    return names
