"""A pytest plugin: notes how each test went, and gives every test a runner where `SDK_TESTS_SWAPPED` is set.

It is loaded by its bare name, since `tests` is the SDK's own package there.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

if os.environ.get("SDK_TESTS_SWAPPED"):

    @pytest.fixture(autouse=True)
    def _configured(clear_default_runner: None) -> Iterator[None]:
        from openai_responses_mcp.agents import SafetyAgent, configure, create_runner

        configure(create_runner(safety_agent=SafetyAgent.allow_all()), allow_code_approval=True)
        yield
        configure(None)


class Outcomes:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.by_name: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        known = self.by_name.get(report.nodeid, "passed")
        self.by_name[report.nodeid] = known if report.outcome == "passed" else report.outcome

    def pytest_sessionfinish(self) -> None:
        self.path.write_text(json.dumps(self.by_name))


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Outcomes(Path(os.environ["SDK_TESTS_OUTCOMES"])))
