"""No end is announced for the models that the defaults, the example and the stand-in name."""

from pathlib import Path

from openai_responses_mcp.config.loading import Flags, load
from openai_responses_mcp.config.settings import Profile
from openai_responses_mcp.domain.answering import takes_effort, takes_verbosity
from tests.sdk_models import ENDING, LISTED
from tests.stand_in.models import MODELS

# These name whole families, and say where one ends and the next begins.


def test_the_example_names_models_that_stay_with_settings_that_they_take() -> None:
    example = Path(__file__).parents[1] / "config" / "config.yaml.example"
    for profile in load(Flags(config=str(example)), {}).settings.model_profiles:
        assert profile is not None
        assert profile.model in LISTED - ENDING
        assert takes_effort(profile.model)
        assert takes_verbosity(profile.model)
        assert profile.reasoning_effort != "minimal"  # Not together with web search.


def test_the_default_model_stays_and_so_do_those_of_the_stand_in() -> None:
    assert {Profile().model, *MODELS} <= LISTED - ENDING
