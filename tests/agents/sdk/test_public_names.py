"""Every public name of the SDK is judged: those that can run an agent go through the runner, the others run nothing."""

import dataclasses
import pkgutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

import agents as sdk
import pytest

import openai_responses_mcp.agents as guarded
from openai_responses_mcp.agents.sdk.internals import PRIVATE_NAMES

# Run agents, and are ours instead of the SDK's.
TAKEN_OVER = {"Agent", "ResponsesWebSocketSession", "Runner", "responses_websocket_session", "run_demo_loop"}
# A module. What it has that could run is an agent, and our runner refuses it.
REFUSED_AT_THE_RUN = {"sandbox"}

LINES = (Path(__file__).parent / "forwarded_names.txt").read_text().splitlines()
FORWARDED = {name for line in LINES if not line.startswith("#") for name in line.split()} | {"__version__"}


def test_every_public_name_of_the_sdk_is_judged() -> None:
    unjudged = set(sdk.__all__) - TAKEN_OVER - REFUSED_AT_THE_RUN - FORWARDED
    assert unjudged == set(), "Can it run an agent? Then it must go through the runner. Else forward it."


def test_names_that_run_agents_are_not_those_of_the_sdk() -> None:
    for name in sorted(TAKEN_OVER):
        assert getattr(guarded, name) is not getattr(sdk, name)
        assert getattr(guarded, name).__module__.startswith("openai_responses_mcp.")


@pytest.mark.parametrize("name", ["realtime", "voice"])
def test_packages_that_run_agents_by_themselves_are_refused_by_name(name: str) -> None:
    with pytest.raises(ImportError, match=f"agents.{name} runs agents past the gate"):
        getattr(guarded, name)


def test_no_other_package_of_the_sdk_can_run_agents() -> None:
    inside = {module.name for module in pkgutil.iter_modules(sdk.__path__) if module.ispkg}
    judged = {"realtime", "sandbox", "voice"} | {"extensions", "handoffs", "mcp", "memory", "models", "testing"}
    assert inside - judged == {"run_internal", "tracing", "util"}, "Can it run an agent? Then refuse it by name."


# ---------------------------------------------------------------------------------------------------------------------
# Private names


def test_every_private_name_exists_in_the_installed_sdk() -> None:
    missing = [
        f"{owner.__name__}.{name}: {use}" for (owner, name), use in PRIVATE_NAMES.items() if not has(owner, name)
    ]
    assert missing == [], f"not in openai-agents {version('openai-agents')}"


def has(owner: Any, name: str) -> bool:
    fields = {field.name for field in dataclasses.fields(owner)} if dataclasses.is_dataclass(owner) else set()
    fields |= set(vars(owner)["__init__"].__code__.co_names) if "__init__" in vars(owner) else set()
    return name in fields or hasattr(owner, name)
