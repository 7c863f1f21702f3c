"""The guard's composition root, in two parts: what is needed to pass the first message, and what decides on calls.

The first part imports nothing heavy. The second is loaded in a thread, after the first reply or with the first call.
"""

import asyncio
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from openai_responses_mcp.adapters.stdio.framing import StdioFramer
from openai_responses_mcp.adapters.stdio.transport import StdioTransport
from openai_responses_mcp.agents.adapters.guard.child_process import ChildProcess, environment_for_server
from openai_responses_mcp.agents.adapters.guard.hang_up import watch_for_hang_up
from openai_responses_mcp.agents.adapters.guard.stderr_lines import StderrLines
from openai_responses_mcp.agents.guard.relay import Relay
from openai_responses_mcp.domain.errors import TransportClosed
from openai_responses_mcp.domain.ports import Logger
from openai_responses_mcp.server.warmup import WarmingTransport, WarmUp

if TYPE_CHECKING:
    from openai_responses_mcp.agents.guard.call_keeper import CallKeeper

LONGEST_MESSAGE_BYTES = 64 * 1024 * 1024
NOT_STARTED = 127
UNUSABLE = 2

# A client that has its first reply asks for the tools next; loading at once would hold that up.
_LOAD_AFTER_SECONDS = 0.05
# How long messages of a client that has gone are still passed on. Together with the end of the server's process this
# takes less than three seconds.
_PATIENCE_SECONDS, _PATIENCE_WITH_A_FILE = 1.0, 10.0
_SECONDS_TO_WRITE = 1.0


class GuardOptions(NamedTuple):
    """What the command line says. None stands for what was not given."""

    command: tuple[str, ...]
    name: str
    policy: str | None = None
    profile: str | None = None
    store: str | None = None
    wait_seconds: float | None = None
    observe: bool = False


class _NoDebugLog(Logger):
    @property
    def is_debugging(self) -> bool:
        return False

    def debug(self, event: str, **facts: object) -> None:
        pass

    def warning(self, event: str, **facts: object) -> None:
        pass

    def error(self, event: str, **facts: object) -> None:
        pass


# ---------------------------------------------------------------------------------------------------------------------
# What stands before the first message


async def guard(
    options: GuardOptions,
    wire: tuple[int, int],
    environ: Mapping[str, str],
    stopped: "asyncio.Future[int]",
    lines: StderrLines,
) -> int:
    """Runs until the client goes, the server ends, or `stopped` is done. Returns the exit code."""
    try:
        process = ChildProcess(options.command, environment_for_server(environ))
    except (OSError, ValueError) as exc:
        lines.tell(f"{options.command[0]} cannot be started: {getattr(exc, 'strerror', None) or exc}")
        return NOT_STARTED
    output, input_, stderr = process.wires
    lines.follow(stderr)
    loop, hung_up, left = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    watch_for_hang_up(wire[0], left.set)
    loading = WarmUp(lambda: open_keeper(options, relay, environ, lines))
    client = WarmingTransport(
        StdioTransport(*wire, _framer(), _NoDebugLog(), on_closed=hung_up.set),
        on_first_send=lambda: loop.call_later(_LOAD_AFTER_SECONDS, loading.start),
    )
    server = StdioTransport(output, input_, _framer(), _NoDebugLog(), reads_to_end=True)

    async def load(_: Relay) -> "CallKeeper":
        return await loading.result()

    relay = Relay(client, server, load, lines)
    return await _Session(relay, process, lines, stopped, hung_up, left, loading).run()


def _framer() -> StdioFramer:
    return StdioFramer(LONGEST_MESSAGE_BYTES, line_mode=True)


class _Session:
    """From the start of the server until one side has ended."""

    def __init__(
        self,
        relay: Relay,
        process: ChildProcess,
        lines: StderrLines,
        stopped: "asyncio.Future[int]",
        hung_up: asyncio.Event,
        left: asyncio.Event,
        loading: "WarmUp[CallKeeper]",
    ) -> None:
        self._relay = relay
        self._process = process
        self._lines = lines
        self._stopped = stopped
        self._hung_up = hung_up
        self._left = left
        self._loading = loading

    async def run(self) -> int:
        reading = asyncio.create_task(self._relay.read_client())
        answering = asyncio.create_task(self._relay.read_server())
        exited = asyncio.create_task(self._process.ended())
        gone = asyncio.create_task(self._hung_up.wait())
        leaving = asyncio.create_task(self._left.wait())
        failed = asyncio.create_task(self._failure_to_load())
        told_to_stop = asyncio.create_task(_done(self._stopped))
        ends = (reading, answering, exited, gone, leaving, failed, told_to_stop)
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if (reading.done() or leaving.done()) and not (exited.done() or gone.done() or self._stopped.done()):
            await self._pass_the_rest_on(reading)
        code = await self._process.end()
        with suppress(TimeoutError):
            await asyncio.wait_for(answering, _SECONDS_TO_WRITE)
        await self._relay.finish(f"The guarded server has ended (exit code {code})")
        with suppress(TimeoutError, TransportClosed):
            await asyncio.wait_for(self._relay.client.transport.flush(), _SECONDS_TO_WRITE)
        if failed.done():
            code = UNUSABLE
        if self._stopped.done():
            code = self._stopped.result()
        for task in ends:
            task.cancel()
        await asyncio.wait(ends)
        return code

    async def _pass_the_rest_on(self, reading: "asyncio.Task[None]") -> None:
        """The client sends nothing more, and may still wait for answers to what it has sent."""
        if await self._relay.passed_on(reading, self._patience_seconds):
            with suppress(TimeoutError, TransportClosed):
                await asyncio.wait_for(self._relay.server.transport.flush(), _SECONDS_TO_WRITE)

    def _patience_seconds(self) -> float:
        """Asked again and again: that the client is gone may be noticed only after its last message was read."""
        return _PATIENCE_SECONDS if self._left.is_set() else _PATIENCE_WITH_A_FILE

    async def _failure_to_load(self) -> None:
        """Returns only when the keeper cannot be loaded: then no call could ever be decided."""
        try:
            await self._loading.settled()
            await self._loading.result()
        except RuntimeError as exc:
            self._lines.tell(str(exc.__cause__ or exc))
            return
        await asyncio.get_running_loop().create_future()


async def _done(future: "asyncio.Future[int]") -> int:
    return await future


# ---------------------------------------------------------------------------------------------------------------------
# What decides on calls


def open_keeper(options: GuardOptions, relay: Relay, environ: Mapping[str, str], lines: StderrLines) -> "CallKeeper":
    """Imports everything that is slow to import. Raises `AgentsError` for a policy or a store that makes no sense."""
    from openai_responses_mcp.agents.adapters.stores.opening import open_stores
    from openai_responses_mcp.agents.adapters.stores.own_store import own_store
    from openai_responses_mcp.agents.approvals.tokens import lifetime_seconds
    from openai_responses_mcp.agents.audit.log import AuditLog
    from openai_responses_mcp.agents.calls import GUARD_RUN
    from openai_responses_mcp.agents.composition import controller_on, open_rules, standing_on
    from openai_responses_mcp.agents.gate.budgets import SessionBudget, limits_of
    from openai_responses_mcp.agents.gate.safety_gate import SafetyGate
    from openai_responses_mcp.agents.guard.asking import Asking, AskingRules
    from openai_responses_mcp.agents.guard.call_keeper import CallKeeper
    from openai_responses_mcp.agents.guard.definitions import Definitions
    from openai_responses_mcp.agents.guard.gatekeeping import Gatekeeper, GuardSession, NoJudge
    from openai_responses_mcp.agents.guard.recording import Records
    from openai_responses_mcp.agents.mcp.gateway import MemoryPins
    from openai_responses_mcp.agents.policy.recent_profiles import RecentProfiles
    from openai_responses_mcp.agents.policy.rules import Policy
    from openai_responses_mcp.agents.secrets.masking import Masking

    lines.take_over_logging()
    rules = open_rules(options.policy) if options.policy else None
    stores, masking = open_stores(options.store or own_store(environ)), Masking(environ)

    def policy() -> Policy:
        return rules.policy if rules else Policy()

    audit = AuditLog(stores.logs, stores.clock, masking, lambda: policy().audit or "required", stores.head)
    standing = standing_on(stores, audit, masking)
    approvals = controller_on(stores, audit, masking, lifetime_seconds(None, environ))
    session = GuardSession(options.name, f"{GUARD_RUN}{secrets.token_hex(8)}", options.profile, options.observe)
    gate = SafetyGate(NoJudge(), RecentProfiles(stores.policies), masking, rules=rules, standing=standing)
    budget = SessionBudget(stores.budgets, stores.clock, session.run_id, lambda: limits_of(gate.budget, options.name))
    asking = Asking(
        AskingRules(options.name, session.run_id, options.wait_seconds),
        policy,
        approvals,
        standing,
        relay.client,
        relay.ways,
        lines,
    )
    return CallKeeper(
        session,
        relay.client,
        relay.server,
        Definitions(options.name, relay.listings, relay.server, stores.pins or MemoryPins()),
        Gatekeeper(session, gate, budget, masking),
        Records(audit),
        asking,
        masking,
    )


def name_of(command: Sequence[str]) -> str:
    """The name of a server without `--name`: the last part of its command."""
    base = os.path.basename(command[0])
    return base.rpartition(".")[0] if base.lower().endswith((".exe", ".cmd", ".bat")) else base
