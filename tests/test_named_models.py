"""Whoever copies a model's name from here gets one that stays: no end is announced for it."""

import re
from pathlib import Path

import pytest

from openai_responses_mcp.config.loading import Flags, load
from openai_responses_mcp.config.settings import Profile
from openai_responses_mcp.domain.answering import takes_effort, takes_verbosity
from tests.sdk_models import ENDING, LISTED
from tests.stand_in.models import MODELS

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "config" / "config.yaml.example"
# These name whole families, and say where one ends and the next begins.
ABOUT_FAMILIES = ("spec.md", "differences.md")
PAGES = [ROOT / "README.md", *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.name not in ABOUT_FAMILIES)]
WORD = re.compile(r"[\w.-]*\w")


def profiles_of_the_example() -> dict[str, Profile]:
    profiles = load(Flags(config=str(EXAMPLE)), {}).settings.model_profiles
    return {name: profile for name, profile in profiles._asdict().items() if profile is not None}


@pytest.mark.parametrize("name", ["answer", "answer_detailed", "answer_quick"])
def test_the_example_names_models_that_stay_with_settings_that_they_take(name: str) -> None:
    profile = profiles_of_the_example()[name]
    assert profile.model in LISTED - ENDING
    assert takes_effort(profile.model)
    assert takes_verbosity(profile.model)
    assert profile.reasoning_effort != "minimal"  # Not together with web search.


def test_the_default_model_stays_and_so_do_those_of_the_stand_in() -> None:
    assert {Profile().model, *MODELS} <= LISTED - ENDING


def test_no_page_names_a_model_that_ends() -> None:
    named = {page.name: set(WORD.findall(page.read_text("utf-8"))) & ENDING for page in PAGES}
    assert {name: models for name, models in named.items() if models} == {}
