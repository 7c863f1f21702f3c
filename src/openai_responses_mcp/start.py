"""What every command runs in: configuration, key, mask and logger, and the way to the container, loaded when needed."""

import asyncio
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from openai_responses_mcp.adapters.log.structlog_logger import StructlogLogger, capture_sdk_logging
from openai_responses_mcp.config.loading import Configuration

if TYPE_CHECKING:
    from datetime import datetime

    from openai_responses_mcp.container import Container


class Surroundings(NamedTuple):
    configuration: Configuration
    api_key: str
    mask: Callable[[str], str]
    logger: StructlogLogger
    is_ending: asyncio.Event

    def load_container(self) -> "Container":
        """Imports everything that is slow to import: about a second."""
        from openai_responses_mcp.container import Container

        capture_sdk_logging(self.logger)
        return Container(
            settings=self.configuration.settings,
            system_policy=self.configuration.system_policy,
            api_key=self.api_key,
            mask=self.mask,
            logger=self.logger,
            is_ending=self.is_ending,
        )

    async def rehearsed(self) -> "Surroundings":
        """The same, but asking the built-in stand-in for the API, which takes any key."""
        from openai_responses_mcp.rehearsal.server import RehearsalServer

        base_url = await RehearsalServer().start()
        settings = self.configuration.settings
        settings = settings._replace(openai=settings.openai._replace(base_url=base_url))
        return self._replace(configuration=self.configuration._replace(settings=settings), api_key="rehearsal")


def surroundings(configuration: Configuration, environ: Mapping[str, str]) -> Surroundings:
    openai, server = configuration.settings.openai, configuration.settings.server
    mask = _mask(environ, key_variable=openai.api_key_env, base_url=openai.base_url)
    logger = StructlogLogger(
        mask=mask, is_debugging=server.debug, debug_file=server.debug_file if server.debug else None, now=_now
    )
    return Surroundings(configuration, environ.get(openai.api_key_env, ""), mask, logger, asyncio.Event())


def _mask(environ: Mapping[str, str], *, key_variable: str, base_url: str) -> Callable[[str], str]:
    """Made with the first text to mask: a server in good health may never need it."""

    @cache
    def made() -> Callable[[str], str]:
        from openai_responses_mcp.domain.masking import SecretMask, secrets_in

        return SecretMask(secrets_in(environ, key_variable=key_variable, base_url=base_url))

    return lambda text: made()(text)


def _now() -> "datetime":
    from openai_responses_mcp.adapters.tokyo_clock import TokyoClock

    return TokyoClock().now()
