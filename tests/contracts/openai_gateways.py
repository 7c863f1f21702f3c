"""How tests make the real gateway: everything has a value unless a test is about it."""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

import pytest
from openai import AsyncOpenAI

from openai_responses_mcp.adapters.clocks import TokyoClock
from openai_responses_mcp.adapters.openai.client import openai_client
from openai_responses_mcp.adapters.openai.gateway import OpenAIResponsesGateway
from openai_responses_mcp.domain.models import ProgressListener
from openai_responses_mcp.domain.ports import Logger, WallClock
from tests.fakes import SLOW_SECONDS, FakeLogger

PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


def openai_gateway(
    base_url: str,
    *,
    api_key: str = "made-up",
    timeout_seconds: float = SLOW_SECONDS,
    max_concurrency: int = 100,
    omit: Iterable[str] = (),
    streams: bool = True,
    clock: WallClock | None = None,
    logger: Logger | None = None,
    mask: Callable[[str], str] = str,
    make_client: Callable[[], AsyncOpenAI] | None = None,
) -> OpenAIResponsesGateway:
    return OpenAIResponsesGateway(
        make_client or partial(openai_client, base_url=base_url, api_key=api_key, max_connections=max_concurrency),
        api_key=api_key,
        api_key_variable="THE_KEY",
        timeout_seconds=timeout_seconds,
        max_concurrency=max_concurrency,
        omit=omit if streams else (*omit, "stream"),
        clock=clock or TokyoClock(),
        logger=logger or FakeLogger(),
        mask=mask,
    )


class InstantClock(TokyoClock):
    """Sleeps end at once; it remembers how long they were."""

    def __init__(self) -> None:
        self.sleeps: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        await asyncio.sleep(0)


def maybe_listener(listens: bool) -> ProgressListener | None:
    return (lambda progress: None) if listens else None


def forget_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine is set up with, loopback is asked directly."""
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
