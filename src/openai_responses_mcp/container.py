"""The composition root: the only place where adapters meet use cases. Adapters first, use cases after.

What must be open before the first reply (the logger) or is shared with the connection is handed in by the command
that runs; what is slow to load, the SDK above all, is loaded with this module, behind the first replies.
"""

import asyncio
from collections.abc import Callable

from dependency_injector import containers, providers

from openai_responses_mcp.adapters.openai.client import openai_client
from openai_responses_mcp.adapters.openai.gateway import OpenAIResponsesGateway
from openai_responses_mcp.adapters.openai.retrying import RetryingGateway
from openai_responses_mcp.adapters.tokyo_clock import TokyoClock
from openai_responses_mcp.config.settings import Settings
from openai_responses_mcp.domain.answering import AnsweringRules, AnswerQuestion
from openai_responses_mcp.domain.models import Profile
from openai_responses_mcp.domain.ports import Logger
from openai_responses_mcp.server.calling import CallingRules, ToolCaller


def answering_rules(settings: Settings, system_policy: str) -> AnsweringRules:
    chosen = {name: getattr(settings.model_profiles, name) for name in ("answer", "answer_detailed", "answer_quick")}
    location = settings.search.user_location
    places = {name: getattr(location, name, None) for name in ("country", "city", "region", "timezone")}
    return AnsweringRules(
        profiles={n: Profile(p.model, p.reasoning_effort, p.verbosity) for n, p in chosen.items() if p is not None},
        instructions=system_policy,
        recency_days=settings.search.defaults.recency_days,
        max_results=settings.search.defaults.max_results,
        domains=settings.search.defaults.domains,
        restrict_to_domains=settings.search.restrict_to_domains,
        search_context_size=settings.search.context_size,
        user_location=tuple((name, place) for name, place in places.items() if place),
        max_citations=settings.policy.max_citations,
        max_output_tokens=settings.request.max_output_tokens,
        store=settings.request.store,
    )


def calling_rules(settings: Settings) -> CallingRules:
    return CallingRules(
        returns_failures_as_results=settings.server.error_style == "tool_result",
        shows_response_id=settings.server.response_id_text,
        keeps_responses=settings.request.store,
    )


class Container(containers.DeclarativeContainer):
    settings: providers.Dependency[Settings] = providers.Dependency(instance_of=Settings)
    system_policy: providers.Dependency[str] = providers.Dependency(instance_of=str)
    api_key: providers.Dependency[str] = providers.Dependency(instance_of=str)
    mask: providers.Dependency[Callable[[str], str]] = providers.Dependency()
    logger: providers.Dependency[Logger] = providers.Dependency()
    is_ending: providers.Dependency[asyncio.Event] = providers.Dependency(instance_of=asyncio.Event)

    clock = providers.Singleton(TokyoClock)
    client = providers.ThreadSafeSingleton(
        openai_client,
        base_url=settings.provided.openai.base_url,
        api_key=api_key,
        max_connections=settings.provided.request.max_concurrency,
    )
    openai_gateway = providers.Singleton(
        OpenAIResponsesGateway,
        client.provider,
        api_key=api_key,
        api_key_variable=settings.provided.openai.api_key_env,
        timeout_seconds=settings.provided.request.timeout_seconds,
        max_concurrency=settings.provided.request.max_concurrency,
        omit=settings.provided.request.omit,
        clock=clock,
        mask=mask,
    )
    gateway = providers.Singleton(
        RetryingGateway,
        openai_gateway,
        clock,
        logger,
        max_retries=settings.provided.request.max_retries,
        is_ending=is_ending,
    )

    answer_question = providers.Singleton(
        AnswerQuestion,
        gateway,
        clock,
        logger,
        providers.Singleton(answering_rules, settings, system_policy),
    )
    tool_caller = providers.Singleton(
        ToolCaller,
        answer_question,
        clock,
        logger,
        mask,
        providers.Singleton(calling_rules, settings),
    )
