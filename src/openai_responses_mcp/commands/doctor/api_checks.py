"""The doctor's checks of the API: key, address, models and their settings.

Each model is looked up. The settings of each profile are tried by counting the tokens of a question, which costs
nothing. All requests run at the same time.
"""

import asyncio
from collections.abc import Awaitable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from openai_responses_mcp.commands.doctor.report import Line
from openai_responses_mcp.commands.usage import WITHOUT_A_KEY
from openai_responses_mcp.config.loading import VARIABLES
from openai_responses_mcp.config.settings import Profile, Settings
from openai_responses_mcp.domain.errors import GatewayError, GatewayOverloaded, GatewayTimeout, KeyMissing, KeyUnusable
from openai_responses_mcp.domain.texts import Sentence, about, linked
from openai_responses_mcp.start import Basis

if TYPE_CHECKING:
    from openai_responses_mcp.adapters.openai.gateway import OpenAIResponsesGateway
    from openai_responses_mcp.domain.models import ModelRequest

_PROFILES = ("answer", "answer_detailed", "answer_quick")
_NOT_COUNTED_THERE = (404, 405, 501)
_REFUSED_AS_IT_IS = (400, 422)
_KEY = Sentence("key")


class Outcome(NamedTuple):
    """The result of a check. A model may have a day on which it is shut down."""

    error: GatewayError | None = None
    shutdown_date: str | None = None


class ApiReport(NamedTuple):
    """`requests` and `trials` go by the name of the profile, `models` by the id. Without a key there are no trials."""

    key_problem: KeyUnusable | None
    requests: "dict[str, ModelRequest]"
    models: dict[str, Outcome]
    trials: dict[str, Outcome]

    @property
    def outcomes(self) -> list[Outcome]:
        return [*self.models.values(), *self.trials.values()]


# Asking


async def ask_api(basis: Basis, longest_wait_seconds: float) -> ApiReport:
    requests = _requests(basis)
    # Without any profile, look up the default model, to check the connection.
    models = list(dict.fromkeys(request.model for request in requests.values())) or [Profile().model]
    container = basis.load_container()
    try:
        return await _ask(container.openai_gateway(), None, models, requests, longest_wait_seconds)
    except KeyUnusable as exc:
        # Try a made-up key, so that a second problem with the connection shows at once.
        container = basis._replace(api_key="none").load_container()
        return await _ask(container.openai_gateway(), exc, models[:1], requests, longest_wait_seconds)


def _requests(basis: Basis) -> "dict[str, ModelRequest]":
    """A question for each profile, as the server would send it."""
    from openai_responses_mcp.adapters.clocks import clock_in
    from openai_responses_mcp.container import answering_rules
    from openai_responses_mcp.domain.answering import model_request
    from openai_responses_mcp.domain.models import Question

    rules = answering_rules(basis.configuration.settings, basis.configuration.system_policy)
    # Profiles that differ only in where they run share a trial.
    rules = replace(rules, in_background=frozenset())
    today = clock_in(basis.configuration.settings.search.timezone).today()
    names = [name for name in _PROFILES if name in rules.profiles]
    return {name: model_request(Question("Hello.", profile=name), rules, today) for name in names}


async def _ask(
    gateway: "OpenAIResponsesGateway",
    key_problem: KeyUnusable | None,
    models: list[str],
    requests: "dict[str, ModelRequest]",
    longest_wait_seconds: float,
) -> ApiReport:
    tried = [] if key_problem else list(dict.fromkeys(requests.values()))
    outcomes = await asyncio.gather(
        *(_outcome(gateway.check_model(model), longest_wait_seconds) for model in models),
        *(_outcome(gateway.check_request(request), longest_wait_seconds) for request in tried),
    )
    await gateway.close()
    by_request = dict(zip(tried, outcomes[len(models) :], strict=True))
    trials = {name: by_request[request] for name, request in requests.items() if request in by_request}
    return ApiReport(key_problem, requests, dict(zip(models, outcomes, strict=False)), trials)


async def _outcome(check: Awaitable[str | None], longest_wait_seconds: float) -> Outcome:
    try:
        async with asyncio.timeout(longest_wait_seconds):
            return Outcome(shutdown_date=await check)
    except GatewayError as exc:
        return Outcome(exc)
    except TimeoutError:
        seconds = f"{longest_wait_seconds:g}"
        return Outcome(
            GatewayTimeout(
                Sentence(
                    "No answer within {seconds} s. Check the network, the proxy and openai.base_url.", seconds=seconds
                )
            )
        )


# Reporting


def api_lines(settings: Settings, report: ApiReport) -> Iterator[Line]:
    """Profiles with the same model, or with the same settings, share a line."""
    yield _key_line(settings, report)
    yield _api_line(settings, report)
    used = {name: name if name in report.requests else "answer" for name in _PROFILES}
    models = _grouped({name: report.requests[used[name]].model for name in _PROFILES if used[name] in report.requests})
    for names in models:
        level, detail = _model_verdict(used[names[0]], settings.openai.base_url, report)
        yield Line(level, Sentence("model for {names}", names=", ".join(names)), detail)
    lacking = [name for name in _PROFILES if used[name] not in report.requests]
    if lacking:
        needed = Sentence("model_profiles.answer is required: set {where}", where=_where_to_change("answer"))
        yield Line("FAIL", Sentence("model for {names}", names=", ".join(lacking)), needed)
    for names in _grouped({name: report.requests[used[name]] for name in _PROFILES if used[name] in report.requests}):
        level, detail = _settings_verdict(used[names[0]], settings.openai.base_url, report)
        what_is_set = _what_is_set(report.requests[used[names[0]]])
        yield Line(
            level,
            Sentence("settings for {names}", names=", ".join(names)),
            linked("{first}; {second}", [what_is_set, detail]),
        )


def _grouped(things: Mapping[str, object]) -> list[list[str]]:
    """The names of the same thing together."""
    groups: dict[object, list[str]] = {}
    for name, thing in things.items():
        groups.setdefault(thing, []).append(name)
    return list(groups.values())


def _is_answer(error: GatewayError | None) -> bool:
    """Any answer counts except a redirect, which is not followed."""
    return error is None or (error.status or 0) >= 400


def _key_line(settings: Settings, report: ApiReport) -> Line:
    if isinstance(report.key_problem, KeyMissing):
        missing = Sentence("{missing}. {how}", missing=report.key_problem.sentence, how=WITHOUT_A_KEY)
        return Line("FAIL", _KEY, missing)
    if report.key_problem:
        return Line("FAIL", _KEY, report.key_problem.sentence)
    errors = [outcome.error for outcome in report.outcomes]
    refused = next((error for error in errors if error and error.status == 401), None)
    if refused:
        return Line("FAIL", _KEY, refused.sentence)
    is_set = Sentence("set in {variable}", variable=settings.openai.api_key_env)
    # A 403 means that the API knows the key.
    if any(error is None or error.status == 403 for error in errors):
        return Line("ok", _KEY, is_set)
    return Line("warn", _KEY, linked("{first}; {second}", [is_set, Sentence("the key could not be verified")]))


def _api_line(settings: Settings, report: ApiReport) -> Line:
    base_url, errors = settings.openai.base_url, [outcome.error for outcome in report.outcomes]
    if any(map(_is_answer, errors)):
        return Line("ok", "API", Sentence("{base_url} answers", base_url=base_url))
    return Line("FAIL", "API", about(base_url, errors[0].sentence if errors[0] else ""))


def _model_verdict(name: str, base_url: str, report: ApiReport) -> tuple[str, str]:
    model = report.requests[name].model
    if report.key_problem:
        return "warn", Sentence("{model} was not checked: that takes a key", model=model)
    error, shutdown_date = report.models[model]
    if shutdown_date is not None:
        text = Sentence(
            "{model} will be shut down on {day}: change {where}",
            model=model,
            day=shutdown_date,
            where=_where_to_change(name),
        )
        return "warn", text
    if error is None:
        return "ok", model
    if not _is_answer(error):
        return "warn", Sentence("{model} was not checked, because the API did not answer", model=model)
    if error.status == 401:
        return "warn", Sentence("{model} was not checked, because the key was refused", model=model)
    if error.status == 403:
        refused = Sentence("{model} was not checked, because the key was refused", model=model)
        return "FAIL", about(refused, error.sentence)
    if error.status == 404:
        change = _where_to_change(name)
        unknown = Sentence("the API does not know {model} (404): change {where}", model=model, where=change)
        if _is_openai(base_url):
            return "FAIL", unknown
        says = "{unknown}, or check openai.base_url; gateways without a list of models answer so for every one"
        return "warn", Sentence(says, unknown=unknown)
    unchecked = Sentence("{model} could not be checked", model=model)
    return "warn" if isinstance(error, GatewayOverloaded) else "FAIL", about(unchecked, error.sentence)


def _what_is_set(request: "ModelRequest") -> str:
    chosen = {"effort": request.reasoning_effort, "verbosity": request.verbosity}
    given = [f"{name} {value}" for name, value in chosen.items() if value is not None]
    if given:
        return ", ".join(given)
    return Sentence("neither effort nor verbosity, which {model} does not take", model=request.model)


def _settings_verdict(name: str, base_url: str, report: ApiReport) -> tuple[str, str]:
    if report.key_problem:
        return "warn", Sentence("not checked: that takes a key")
    error = report.trials[name].error
    if error is None:
        return "ok", Sentence("the API counted the tokens of such a question")
    if not _is_answer(error):
        return "warn", Sentence("not checked, because the API did not answer")
    if error.status == 401:
        return "warn", Sentence("not checked, because the key was refused")
    if error.status in _NOT_COUNTED_THERE:
        text = Sentence(
            "not checked, because {base_url} counts no tokens ({status})", base_url=base_url, status=error.status
        )
        return "warn", text
    is_known = report.models[report.requests[name].model].error is None
    if error.status in _REFUSED_AS_IT_IS and is_known:
        refused = Sentence("refused, so change model_profiles.{name}", name=name)
        return "FAIL" if _is_openai(base_url) else "warn", about(refused, error.sentence)
    return "warn", about(Sentence("not checked"), error.sentence)


def _is_openai(base_url: str) -> bool:
    return urlsplit(base_url).hostname == "api.openai.com"


def _where_to_change(name: str) -> str:
    path = ("model_profiles", name, "model")
    return linked(
        "{first} or {second}", [*(variable for variable, key in VARIABLES.items() if key == path), ".".join(path)]
    )
