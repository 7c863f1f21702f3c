import asyncio
from typing import Any

from openai_responses_mcp.adapters.telemetry.starting import TelemetryChoice
from openai_responses_mcp.config.settings import (
    ModelProfiles,
    Profile,
    RequestSettings,
    SearchDefaults,
    SearchSettings,
    ServerSettings,
    Settings,
    UserLocation,
)
from openai_responses_mcp.container import Container, answering_rules, calling_rules
from openai_responses_mcp.domain.models import AnsweringProfile
from openai_responses_mcp.domain.usage import CallerLimits
from openai_responses_mcp.server.calling import Caller, CallingRules
from tests.fakes import FakeLogger


def given(**changes: Any) -> dict[str, Any]:
    usual = {
        "settings": Settings(),
        "system_policy": "Be brief.",
        "api_key": "made-up",
        "mask": str,
        "logger": FakeLogger(),
        "telemetry_choice": TelemetryChoice(traces=("console",)),
        "is_ending": asyncio.Event(),
        "limits": CallerLimits(),
        "usage_store": "",
        "network": "pipe",
    }
    return usual | changes


def test_every_provider_resolves() -> None:
    for provider in Container(**given()).providers.values():
        provider()


def test_everything_but_a_client_is_shared() -> None:
    providers = Container(**given()).providers
    assert {name for name, provider in providers.items() if provider() is not provider()} == {"client"}


def test_calls_are_observed_only_where_there_is_telemetry() -> None:
    container = Container(**given())
    assert container.caller().call != container.tool_caller().call
    container = Container(**given(telemetry_choice=TelemetryChoice()))
    assert container.caller() == Caller(container.tool_caller().call, container.tasks())


def test_calls_are_limited_only_where_there_are_limits() -> None:
    container = Container(**given(telemetry_choice=TelemetryChoice(), limits=CallerLimits(calls_at_once=1)))
    assert container.caller().call != container.tool_caller().call


def test_every_setting_becomes_a_rule_of_answering() -> None:
    settings = Settings(
        request=RequestSettings(store=False, max_output_tokens=100),
        model_profiles=ModelProfiles(
            answer=None, answer_detailed=Profile("o3", "high", "high"), answer_quick=Profile("o4-mini")
        ),
        search=SearchSettings(
            defaults=SearchDefaults(recency_days=7, max_results=2, domains=("a.org",)),
            restrict_to_domains=True,
            context_size="high",
            user_location=UserLocation(country="JP", timezone="Asia/Tokyo"),
            live=False,
            timezone="Europe/Berlin",
        ),
    )
    rules = answering_rules(settings, "")
    assert rules.profiles == {
        "answer_detailed": AnsweringProfile("o3", "high", "high"),
        "answer_quick": AnsweringProfile("o4-mini", "medium", "medium"),
    }
    assert (rules.recency_days, rules.max_results, rules.domains) == (7, 2, ("a.org",))
    assert (rules.restrict_to_domains, rules.search_context_size) == (True, "high")
    assert rules.user_location == (("country", "JP"), ("timezone", "Asia/Tokyo"))
    assert rules.searches_live is False
    assert rules.timezone == "Europe/Berlin"
    assert (rules.max_output_tokens, rules.store) == (100, False)


def test_settings_become_the_rules_of_calling() -> None:
    assert calling_rules(Settings()) == CallingRules(
        returns_failures_as_results=False, shows_response_id=True, keeps_responses=True
    )
    settings = Settings(
        request=RequestSettings(store=False), server=ServerSettings(error_style="tool_result", response_id_text=False)
    )
    assert calling_rules(settings) == CallingRules(
        returns_failures_as_results=True, shows_response_id=False, keeps_responses=False
    )
