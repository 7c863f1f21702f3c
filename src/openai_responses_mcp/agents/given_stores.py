"""Stores that the user passes in: checked for missing methods, and their errors mapped to named ones.

Such a store may raise anything. An error about a value concerns one record; any other error means that the store
cannot be used.
"""

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar, cast

from openai_responses_mcp.gate.approvals.models import ApprovalStore, DecisionBook, StandingStore
from openai_responses_mcp.gate.audit.records import ExecutionLogStore
from openai_responses_mcp.gate.budgets import BudgetStore
from openai_responses_mcp.gate.definitions import DefinitionPins
from openai_responses_mcp.gate.errors import AgentsError, RecordRefused, StoreUnavailable
from openai_responses_mcp.gate.policy.profiles import PolicyStore
from openai_responses_mcp.gate.sql.sql_stores import open_stores
from openai_responses_mcp.gate.stores import RunStateStore, Stores

_T = TypeVar("_T")
# For these the ports have default implementations.
_OPTIONAL = ("append_all", "begin", "move_out")
_RECORD_ERRORS = (ValueError, TypeError, OverflowError)  # UnicodeError is a ValueError


# By parameter of `create_runner`: the field of `Stores`, and the port.
_PORTS: Mapping[str, tuple[str, type]] = {
    "policy_store": ("policies", PolicyStore),
    "approval_store": ("approvals", ApprovalStore),
    "run_state_store": ("runs", RunStateStore),
    "log_store": ("logs", ExecutionLogStore),
    "standing_store": ("standing", StandingStore),
    "budget_store": ("budgets", BudgetStore),
    "pin_store": ("pins", DefinitionPins),
    "decision_store": ("decisions", DecisionBook),
}


def stores_from(url: str | None, audit_head: str | os.PathLike[str] | None, own: Mapping[str, object]) -> Stores:
    """The stores of the database, each replaced by the one that was given. Raises as `given` does.

    Without a database all stores must be given: the others would be in memory, and lost with the process.
    """
    chosen = {name: store for name, store in own.items() if store is not None}
    missing = [name for name in _PORTS if name not in chosen]
    if chosen and missing and url is None:
        message = f"Some stores are given and some are not: give store= for the others, or {', '.join(missing)}"
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", message, details={"missing": missing})
    stores = open_stores(url, audit_head)
    made: dict[str, Any] = {
        field: given(chosen[name], port) for name, (field, port) in _PORTS.items() if name in chosen
    }
    if "logs" in made:
        # The head covers our own log only.
        made["head"] = None
    if "decisions" not in made and ("logs" in made or "approvals" in made):
        # One transaction writes a decision and its record only where both are in one database.
        made["decisions"] = None
    return replace(stores, **made)


def given(store: _T, port: type) -> _T:
    """Raises `AGENTS-E-RUNNER-CONFIG` if the store lacks a required method."""
    missing = [name for name in _methods_of(port) if not hasattr(store, name) and name not in _OPTIONAL]
    if missing:
        message = f"{type(store).__name__} is not a complete {port.__name__}: it lacks {', '.join(missing)}"
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", message)
    return cast(_T, _Given(store, port))


class _Given:
    def __init__(self, store: object, port: type) -> None:
        self._store = store
        self._port = port

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._store, name, None) or getattr(self._port, name).__get__(self)
        return _with_named_errors(method)


def _methods_of(port: type) -> list[str]:
    return [name for name, value in vars(port).items() if inspect.isfunction(value) and not name.startswith("_")]


def _with_named_errors(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    async def named(*args: Any, **kwargs: Any) -> Any:
        try:
            return await method(*args, **kwargs)
        except AgentsError:
            raise
        except _RECORD_ERRORS as exc:
            failure: StoreUnavailable = RecordRefused(f"The store does not take this record: {type(exc).__name__}")
        except Exception as exc:  # foreign code
            failure = StoreUnavailable(f"The store failed with {type(exc).__name__}")
        # Raised outside `except`: the store's own error may contain an address or values, and would be attached.
        raise failure

    return named
