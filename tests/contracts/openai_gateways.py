"""How tests make the real gateway: everything has a value unless a test is about it."""

from collections.abc import Iterable

import pytest
from dependency_injector import providers

from openai_responses_mcp.adapters.openai.client import SdkClient
from openai_responses_mcp.adapters.openai.gateway import OpenAIResponsesGateway
from openai_responses_mcp.adapters.openai.route import ApiRoute
from openai_responses_mcp.adapters.openai.session import ApiSession
from openai_responses_mcp.adapters.tokyo_clock import TokyoClock
from openai_responses_mcp.domain.models import ProgressListener
from openai_responses_mcp.domain.ports import Clock

PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


def openai_gateway(
    base_url: str,
    *,
    api_key: str = "made-up",
    timeout_seconds: float = 5.0,
    max_concurrency: int = 100,
    omit: Iterable[str] = (),
    clock: Clock | None = None,
) -> OpenAIResponsesGateway:
    clock, route = clock or TokyoClock(), ApiRoute(base_url=base_url, api_key=api_key)
    return OpenAIResponsesGateway(
        ApiSession(route, max_connections=max_concurrency),
        providers.ThreadSafeSingleton(SdkClient, route, max_connections=max_concurrency, now=clock.now),
        api_key=api_key,
        api_key_variable="THE_KEY",
        timeout_seconds=timeout_seconds,
        max_concurrency=max_concurrency,
        omit=omit,
        clock=clock,
    )


def maybe_listener(listens: bool) -> ProgressListener | None:
    """Asked with a listener, the gateway streams."""
    return (lambda progress: None) if listens else None


def forget_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine is set up with, loopback is asked directly."""
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
