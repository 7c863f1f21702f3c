"""Store, rules and log, opened once per process. Each client gets a keeper of calls on them.

Everything that is slow to import is imported here, so this module is itself imported late, in a thread.
"""

import os
import secrets
from collections.abc import Callable, Mapping

from openai_responses_mcp.adapters.child_process import StderrLines
from openai_responses_mcp.adapters.clocks import TokyoClock
from openai_responses_mcp.adapters.policy_file import LinearPatterns
from openai_responses_mcp.desk.opening import controller_on, open_rules, standing_on
from openai_responses_mcp.domain.texts import language_of
from openai_responses_mcp.domain.usage import UsageBook
from openai_responses_mcp.gate.approvals.decisions import lifetime_seconds
from openai_responses_mcp.gate.approvals.models import HumanApprovalRequest
from openai_responses_mcp.gate.audit.log import AuditLog
from openai_responses_mcp.gate.budgets import SessionBudget, limits_of
from openai_responses_mcp.gate.calls import GUARD_RUN
from openai_responses_mcp.gate.clock import Presence, present, stay, timestamp
from openai_responses_mcp.gate.policy.profiles import RecentProfiles
from openai_responses_mcp.gate.policy.rules import Policy
from openai_responses_mcp.gate.policy.ruling import PolicyRules
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
from openai_responses_mcp.guard.notifying import Webhook, is_address
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
            stores.budgets, stores.clock, budget_id or run_id, lambda: limits_of(gate.budget, options.name)
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
