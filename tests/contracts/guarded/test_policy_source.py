"""What every `PolicySource` must do."""

from pathlib import Path
from typing import Protocol

import pytest

from openai_responses_mcp.adapters.policy_file import PolicyFile
from openai_responses_mcp.gate.policy.rules import Policy, PolicySource, ProfileName
from tests.agents.fake_policy import FakePatterns, FakePolicySource


class Stage(Protocol):
    """A source, and ways to change the policy behind it."""

    source: PolicySource

    def say(self, profile: ProfileName) -> None: ...

    def spoil(self) -> None: ...


class FakeStage(Stage):
    def __init__(self) -> None:
        self.source: FakePolicySource = FakePolicySource(profile="strict")

    def say(self, profile: ProfileName) -> None:
        self.source.policy = Policy(profile=profile)

    def spoil(self) -> None:
        """A fake has no unusable file."""


class FileStage(Stage):
    def __init__(self, path: Path) -> None:
        self._path = path
        self.say("strict")
        self.source = PolicyFile(path, FakePatterns())

    def say(self, profile: ProfileName) -> None:
        self._path.write_text(f"version: 1\nprofile: {profile}\n")

    def spoil(self) -> None:
        self._path.write_text("version: 1\nprofile: [")


@pytest.fixture(params=["fake", "file"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Stage:
    return FakeStage() if request.param == "fake" else FileStage(tmp_path / "policy.yaml")


def test_a_policy_stays_the_same_object_until_it_changes_and_a_change_is_seen_at_once(stage: Stage) -> None:
    assert stage.source.current() == Policy(profile="strict")
    assert stage.source.current() is stage.source.current()
    profiles: list[ProfileName] = ["fast", "balanced", "strict", "fast"]
    for profile in profiles:
        stage.say(profile)
        assert stage.source.current().profile == profile


def test_an_unusable_file_leaves_the_last_good_policy_in_force(stage: Stage) -> None:
    stage.say("fast")
    assert stage.source.current().profile == "fast"
    stage.spoil()
    assert stage.source.current().profile == "fast"
    stage.say("balanced")
    assert stage.source.current().profile == "balanced"
