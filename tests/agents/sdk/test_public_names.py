"""Every public name of the SDK is judged: those that can run an agent go through the runner, the others run nothing."""

import pkgutil
from pathlib import Path

import agents as sdk
import pytest

import openai_responses_mcp.agents as guarded

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
