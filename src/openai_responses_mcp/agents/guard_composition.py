"""The guard's composition root, in two parts: what is needed to pass the first message, and what decides on calls.

The first part imports nothing heavy. The second is loaded in a thread, after the first reply or with the first call.
"""

import asyncio
import secrets
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from openai_responses_mcp.adapters.stdio.framing import StdioFramer
from openai_responses_mcp.adapters.stdio.transport import StdioTransport
from openai_responses_mcp.agents.adapters.guard.child_process import ChildProcess, environment_for_server
from openai_responses_mcp.agents.adapters.guard.hang_up import watch_for_hang_up
from openai_responses_mcp.agents.adapters.guard.silent_logger import SilentLogger
from openai_responses_mcp.agents.adapters.guard.stderr_lines import StderrLines
from openai_responses_mcp.agents.guard.lifetime import Ends, Lifetime
from openai_responses_mcp.agents.guard.relay import Relay
from openai_responses_mcp.server.warmup import WarmingTransport, WarmUp

if TYPE_CHECKING:
    from openai_responses_mcp.agents.guard.call_keeper import CallKeeper

LONGEST_MESSAGE_BYTES = 64 * 1024 * 1024
NOT_STARTED = 127

# A client that has its first reply asks for the tools next; loading at once would hold that up.
_LOAD_AFTER_SECONDS = 0.05


class GuardOptions(NamedTuple):
    """What the command line says. None stands for what was not given."""

    command: tuple[str, ...]
    name: str
    policy: str | None = None
    profile: str | None = None
    store: str | None = None
    wait_seconds: float | None = None
    observe: bool = False


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
    loop, ends = asyncio.get_running_loop(), Ends(stopped)
    watch_for_hang_up(wire[0], ends.left.set)
    loading = WarmUp(lambda: open_keeper(options, relay, environ, lines))
    client = WarmingTransport(
        StdioTransport(*wire, _framer(), SilentLogger(), on_closed=ends.hung_up.set),
        on_first_send=lambda: loop.call_later(_LOAD_AFTER_SECONDS, loading.start),
    )
    server = StdioTransport(output, input_, _framer(), SilentLogger(), reads_to_end=True)

    async def load(_: Relay) -> "CallKeeper":
        return await loading.result()

    relay = Relay(client, server, load, lines)
    return await Lifetime(relay, process, lines, ends, partial(_failure_of, loading)).run()


def _framer() -> StdioFramer:
    return StdioFramer(LONGEST_MESSAGE_BYTES, line_mode=True)


async def _failure_of(loading: "WarmUp[CallKeeper]") -> str:
    """Why no call can ever be decided. Returns only if that is so."""
    try:
        await loading.settled()
        await loading.result()
    except RuntimeError as exc:
        return str(exc.__cause__ or exc)
    never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    return await never


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
