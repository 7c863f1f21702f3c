"""The first composition root: what the first reply needs. Slow imports come after it, in `container`."""

import asyncio
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from openai_responses_mcp.adapters.log.structlog_logger import StructlogLogger, capture_sdk_logging
from openai_responses_mcp.config.loading import Configuration

if TYPE_CHECKING:
    from datetime import datetime

    from openai_responses_mcp.container import Container
    from openai_responses_mcp.server.calling import Caller


class Basis(NamedTuple):
    """What every command needs."""

    configuration: Configuration
    api_key: str
    mask: Callable[[str], str]
    logger: StructlogLogger
    environ: Mapping[str, str]

    def load_container(
        self,
        *,
        owns_process: bool = True,
        is_observed: bool = False,
        is_ending: asyncio.Event | None = None,
        is_over_http: bool = False,
    ) -> "Container":
        """Does the slow imports. `owns_process`: what libraries log is captured, too.

        `is_ending`: once set, nothing is retried. `is_over_http`: many callers share this process, each with limits.
        """
        from openai_responses_mcp.adapters.telemetry.starting import TelemetryChoice, telemetry_chosen

        if owns_process:
            _load_injector()
        from openai_responses_mcp.container import Container
        from openai_responses_mcp.domain.usage import CallerLimits

        if owns_process:
            capture_sdk_logging(self.logger)
        choice = telemetry_chosen(self.environ) if is_observed else TelemetryChoice()
        for warning in choice.warnings:
            self.logger.warning(warning)
        limits = CallerLimits(*self.configuration.settings.http.limits) if is_over_http else CallerLimits()
        return Container(
            settings=self.configuration.settings,
            system_policy=self.configuration.system_policy,
            api_key=self.api_key,
            mask=self.mask,
            logger=self.logger,
            telemetry_choice=choice,
            is_ending=is_ending or asyncio.Event(),
            limits=limits,
            usage_store=self.environ.get("AGENTS_STORE", "") if is_over_http and any(limits) else "",
            network="tcp" if is_over_http else "pipe",
        )

    async def rehearsed(self, known: Mapping[str, str] | None = None) -> "Basis":
        """The same, with the built-in stand-in instead of the API. `known` has earlier questions by response id."""
        from openai_responses_mcp.rehearsal.server import RehearsalServer

        base_url = await RehearsalServer(known or {}).start()
        settings = self.configuration.settings
        settings = settings._replace(openai=settings.openai._replace(base_url=base_url))
        return self._replace(configuration=self.configuration._replace(settings=settings), api_key="rehearsal")


def _load_injector() -> None:
    """dependency-injector imports every web framework that is installed. Hide them: the import is slow."""
    frameworks = [name for name in ("fastapi", "starlette") if name not in sys.modules]
    sys.modules.update(dict.fromkeys(frameworks))  # type: ignore[arg-type]
    try:
        import dependency_injector.containers  # noqa: F401
    finally:
        for name in frameworks:
            del sys.modules[name]


def basis_of(configuration: Configuration, environ: Mapping[str, str], secrets: Iterable[str] = ()) -> Basis:
    """`secrets` are masked in addition to those in the environment."""
    openai, server = configuration.settings.openai, configuration.settings.server
    mask = _mask(environ, secrets, key_variable=openai.api_key_env, base_url=openai.base_url)
    logger = StructlogLogger(
        mask=mask, is_debugging=server.debug, debug_file=server.debug_file if server.debug else None, now=_now
    )
    return Basis(configuration, environ.get(openai.api_key_env, ""), mask, logger, environ)


def prepared(container: "Container") -> "Caller":
    """What answers calls, with the preparations that a first question would need."""
    container.openai_gateway().prepare()
    return container.caller()


async def settle(container: "Container") -> None:
    """Wait briefly until dropped questions are cancelled at the API and telemetry is sent."""
    telemetry = container.telemetry()
    await asyncio.gather(container.openai_gateway().settle(), *([] if telemetry is None else [telemetry.flush()]))


def _mask(
    environ: Mapping[str, str], secrets: Iterable[str], *, key_variable: str, base_url: str
) -> Callable[[str], str]:
    """Built with the first text to mask: a healthy server may never need it."""

    @cache
    def made() -> Callable[[str], str]:
        from openai_responses_mcp.domain.masking import SecretMask, secrets_in

        return SecretMask([*secrets, *secrets_in(environ, key_variable=key_variable, base_url=base_url)])

    return lambda text: made()(text)


def _now() -> "datetime":
    from openai_responses_mcp.adapters.clocks import TokyoClock

    return TokyoClock().now()
