"""Store, rules and log, opened once per process. Each client gets a keeper of calls on them.

Everything that is slow to import is imported here, so this module is itself imported late, in a thread.

Waiting questions are announced in a chat, by a webhook that Slack, Mattermost and Discord's Slack form understand. A
notice never holds a call up and never fails one. The arguments of a call are not in it. The address is a secret:
everybody who has it can write to the chat.
"""

import asyncio
import os
import secrets
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from openai_responses_mcp.adapters.child_process import StderrLines
from openai_responses_mcp.adapters.clocks import TokyoClock
from openai_responses_mcp.adapters.policy_file import LinearPatterns
from openai_responses_mcp.desk.opening import controller_on, open_rules, standing_on
from openai_responses_mcp.domain.texts import Language, language_of
from openai_responses_mcp.domain.usage import UsageBook
from openai_responses_mcp.gate.approvals.decisions import lifetime_seconds
from openai_responses_mcp.gate.approvals.models import HumanApprovalRequest
from openai_responses_mcp.gate.audit.log import AuditLog
from openai_responses_mcp.gate.budgets import SessionBudget, limits_of
from openai_responses_mcp.gate.calls import GUARD_RUN
from openai_responses_mcp.gate.clock import Presence, present, stay, timestamp
from openai_responses_mcp.gate.policy.rules import Policy, RecentProfiles
from openai_responses_mcp.gate.policy.ruling import PolicyRules
from openai_responses_mcp.gate.reasons import notice, shown
from openai_responses_mcp.gate.safety_gate import SafetyGate
from openai_responses_mcp.gate.schema.checking import SchemaChecker
from openai_responses_mcp.gate.secrets.masking import Masking
from openai_responses_mcp.gate.sql.own_files import own_store
from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
from openai_responses_mcp.gate.sql.sql_stores import SqlUsageBook, open_stores
from openai_responses_mcp.guard.asking import Asking
from openai_responses_mcp.guard.call_keeper import CallKeeper
from openai_responses_mcp.guard.definitions import Definitions
from openai_responses_mcp.guard.gatekeeping import Gatekeeper, GuardSession, NoJudge, Records
from openai_responses_mcp.guard.relay import Relay
from openai_responses_mcp.guard.servers import GuardOptions, guarded_server


def new_run_id(guard_id: str = "") -> str:
    """In a guard for many clients, the id begins with the guard's own: see `is_guard_gone`."""
    return f"{guard_id}_{secrets.token_hex(8)}" if guard_id else f"{GUARD_RUN}{secrets.token_hex(8)}"


class OpenedGate:
    """Raises `AgentsError` for a policy or a store that makes no sense."""

    def __init__(
        self,
        options: GuardOptions,
        environ: Mapping[str, str],
        lines: StderrLines,
        rules_of_file: PolicyRules | None = None,
    ) -> None:
        lines.take_over_logging()
        self._options = options
        self._language = language_of(environ)
        self._lines = lines
        self._store = store = options.store or own_store(environ)
        self._rules = rules_of_file or open_rules(options.policy, store)
        # Read at the start only: another variable would still be in the server's environment.
        webhook_env = self._rules.policy.webhook_env
        self._notify = _notifying(webhook_env, options.name, environ, lines)
        self._stores, self._masking = open_stores(store), Masking(environ, also=webhook_env or "")
        assert self._stores.starts is not None  # noqa: S101 - a database has it
        self._starts = self._stores.starts
        self._audit = AuditLog(
            self._stores.logs,
            self._stores.clock,
            self._masking,
            lambda: self._policy().audit or "required",
            self._stores.head,
        )
        self._approvals = controller_on(self._stores, self._audit, self._masking, lifetime_seconds(None, environ))
        self._profiles, self._schemas = RecentProfiles(self._stores.policies), SchemaChecker(LinearPatterns())
        self._guarded = guarded_server(options.name, options.command, self._masking.shown_text)
        policy = "" if options.policy is None else f"{self._masking.shown_text(os.path.abspath(options.policy))}: "
        self._shown = f"{policy}{self._guarded.command}"
        # Shared, so that records of several clients go into one write.
        self._records = Records(self._audit, self._starts)

    def keeper(self, relay: Relay, run_id: str, caller: str = "", budget_id: str = "") -> CallKeeper:
        """For one relay. With the same `budget_id`, a client keeps its budgets when its server is restarted."""
        options, stores, masking = self._options, self._stores, self._masking
        # A server may read relative paths from the client's roots, wherever the policy file says that it starts.
        relay.when_roots_are_sent(lambda: self._rules.doubt_relative_paths(options.name))
        standing = standing_on(stores, self._audit, masking, caller)
        session = GuardSession(options, run_id, caller, self._language)
        gate = SafetyGate(
            NoJudge(), self._profiles, masking, rules=self._rules, standing=standing, schemas=self._schemas
        )
        budget = SessionBudget(
            stores.budgets, stores.clock, budget_id or run_id, lambda: limits_of(self._policy().budget, options.name)
        )
        asking = Asking(
            session,
            self._policy,
            self._approvals,
            standing,
            relay.client,
            relay.ways,
            self._lines.tell,
            self._is_desk_open,
            on_asked=self._notify,
            news=stores.news,
        )
        return CallKeeper(
            session,
            relay.server,
            Definitions(
                self._guarded,
                relay.listings,
                relay.server,
                self._starts,
                lambda *one: self._policy().stable_entry(*one),
            ),
            Gatekeeper(session, gate, budget, masking),
            self._records,
            asking,
            masking,
        )

    async def stay(self, run_id: str, where: str = "") -> None:
        """Show this guard to `status` until this is cancelled. `where` says how it is reached, if not by stdio."""
        options, now = self._options, timestamp(self._stores.clock.now())
        presence = Presence(run_id, "guard", options.name, now, now, f"{where}{self._shown}")
        await stay(self._stores.presence, self._stores.clock, presence)

    def usage(self) -> UsageBook:
        """Counted in the store, for all guards on it."""
        return SqlUsageBook(SqlDatabase(self._store), TokyoClock())

    def _policy(self) -> Policy:
        return self._rules.policy

    async def _is_desk_open(self) -> bool:
        return bool(await present(self._stores.presence, self._stores.clock.now(), "desk"))


def _notifying(
    variable: str | None, server_name: str, environ: Mapping[str, str], lines: StderrLines
) -> Callable[[HumanApprovalRequest, str], object]:
    if variable is None:
        return lambda request, expires_at: None
    address = environ.get(variable, "").strip()
    if not is_address(address):
        lines.tell(f"no question is sent to a webhook: {variable} holds no http or https address")
        return lambda request, expires_at: None
    return Webhook(address, server_name, lines.tell, language_of(environ)).tell


SECONDS_FOR_ONE_TRY = 5.0
MOST_AT_ONCE = 20
_SECONDS_BEFORE_SECOND_TRY = 1.0
_PLAIN = frozenset(" .,:;!?'\"()/_-+=%、。")

Post = Callable[[str, Mapping[str, str]], Awaitable[None]]


class Webhook:
    """`post` raises where the notice was not taken."""

    def __init__(
        self,
        address: str,
        server_name: str,
        tell: Callable[[str], object],
        language: Language = "en",
        post: Post | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._address = address
        self._server_name = server_name
        self._tell = tell
        self._language = language
        self._post = post or post_json
        self._sleep = sleep
        self._under_way: set[asyncio.Task[None]] = set()
        self._has_warned = False

    def tell(self, request: HumanApprovalRequest, expires_at: str) -> None:
        """Returns at once."""
        if len(self._under_way) >= MOST_AT_ONCE:
            self._warn("too many at once")
            return
        task = asyncio.create_task(self._send(self._body(request, expires_at)))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    def _body(self, request: HumanApprovalRequest, expires_at: str) -> dict[str, str]:
        why = shown(request.reasons, "needs_human", self._language, request.reason)
        command = f"openai-responses-mcp approvals show {request.approval_id.removeprefix('apr_')[:8]}"
        return {
            "text": notice(_plain(request.tool_name), _plain(why), command, self._language),
            "approval_id": request.approval_id,
            "server": self._server_name,
            "tool": request.tool_name.removeprefix(f"{self._server_name}/"),
            "why": why,
            "expires_at": expires_at,
        }

    async def _send(self, body: Mapping[str, str]) -> None:
        for attempt in (1, 2):
            try:
                async with asyncio.timeout(SECONDS_FOR_ONE_TRY):
                    await self._post(self._address, body)
            except Exception as exc:  # A notice that fails must not end anything, whatever is wrong with the address.
                if attempt == 2:
                    # Without its text, which may hold the address.
                    self._warn(str(exc) if isinstance(exc, NotTaken) else type(exc).__name__)
                else:
                    await self._sleep(_SECONDS_BEFORE_SECOND_TRY)
            else:
                return

    def _warn(self, problem: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            self._tell(f"a question could not be sent to the webhook ({problem}); this is said once")


class NotTaken(Exception):
    """The other side answered, and did not take it."""


async def post_json(address: str, body: Mapping[str, str]) -> None:
    """Redirects are not followed: they would give the notice, and the address, to somebody else."""
    # In a thread, because it is slow to import.
    await asyncio.to_thread(__import__, "aiohttp")
    import aiohttp

    async with (
        aiohttp.ClientSession() as session,
        session.post(address, json=body, allow_redirects=False, proxy=_proxy_for(address)) as answer,
    ):
        if not 200 <= answer.status < 300:  # pragma: no branch - coverage sees the session's exit instead
            raise NotTaken(f"it answered with status {answer.status}")


def is_address(address: str) -> bool:
    """Whether it is one that a notice can be sent to."""
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _proxy_for(address: str) -> str | None:
    parts = urlsplit(address)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)


def _plain(text: str) -> str:
    """Names come from the server. A chat would make links, calls to everybody and markup of some characters."""
    return "".join(one if one.isalnum() or one in _PLAIN else f"\\u{ord(one):04x}" for one in text)
