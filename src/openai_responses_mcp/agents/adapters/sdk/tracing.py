"""Traces of the SDK leave the process, and nothing masks them. So no arguments, outputs or texts go into them.

A run is traced only where a `RunConfig` was given that has tracing on. What was said in the run goes along only where the
SDK's own variable says so; the SDK's default would be to send it.
"""

import dataclasses
import os
from typing import Any

from agents import RunConfig

SENSITIVE_VARIABLE = "OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA"
_YES = ("1", "true", "yes", "on")  # as the SDK reads it


def config_of_run(given: RunConfig | dict[str, Any] | None) -> RunConfig:
    """The configuration of a run, from what its caller gave."""
    return RunConfig(tracing_disabled=True) if given is None else without_texts(given)


def without_texts(given: RunConfig | dict[str, Any] | None) -> RunConfig:
    """The same for a run inside a guarded one; it is part of that one's trace, if there is one."""
    config = RunConfig(**(given or {})) if given is None or isinstance(given, dict) else given
    if os.environ.get(SENSITIVE_VARIABLE, "").strip().lower() in _YES:
        return config
    return dataclasses.replace(config, trace_include_sensitive_data=False)
