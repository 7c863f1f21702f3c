"""The first composition root: what stands before the first reply. What is slow to load comes after it, in `container`."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from openai_responses_mcp.adapters.log.structlog_logger import StructlogLogger, capture_sdk_logging
from openai_responses_mcp.config.loading import Configuration

if TYPE_CHECKING:
    from datetime import datetime

    from openai_responses_mcp.container import Container
    from openai_responses_mcp.domain.ports import Transport
    from openai_responses_mcp.server.calling import Caller
    from openai_responses_mcp.server.dispatch import Connection

# A client that has its first reply asks for the tools next; loading at once would hold that up.
WARM_UP_AFTER_SECONDS = 0.05


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
        """Imports everything that is slow to import. `owns_process`: what libraries log is taken over, too.

        `is_ending`: once set, no question is asked again. `is_over_http`: many callers share this process, each
        within limits.
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
        """The same, but asking the built-in stand-in for the API, which takes any key.

        `known` has the questions of earlier responses by their ids.
        """
        from openai_responses_mcp.rehearsal.server import RehearsalServer

        base_url = await RehearsalServer(known or {}).start()
        settings = self.configuration.settings
        settings = settings._replace(openai=settings.openai._replace(base_url=base_url))
        return self._replace(configuration=self.configuration._replace(settings=settings), api_key="rehearsal")


def _load_injector() -> None:
    """dependency-injector imports the web frameworks that it finds. Here none is needed, and it would take longer."""
    frameworks = [name for name in ("fastapi", "starlette") if name not in sys.modules]
    sys.modules.update(dict.fromkeys(frameworks))  # type: ignore[arg-type]
    try:
        import dependency_injector.containers  # noqa: F401
    finally:
        for name in frameworks:
            del sys.modules[name]


def basis_of(configuration: Configuration, environ: Mapping[str, str], secrets: Iterable[str] = ()) -> Basis:
    """`secrets` are masked too, beside those that are found in the environment."""
    openai, server = configuration.settings.openai, configuration.settings.server
    mask = _mask(environ, secrets, key_variable=openai.api_key_env, base_url=openai.base_url)
    logger = StructlogLogger(
        mask=mask, is_debugging=server.debug, debug_file=server.debug_file if server.debug else None, now=_now
    )
    return Basis(configuration, environ.get(openai.api_key_env, ""), mask, logger, environ)


def connect(
    basis: Basis,
    wire: tuple[int, int],
    *,
    is_line_mode: bool,
    on_closed: Callable[[], object],
    on_loaded: Callable[[], object],
) -> "Connection":
    """The client on these two descriptors. Made inside the running event loop; starts to read at once."""
    # Here, and not above: the other commands have no client to serve.
    from openai_responses_mcp.adapters.process import WarmUp
    from openai_responses_mcp.adapters.stdio.framing import StdioFramer
    from openai_responses_mcp.adapters.stdio.transport import StdioTransport
    from openai_responses_mcp.domain.cancellation import CallsInFlight
    from openai_responses_mcp.server.dispatch import Connection, Dispatcher

    server, logger, is_ending = basis.configuration.settings.server, basis.logger, asyncio.Event()
    logger.debug("start", tools=list(server.tools), lineMode=is_line_mode)
    last_steps: list[Callable[[], Awaitable[object]]] = []
    warm_up = WarmUp(lambda: _load_caller(basis, is_ending, on_loaded, last_steps.append))

    async def settle() -> None:
        await asyncio.gather(*(step() for step in last_steps))

    framer = StdioFramer(server.max_message_bytes, line_mode=is_line_mode)
    loop = asyncio.get_running_loop()
    transport = StdioTransport(
        *wire,
        framer,
        logger,
        on_closed=on_closed,
        on_first_send=lambda: loop.call_later(WARM_UP_AFTER_SECONDS, warm_up.start),
    )
    dispatcher = Dispatcher(
        CallsInFlight(logger),
        logger,
        server.tools,
        load_caller=warm_up.result,
        hand_over=server.hand_over_after_s,
    )
    return Connection(transport, dispatcher, is_ending, settle)


class Serving(NamedTuple):
    """What serves any number of transports in one process. `end` waits a moment until the last things are done."""

    serve: "Callable[[Transport], Awaitable[None]]"
    is_ending: asyncio.Event
    let_research_go: Callable[[], None]
    settle: Callable[[], Awaitable[None]]


def serve_many(basis: Basis) -> Serving:
    """Loads everything at once: a server for many is started before its clients."""
    from openai_responses_mcp.domain.cancellation import CallsInFlight
    from openai_responses_mcp.server.dispatch import Connection, Dispatcher
    from openai_responses_mcp.server.eras import HTTP_HANDSHAKES

    server, logger, is_ending = basis.configuration.settings.server, basis.logger, asyncio.Event()
    last_steps: list[Callable[[], Awaitable[object]]] = []
    container = basis.load_container(is_observed=True, is_ending=is_ending, is_over_http=True)
    caller = _prepared(container, last_steps.append)

    async def load_caller() -> "Caller":
        return caller

    async def settle() -> None:
        await asyncio.gather(*(step() for step in last_steps))

    async def serve(transport: "Transport") -> None:
        dispatcher = Dispatcher(
            CallsInFlight(logger),
            logger,
            server.tools,
            load_caller=load_caller,
            hand_over=server.hand_over_after_s,
            handshakes=HTTP_HANDSHAKES,
        )
        await Connection(transport, dispatcher, asyncio.Event(), _nothing).serve()

    return Serving(serve, is_ending, container.openai_gateway().let_all_go, settle)


async def _nothing() -> None:
    """A connection over HTTP that ends leaves the rest to the process."""


def _prepared(container: "Container", add_last_step: Callable[[Callable[[], Awaitable[object]]], None]) -> "Caller":
    container.openai_gateway().prepare()
    add_last_step(container.openai_gateway().settle)
    telemetry = container.telemetry()
    if telemetry is not None:
        add_last_step(telemetry.flush)
    return container.caller()


def _load_caller(
    basis: Basis,
    is_ending: asyncio.Event,
    on_loaded: Callable[[], object],
    add_last_step: Callable[[Callable[[], Awaitable[object]]], None],
) -> "Caller":
    try:
        # While all is well: once descriptors or memory run out, nothing more can be imported.
        basis.logger.prepare()
        container = basis.load_container(is_observed=True, is_ending=is_ending)
        return _prepared(container, add_last_step)
    finally:
        on_loaded()


def _mask(
    environ: Mapping[str, str], secrets: Iterable[str], *, key_variable: str, base_url: str
) -> Callable[[str], str]:
    """Made with the first text to mask: a server in good health may never need it."""

    @cache
    def made() -> Callable[[str], str]:
        from openai_responses_mcp.domain.masking import SecretMask, secrets_in

        return SecretMask([*secrets, *secrets_in(environ, key_variable=key_variable, base_url=base_url)])

    return lambda text: made()(text)


def _now() -> "datetime":
    from openai_responses_mcp.adapters.clocks import TokyoClock

    return TokyoClock().now()
