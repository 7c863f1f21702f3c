"""The guard's composition root, in two parts: what is needed to pass the first message, and what decides on calls.

The first part imports nothing heavy. The second is loaded in a thread, after the first reply or with the first call.
"""

import asyncio
import json
import os
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

from openai_responses_mcp.adapters.child_process import ChildProcess
from openai_responses_mcp.adapters.log.silent_logger import SilentLogger
from openai_responses_mcp.adapters.stdio.framing import StdioFramer
from openai_responses_mcp.adapters.stdio.transport import StdioTransport
from openai_responses_mcp.domain.errors import TransportClosed
from openai_responses_mcp.domain.jsonrpc import INTERNAL_ERROR, Request
from openai_responses_mcp.domain.texts import revealed_json
from openai_responses_mcp.guard import messages
from openai_responses_mcp.guard.hang_up import watch_for_hang_up
from openai_responses_mcp.guard.lifetime import SECONDS_TO_BE_ASKED, UNUSABLE, Ends, Lifetime
from openai_responses_mcp.guard.relay import Relay
from openai_responses_mcp.guard.servers import environment_for_server
from openai_responses_mcp.guard.stderr_lines import StderrLines
from openai_responses_mcp.server.warmup import WarmUp

if TYPE_CHECKING:
    from openai_responses_mcp.gate.approvals.models import HumanApprovalRequest
    from openai_responses_mcp.gate.policy.ruling import PolicyRules
    from openai_responses_mcp.guard.call_keeper import CallKeeper
    from openai_responses_mcp.guard.given_replies import GivenReplies

LONGEST_MESSAGE_BYTES = 64 * 1024 * 1024
NOT_STARTED = 127
_LONGEST_LAST_WORDS = 300
_SECONDS_TO_LEAVE = 0.5
_SECONDS_BETWEEN_LOOKS_AT_POLICY = 2.0

# A client that has its first reply asks for the tools next; loading at once would hold that up.
_LOAD_AFTER_SECONDS = 0.05


AskedAt = Literal["auto", "client", "desk"]


class GuardOptions(NamedTuple):
    """What the command line says. None stands for what was not given."""

    command: tuple[str, ...]
    name: str
    policy: str | None = None
    profile: str | None = None
    store: str | None = None
    wait_seconds: float | None = None
    observe: bool = False
    ask: AskedAt | None = None


class CannotStart(Exception):
    """The guard cannot start. The text says why."""


class Loaded(NamedTuple):
    """What decides on calls. `stay` shows this guard to `status` until it is cancelled."""

    keeper: "CallKeeper"
    stay: Callable[[], Awaitable[None]]


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
        rules = _rules_before_start(options, environ)
    except CannotStart as exc:
        return await _refuse(wire, str(exc), stopped, lines, UNUSABLE)
    webhook_env = rules.policy.webhook_env if rules else None
    try:
        process = ChildProcess(options.command, environment_for_server(environ, webhook_env))
    except (OSError, ValueError) as exc:
        problem = f"{options.command[0]} cannot be started: {getattr(exc, 'strerror', None) or exc}"
        return await _refuse(wire, problem, stopped, lines, NOT_STARTED)
    output, input_, stderr = process.wires
    lines.follow(stderr)
    loop, ends = asyncio.get_running_loop(), Ends(stopped)
    watch_for_hang_up(wire[0], ends.left.set)
    loading = WarmUp(lambda: load_keeper(options, relay, environ, lines, rules))
    client = StdioTransport(
        *wire,
        _framer(),
        SilentLogger(),
        on_closed=ends.hung_up.set,
        on_first_send=lambda: loop.call_later(_LOAD_AFTER_SECONDS, loading.start),
    )
    server = StdioTransport(output, input_, _framer(), SilentLogger(), reads_to_end=True)

    async def load(_: Relay) -> "CallKeeper":
        return (await loading.result()).keeper

    relay = Relay(client, server, load, lines, _given_replies(options, rules, environ))
    staying = [asyncio.create_task(_stay(loading)), asyncio.create_task(_tell_of_other_tools(relay, rules))]
    try:
        failure, last_words = partial(_failure_of, loading), partial(_last_words, lines, environ)
        return await Lifetime(relay, process, lines, ends, failure, last_words).run()
    finally:
        for task in staying:
            task.cancel()
        await asyncio.wait(staying, timeout=_SECONDS_TO_LEAVE)


def _rules_before_start(options: GuardOptions, environ: Mapping[str, str]) -> "PolicyRules | None":
    """Those of the policy file, if there is one. Raises `CannotStart` if the files themselves say that no call could ever
    be decided."""
    store = options.store or ""
    path = store.removeprefix("sqlite:///").partition("?")[0]
    if store.startswith("sqlite:///") and os.path.isdir(path):
        raise CannotStart(f"the store {path} is a folder; name a file")
    if not options.policy:
        return None
    from openai_responses_mcp.desk.opening import open_rules
    from openai_responses_mcp.gate.errors import AgentsError
    from openai_responses_mcp.gate.sql.own_store import own_store

    try:
        return open_rules(options.policy, store or own_store(environ))
    except AgentsError as exc:
        raise CannotStart(str(exc)) from exc


def _given_replies(
    options: GuardOptions, rules: "PolicyRules | None", environ: Mapping[str, str]
) -> "GivenReplies | None":
    """Without a policy file every reply passes as it came."""
    if rules is None:
        return None
    from openai_responses_mcp.gate.secrets.masking import Masking
    from openai_responses_mcp.guard.given_replies import GivenReplies

    masking = Masking(environ, also=rules.policy.webhook_env or "")
    return GivenReplies(rules, options.name, masking, is_observing=options.observe)


async def _tell_of_other_tools(relay: Relay, rules: "PolicyRules | None") -> None:
    """A client keeps its list of tools until it hears that the list has changed."""
    while rules is not None:
        await asyncio.sleep(_SECONDS_BETWEEN_LOOKS_AT_POLICY)
        relay.tell_of_other_tools()


async def _refuse(
    wire: tuple[int, int], reason: str, stopped: "asyncio.Future[int]", lines: StderrLines, code: int
) -> int:
    lines.tell(reason)
    refusing = asyncio.create_task(_refuse_first_request(wire, reason))
    stopped.add_done_callback(lambda _: refusing.cancel())
    await asyncio.wait({refusing}, timeout=SECONDS_TO_BE_ASKED)
    return code


async def _refuse_first_request(wire: tuple[int, int], reason: str) -> None:
    """Most clients hide stderr, so their first request is answered with the same words."""
    client = StdioTransport(*wire, _framer(), SilentLogger())
    with suppress(TransportClosed):
        while (received := await client.receive()) is not None:
            if isinstance(received.body, bytes) and isinstance(request := messages.read(received.body), Request):
                client.send(messages.error_reply(request.id, INTERNAL_ERROR, reason))
                await client.flush()
                return


def _framer() -> StdioFramer:
    return StdioFramer(LONGEST_MESSAGE_BYTES, line_mode=True)


async def _last_words(lines: StderrLines, environ: Mapping[str, str]) -> str:
    """As a JSON string, without secrets: the text is the server's, and goes to the client and into the log."""
    line = await asyncio.to_thread(lines.last_line)
    if not line:
        return ""
    from openai_responses_mcp.gate.secrets.masking import Masking

    shown = Masking(environ).text(line)
    cut = shown if len(shown) <= _LONGEST_LAST_WORDS else f"{shown[:_LONGEST_LAST_WORDS]}…"
    return revealed_json(json.dumps(cut, ensure_ascii=False))


async def _stay(loading: WarmUp[Loaded]) -> None:
    await loading.settled()
    with suppress(RuntimeError):
        await (await loading.result()).stay()


async def _failure_of(loading: WarmUp[Loaded]) -> str:
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


def load_keeper(
    options: GuardOptions,
    relay: Relay,
    environ: Mapping[str, str],
    lines: StderrLines,
    rules_of_file: "PolicyRules | None" = None,
) -> Loaded:
    """Imports everything that is slow to import. Raises `AgentsError` for a policy or a store that makes no sense."""
    from openai_responses_mcp.adapters.linear_patterns import LinearPatterns
    from openai_responses_mcp.desk.opening import controller_on, open_rules, standing_on
    from openai_responses_mcp.gate.approvals.tokens import lifetime_seconds
    from openai_responses_mcp.gate.audit.log import AuditLog
    from openai_responses_mcp.gate.budgets import SessionBudget, limits_of
    from openai_responses_mcp.gate.calls import GUARD_RUN
    from openai_responses_mcp.gate.clock import timestamp
    from openai_responses_mcp.gate.policy.profiles import RecentProfiles
    from openai_responses_mcp.gate.policy.rules import Policy
    from openai_responses_mcp.gate.presence import Presence, present, stay
    from openai_responses_mcp.gate.safety_gate import SafetyGate
    from openai_responses_mcp.gate.schema.checking import SchemaChecker
    from openai_responses_mcp.gate.secrets.masking import Masking
    from openai_responses_mcp.gate.sql.opening import open_stores
    from openai_responses_mcp.gate.sql.own_store import own_store
    from openai_responses_mcp.guard.asking import Asking, AskingRules
    from openai_responses_mcp.guard.call_keeper import CallKeeper
    from openai_responses_mcp.guard.definitions import Definitions
    from openai_responses_mcp.guard.gatekeeping import Gatekeeper, GuardSession, NoJudge
    from openai_responses_mcp.guard.recording import Records
    from openai_responses_mcp.guard.servers import guarded_server

    lines.take_over_logging()
    store = options.store or own_store(environ)
    rules = rules_of_file or open_rules(options.policy, store)
    # A server may read relative paths from the client's roots, wherever the policy file says that it starts.
    relay.when_roots_are_sent(lambda: rules.doubt_relative_paths(options.name))
    # Read at the start only: another variable would still be in the server's environment.
    webhook_env = rules.policy.webhook_env
    stores, masking = open_stores(store), Masking(environ, also=webhook_env or "")

    def policy() -> Policy:
        return rules.policy

    audit = AuditLog(stores.logs, stores.clock, masking, lambda: policy().audit or "required", stores.head)
    standing = standing_on(stores, audit, masking)
    approvals = controller_on(stores, audit, masking, lifetime_seconds(None, environ))
    session = GuardSession(options.name, f"{GUARD_RUN}{secrets.token_hex(8)}", options.profile, options.observe)
    profiles, starts = RecentProfiles(stores.policies), stores.starts
    assert starts is not None  # noqa: S101 - a database has it
    schemas = SchemaChecker(LinearPatterns())
    gate = SafetyGate(NoJudge(), profiles, masking, rules=rules, standing=standing, schemas=schemas)
    guarded = guarded_server(options.name, options.command, masking.shown_text)
    budget = SessionBudget(stores.budgets, stores.clock, session.run_id, lambda: limits_of(gate.budget, options.name))

    async def is_desk_open() -> bool:
        return bool(await present(stores.presence, stores.clock.now(), "desk"))

    asking = Asking(
        AskingRules(options.name, session.run_id, options.wait_seconds, options.ask),
        policy,
        approvals,
        standing,
        relay.client,
        relay.ways,
        lines,
        is_desk_open,
        on_asked=_notifying(webhook_env, options.name, environ, lines),
    )
    now = timestamp(stores.clock.now())
    policy_path = "" if options.policy is None else f"{masking.shown_text(os.path.abspath(options.policy))}: "
    presence = Presence(session.run_id, "guard", options.name, now, now, f"{policy_path}{guarded.command}")
    keeper = CallKeeper(
        session,
        relay.server,
        Definitions(guarded, relay.listings, relay.server, starts, lambda *one: policy().stable_entry(*one)),
        Gatekeeper(session, gate, budget, masking),
        Records(audit, starts),
        asking,
        masking,
    )
    return Loaded(keeper, partial(stay, stores.presence, stores.clock, presence))


def _notifying(
    variable: str | None, server_name: str, environ: Mapping[str, str], lines: StderrLines
) -> "Callable[[HumanApprovalRequest, str], object]":
    if variable is None:
        return lambda request, expires_at: None
    from openai_responses_mcp.desk.terminal.words import language_of
    from openai_responses_mcp.guard.notifying import Webhook, is_address

    address = environ.get(variable, "").strip()
    if not is_address(address):
        lines.tell(f"no question is sent to a webhook: {variable} holds no http or https address")
        return lambda request, expires_at: None
    return Webhook(address, server_name, lines, language_of(environ)).tell
