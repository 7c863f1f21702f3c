"""Stores of the user's own, as the ports say they behave: complete, and with errors that have a name.

Such a store raises what its author likes. Values that it cannot take concern one record; anything else means that it
cannot be used.
"""

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar, cast

from openai_responses_mcp.agents.approvals.ports import ApprovalStore
from openai_responses_mcp.agents.audit.ports import ExecutionLogStore
from openai_responses_mcp.agents.errors import AgentsError, RecordRefused, StoreUnavailable
from openai_responses_mcp.agents.policy.ports import PolicyStore
from openai_responses_mcp.agents.runs.ports import RunStateStore
from openai_responses_mcp.agents.stores import Stores

_T = TypeVar("_T")
# A store may lack these: the ports do them with the other methods.
_HAVE_A_WAY = ("append_all", "begin")
_OF_ONE_RECORD = (ValueError, TypeError, OverflowError)  # UnicodeError is a ValueError


def with_given(
    stores: Stores,
    policies: PolicyStore | None,
    approvals: ApprovalStore | None,
    runs: RunStateStore | None,
    logs: ExecutionLogStore | None,
) -> Stores:
    """The stores, with each that was given in the place of ours. Raises what `given` raises."""
    return replace(
        stores,
        policies=stores.policies if policies is None else given(policies, PolicyStore),
        approvals=stores.approvals if approvals is None else given(approvals, ApprovalStore),
        runs=stores.runs if runs is None else given(runs, RunStateStore),
        logs=stores.logs if logs is None else given(logs, ExecutionLogStore),
        # A head tells about our own log only; a store that was given keeps its own.
        head=stores.head if logs is None else None,
        decisions=stores.decisions if approvals is None and logs is None else None,
    )


def given(store: _T, port: type) -> _T:
    """`AGENTS-E-RUNNER-CONFIG` where the store lacks a method that it must have."""
    missing = [name for name in _methods_of(port) if not hasattr(store, name) and name not in _HAVE_A_WAY]
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
        except _OF_ONE_RECORD as exc:
            failure: StoreUnavailable = RecordRefused(f"The store does not take this: {type(exc).__name__}")
        except Exception as exc:  # foreign code
            failure = StoreUnavailable(f"The store failed with {type(exc).__name__}")
        # Raised out here, so that the store's own error is not attached to it: its text may hold an address or values.
        raise failure

    return named
