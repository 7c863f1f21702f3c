"""The second composition root: everything that is loaded after the first reply. Adapters first, use cases after.

What `start` has made is passed in. One container serves one process, so everything in it is shared. Once `is_ending` is
set, nothing is retried.
"""

import asyncio
from collections.abc import Callable

from dependency_injector import containers, providers

from openai_responses_mcp.adapters.clocks import clock_in
from openai_responses_mcp.adapters.openai.client import openai_client
from openai_responses_mcp.adapters.openai.gateway import OpenAIResponsesGateway
from openai_responses_mcp.adapters.openai.retrying import RetryingGateway
from openai_responses_mcp.adapters.process import affordable_connections
from openai_responses_mcp.adapters.telemetry.starting import TelemetryChoice, maybe_telemetry, maybe_traced
from openai_responses_mcp.config.settings import Settings
from openai_responses_mcp.domain.answering import AnsweringRules, AnswerQuestion, FetchAnswer
from openai_responses_mcp.domain.models import AnsweringProfile
from openai_responses_mcp.domain.ports import Logger, WallClock
from openai_responses_mcp.domain.usage import CallerLimits, ProcessUsage, UsageBook
from openai_responses_mcp.server.calling import CallingRules, ToolCaller, UnfinishedAnswers, caller_with
from openai_responses_mcp.server.tasks import TaskIds, Tasks
from openai_responses_mcp.server.tool_results import Failures


def answering_rules(settings: Settings, system_policy: str) -> AnsweringRules:
    profiles, location = settings.model_profiles._asdict(), settings.search.user_location
    return AnsweringRules(
        profiles={
            name: AnsweringProfile(profile.model, profile.reasoning_effort, profile.verbosity)
            for name, profile in profiles.items()
            if profile is not None
        },
        instructions=system_policy,
        recency_days=settings.search.defaults.recency_days,
        max_results=settings.search.defaults.max_results,
        domains=settings.search.defaults.domains,
        restrict_to_domains=settings.search.restrict_to_domains,
        search_context_size=settings.search.context_size,
        user_location=None if location is None else tuple((k, v) for k, v in location._asdict().items() if v),
        searches_live=settings.search.live,
        max_citations=settings.policy.max_citations,
        max_output_tokens=settings.request.max_output_tokens,
        store=settings.request.store,
        in_background=frozenset(settings.tools_in_background),
        timezone=settings.search.timezone,
    )


def calling_rules(settings: Settings) -> CallingRules:
    return CallingRules(
        returns_failures_as_results=settings.server.error_style == "tool_result",
        shows_response_id=settings.server.response_id_text,
        keeps_responses=settings.request.store,
    )


def usage_in(store: str, clock: WallClock) -> UsageBook:
    """In the store at this URL, or in memory if there is none."""
    if not store:
        return ProcessUsage(clock)
    from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
    from openai_responses_mcp.gate.sql.sql_stores import SqlUsageBook

    return SqlUsageBook(SqlDatabase(store), clock)


class Container(containers.DeclarativeContainer):
    settings: providers.Dependency[Settings] = providers.Dependency(instance_of=Settings)
    system_policy: providers.Dependency[str] = providers.Dependency(instance_of=str)
    api_key: providers.Dependency[str] = providers.Dependency(instance_of=str)
    mask: providers.Dependency[Callable[[str], str]] = providers.Dependency()
    logger: providers.Dependency[Logger] = providers.Dependency()
    telemetry_choice: providers.Dependency[TelemetryChoice] = providers.Dependency(instance_of=TelemetryChoice)
    limits: providers.Dependency[CallerLimits] = providers.Dependency(instance_of=CallerLimits)
    usage_store: providers.Dependency[str] = providers.Dependency(instance_of=str)
    network: providers.Dependency[str] = providers.Dependency(instance_of=str)
    is_ending: providers.Dependency[asyncio.Event] = providers.Dependency(instance_of=asyncio.Event)

    clock = providers.Singleton(clock_in, settings.provided.search.timezone)
    max_concurrency = providers.Singleton(affordable_connections, settings.provided.request.max_concurrency)
    client = providers.Factory(
        openai_client,
        base_url=settings.provided.openai.base_url,
        api_key=api_key,
        max_connections=max_concurrency,
    )
    openai_gateway = providers.Singleton(
        OpenAIResponsesGateway,
        client.provider,
        api_key=api_key,
        api_key_variable=settings.provided.openai.api_key_env,
        timeout_seconds=settings.provided.request.timeout_seconds,
        max_concurrency=max_concurrency,
        omit=settings.provided.request.omit,
        extra=settings.provided.request.extra,
        clock=clock,
        logger=logger,
        mask=mask,
    )
    telemetry = providers.Singleton(
        maybe_telemetry,
        telemetry_choice.provided.traces,
        telemetry_choice.provided.metrics,
        settings.provided.openai.base_url,
        logger,
        network,
    )
    gateway = providers.Singleton(
        RetryingGateway,
        providers.Singleton(maybe_traced, openai_gateway, telemetry),
        clock,
        logger,
        max_retries=settings.provided.request.max_retries,
        is_ending=is_ending,
    )

    rules_of_answering = providers.Singleton(answering_rules, settings, system_policy)
    answer_question = providers.Singleton(
        AnswerQuestion,
        gateway=gateway,
        clock=clock,
        logger=logger,
        rules=rules_of_answering,
    )
    fetch_answer = providers.Singleton(FetchAnswer, gateway=gateway, clock=clock, rules=rules_of_answering)
    failures = providers.Singleton(Failures, logger, mask)
    unfinished = providers.Singleton(UnfinishedAnswers, gateway=gateway, clock=clock)
    tasks = providers.Singleton(
        Tasks,
        gateway=gateway,
        fetching=fetch_answer,
        clock=clock,
        ids=providers.Singleton(TaskIds, api_key),
        failures=failures,
        shows_response_id=settings.provided.server.response_id_text,
    )
    tool_caller = providers.Singleton(
        ToolCaller,
        answering=answer_question,
        fetching=fetch_answer,
        unfinished=unfinished,
        tasks=tasks,
        clock=clock,
        logger=logger,
        failures=failures,
        rules=providers.Singleton(calling_rules, settings),
    )
    usage = providers.Singleton(usage_in, usage_store, clock)
    caller = providers.Singleton(caller_with, tool_caller, tasks, limits, usage, telemetry)
