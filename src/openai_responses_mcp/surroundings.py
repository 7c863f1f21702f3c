"""What every command runs in: configuration, key, mask and logger, and the way to the container, loaded when needed."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from openai_responses_mcp.adapters.structlog_logger import StructlogLogger, capture_library_logging
from openai_responses_mcp.config import Configuration
from openai_responses_mcp.domain.masking import SecretMask, secrets_in

if TYPE_CHECKING:
    from openai_responses_mcp.container import Container


@dataclass(frozen=True, slots=True)
class Surroundings:
    configuration: Configuration
    api_key: str
    mask: SecretMask
    logger: StructlogLogger
    is_ending: asyncio.Event

    def load_container(self) -> "Container":
        """Imports everything that is slow to import: about a second."""
        from openai_responses_mcp.container import Container

        capture_library_logging(self.logger)
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
        settings = replace(settings, openai=replace(settings.openai, base_url=base_url))
        return replace(self, configuration=replace(self.configuration, settings=settings), api_key="rehearsal")


def surroundings(configuration: Configuration, environ: Mapping[str, str]) -> Surroundings:
    openai, server = configuration.settings.openai, configuration.settings.server
    mask = SecretMask(secrets_in(environ, key_variable=openai.api_key_env, base_url=openai.base_url))
    logger = StructlogLogger(
        mask=mask, is_debugging=server.debug, debug_file=server.debug_file if server.debug else None, now=_now
    )
    return Surroundings(configuration, environ.get(openai.api_key_env, ""), mask, logger, asyncio.Event())


def _now() -> datetime:
    from openai_responses_mcp.adapters.tokyo_clock import TokyoClock

    return TokyoClock().now()
