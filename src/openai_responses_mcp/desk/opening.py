"""Opens what decides, and what a person decides with, on a store. Runners, the guard and the desk share it.

Adapters are imported inside the functions that need them, so that a terminal that lists approvals loads little.
"""

import os
from collections.abc import Callable, Mapping

from openai_responses_mcp.desk.page.desk import Desk, DeskParts
from openai_responses_mcp.desk.words import Words
from openai_responses_mcp.domain.texts import Sentence, language_of, linked
from openai_responses_mcp.gate.approvals.controller import ApprovalController, OnRequested, RecordedFirst
from openai_responses_mcp.gate.approvals.decisions import lifetime_seconds
from openai_responses_mcp.gate.approvals.standing import StandingApprovals
from openai_responses_mcp.gate.audit.log import AuditLog
from openai_responses_mcp.gate.errors import config_error
from openai_responses_mcp.gate.policy.ruling import PolicyRules
from openai_responses_mcp.gate.schema.checking import SchemaChecker
from openai_responses_mcp.gate.secrets.masking import Masking
from openai_responses_mcp.gate.sql.own_files import own_folder
from openai_responses_mcp.gate.stores import Stores


def controller_on(
    stores: Stores, audit: AuditLog, masking: Masking, token_ttl_seconds: int, on_requested: OnRequested | None = None
) -> ApprovalController:
    from openai_responses_mcp.adapters.policy_file import LinearPatterns

    schemas = SchemaChecker(LinearPatterns())
    decisions = stores.decisions or RecordedFirst(stores.approvals, stores.logs)
    return ApprovalController(
        stores.approvals,
        decisions,
        audit,
        stores.clock,
        masking,
        token_ttl_seconds,
        on_requested,
        schemas,
        stores.presence,
    )


def standing_on(stores: Stores, audit: AuditLog, masking: Masking, caller: str = "") -> StandingApprovals:
    return StandingApprovals(stores.standing, stores.approvals, audit, stores.clock, masking, caller)


def open_rules(
    policy_file: str | os.PathLike[str] | None,
    store: str | None = None,
    former_names: Mapping[str, str] | None = None,
) -> PolicyRules:
    """The rules of a policy file, or none, on this machine's paths. Raises `AGENTS-E-POLICY-INVALID`.

    A call that would touch the file itself or the `store` asks. `former_names`: see `PolicyRules`.
    """
    from openai_responses_mcp.adapters.policy_file import LinearPatterns, NoPolicyFile, PolicyFile, SystemPaths

    source = NoPolicyFile() if policy_file is None else PolicyFile(policy_file, LinearPatterns())
    own = [] if policy_file is None else [os.fspath(policy_file)]
    return PolicyRules(
        source,
        SystemPaths(),
        own_files=[*own, *_files_of(store)],
        own_folder=own_folder(os.environ),
        former_names=former_names,
    )


def _files_of(store: str | None) -> list[str]:
    if store is None:
        return []
    from openai_responses_mcp.gate.sql.database_urls import sqlite_file, understood

    file = sqlite_file(understood(store))
    return [] if file is None else [str(file.path)]


# ---------------------------------------------------------------------------------------------------------------------
# The desk and the terminal


def open_desk_parts(store: str, audit_head: str | os.PathLike[str] | None = None) -> DeskParts:
    """On an existing store. Raises `AGENTS-E-RUNNER-CONFIG` if it is not a database URL."""
    from openai_responses_mcp.gate.sql.sql_stores import open_stores

    return _desk_parts(open_stores(store, audit_head, must_exist=True))


def _desk_parts(stores: Stores) -> DeskParts:
    masking = Masking()
    audit = AuditLog(stores.logs, stores.clock, masking, "required", stores.head)
    approvals = controller_on(stores, audit, masking, lifetime_seconds(None, os.environ))
    return DeskParts(approvals, stores.approvals, audit, standing_on(stores, audit, masking), stores.presence)


def desk_on(stores: Stores) -> Desk:
    return Desk(_desk_parts(stores), stores.runs, stores.clock)


async def serve_desk(
    store: str,
    audit_head: str | os.PathLike[str] | None = None,
    *,
    port: int = 0,
    on_listening: Callable[[str], object],
) -> None:
    """Serve the desk as a page on 127.0.0.1 until the process gets a signal. `on_listening` gets its link.

    Raises `StoreUnavailable` for a store that is missing, and `AGENTS-E-RUNNER-CONFIG` for a port that cannot be used.
    """
    from openai_responses_mcp.desk.page.access import Entrance
    from openai_responses_mcp.desk.page.application import serve
    from openai_responses_mcp.gate.sql.sql_stores import open_stores

    desk = desk_on(open_stores(store, audit_head, must_exist=True))
    # A missing store is reported now, not on the page.
    await desk.standing()
    try:
        await serve(desk, Entrance(), port, on_listening)
    finally:
        await desk.leave()


async def serve_team_desk(
    store: str,
    audit_head: str | os.PathLike[str] | None,
    where: str,
    config: str | None,
    tls: tuple[str | None, str | None],
    environ: Mapping[str, str],
    *,
    on_listening: Callable[[str], object],
) -> int:
    """The desk for a team, until a signal ends the process; the exit code. Raises as `serve_desk` does."""
    from openai_responses_mcp.adapters.http.serving import AddressInUse
    from openai_responses_mcp.commands.serve_http import ConfigError, checked_tokens, http_options, http_settings
    from openai_responses_mcp.desk.page.team import serve_team
    from openai_responses_mcp.gate.sql.sql_stores import open_stores

    desk = desk_on(open_stores(store, audit_head, must_exist=True))
    await desk.standing()
    try:
        options = http_options(where, None, *tls)
        settings = http_settings(config, environ, Words(language_of(environ)).of)
        if settings.tokens_env is None and settings.issuer is None:
            unknown = Sentence("a desk for a team needs to know who decides: set http.tokens_env or http.issuer")
            raise ConfigError((unknown,))
        return await serve_team(desk, options, settings, checked_tokens(options, settings, environ), on_listening)
    except ConfigError as exc:
        raise config_error(linked("{first}; {second}", exc.problems)) from exc
    except OSError as exc:
        raise config_error(str(exc)) from exc
    except (ValueError, AddressInUse) as exc:
        raise config_error(exc.args[0]) from exc
    finally:
        await desk.leave()
