"""The answer use case: a question goes in, the model is asked once, and an answer with dated sources comes out."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta

from openai_responses_mcp.domain.citations import select_citations, used_search, with_sources
from openai_responses_mcp.domain.errors import AnswerWithheld, ProfileMissing
from openai_responses_mcp.domain.models import (
    Answer,
    AnsweringProfile,
    ModelReply,
    ModelRequest,
    Progress,
    ProgressListener,
    Question,
    SearchTool,
    StartListener,
)
from openai_responses_mcp.domain.ports import LLMGateway, Logger, WallClock
from openai_responses_mcp.domain.texts import Sentence

# In characters: more than any model writes in one answer.
LONGEST_ANSWER = 1_000_000
# For a fetched answer that does not name its model.
UNKNOWN_MODEL = "unknown"


@dataclass(frozen=True, slots=True)
class AnsweringRules:
    """What the configuration says about answering. `in_background` names the profiles that ask in the background."""

    profiles: Mapping[str, AnsweringProfile]
    instructions: str
    recency_days: float
    max_results: float
    domains: tuple[str, ...]
    restrict_to_domains: bool
    search_context_size: str | None
    user_location: tuple[tuple[str, str], ...] | None
    searches_live: bool
    max_citations: int
    max_output_tokens: int | None
    store: bool
    in_background: frozenset[str]
    timezone: str


def model_request(question: Question, rules: AnsweringRules, today: date) -> ModelRequest:
    """Raises `ProfileMissing`."""
    profile = rules.profiles.get(question.profile) or rules.profiles.get("answer")
    if profile is None:
        raise ProfileMissing(Sentence("model_profiles.answer is required"))
    model = question.model or profile.model
    effort = question.reasoning_effort or profile.reasoning_effort
    return ModelRequest(
        model=model,
        instructions=rules.instructions,
        input_text=f"{question.text}\n{_hints(question, rules, today)}",
        search=SearchTool(
            allowed_domains=_allowed_domains(question, rules),
            context_size=question.search_context_size or rules.search_context_size,
            user_location=rules.user_location,
            is_live=rules.searches_live,
        ),
        reasoning_effort=effort if takes_effort(model) else None,
        verbosity=profile.verbosity if takes_verbosity(model) else None,
        previous_response_id=question.previous_response_id,
        max_output_tokens=rules.max_output_tokens,
        store=rules.store,
        use_code_interpreter=question.use_code_interpreter,
        background=question.profile in rules.in_background,
    )


def _domains(question: Question, rules: AnsweringRules) -> tuple[str, ...]:
    return rules.domains if question.domains is None else question.domains


def _allowed_domains(question: Question, rules: AnsweringRules) -> tuple[str, ...]:
    return _domains(question, rules) if rules.restrict_to_domains else ()


def _hints(question: Question, rules: AnsweringRules, today: date) -> str:
    recency = rules.recency_days if question.recency_days is None else question.recency_days
    results = rules.max_results if question.max_results is None else question.max_results
    hints = f"[Hints] recency_days={_plain(recency)}, max_results={_plain(results)}."
    if domains := _domains(question, rules):
        hints += f" domains: {', '.join(domains)}"
    if question.style:
        hints += f" style: {question.style}"
    day = timedelta(days=1)
    return f"{hints} today={today} yesterday={today - day} tomorrow={today + day} ({rules.timezone})"


def _plain(number: float) -> str:
    return str(int(number)) if number == int(number) else str(number)


class AnswerQuestion:
    def __init__(self, gateway: LLMGateway, clock: WallClock, logger: Logger, rules: AnsweringRules) -> None:
        self._gateway = gateway
        self._clock = clock
        self._logger = logger
        self._rules = rules

    def allowed_domains(self, question: Question) -> tuple[str, ...]:
        """The domains that the search is restricted to; empty if it is not restricted."""
        return _allowed_domains(question, self._rules)

    def runs_in_background(self, profile: str) -> bool:
        return profile in self._rules.in_background

    async def answer(
        self,
        question: Question,
        on_progress: ProgressListener | None = None,
        on_started: StartListener | None = None,
    ) -> Answer:
        """Raises `ProfileMissing`, `KeyUnusable` or `GatewayError`. The listeners are passed to the gateway."""
        request = model_request(question, self._rules, self._clock.today())
        self._log_request(question, request)
        started = self._clock.monotonic()
        reply = await self._gateway.respond(request, on_progress, on_started)
        self._log_reply(reply, self._clock.monotonic() - started)
        reply = replace(reply, model=reply.model or request.model, allowed_domains=request.search.allowed_domains)
        return answer_from(reply, self._rules, self._clock.today())

    def _log_request(self, question: Question, request: ModelRequest) -> None:
        supports = {"verbosity": request.verbosity is not None, "reasoning": request.reasoning_effort is not None}
        self._logger.debug("", profile=question.profile, model=request.model, supports=supports)
        verbosity, reasoning = ("on" if is_sent else "off" for is_sent in supports.values())
        facts = {"tools": "web_search(on)", "reasoning": reasoning, "text.verbosity": verbosity}
        self._logger.debug("request summary", **facts)

    def _log_reply(self, reply: ModelReply, seconds: float) -> None:
        usage = reply.usage
        self._logger.debug(
            "reply",
            latencyMs=round(seconds * 1000),
            inputTokens=usage and usage.input_tokens,
            outputTokens=usage and usage.output_tokens,
            searches=reply.search_count,
        )


def answer_from(reply: ModelReply, rules: AnsweringRules, today: date) -> Answer:
    """Raises `AnswerWithheld`."""
    if reply.refusal is not None:
        raise AnswerWithheld(
            Sentence("The model refused to answer: ask in another way. It says: {refusal}", refusal=reply.refusal)
        )
    # The ideographic space stays: a Japanese paragraph begins with one.
    text = reply.text.strip(" \t\r\n")
    reason = reply.incomplete_reason
    if not text.strip():
        if reason is None:
            raise AnswerWithheld(Sentence("The model returned no text. Ask again, or ask in another way."))
        raise AnswerWithheld(
            Sentence(
                "The response ended early ({reason}) before any text. Raise request.max_output_tokens, or ask for less.",
                reason=reason,
            )
        )
    if len(text) > LONGEST_ANSWER:
        text, reason = text[:LONGEST_ANSWER], Sentence("cut after {count} characters", count=f"{LONGEST_ANSWER:,}")
    if reason is not None:
        text = f"[Incomplete: {reason}] {text}"
    searched = used_search(reply)
    selection = select_citations(reply, today=today.isoformat(), limit=rules.max_citations)
    return Answer(
        text=with_sources(text, selection.citations, today=today.isoformat()) if searched else text,
        used_search=searched,
        citations=selection.citations,
        model=reply.model or UNKNOWN_MODEL,
        response_id=reply.response_id if rules.store else None,
        usage=reply.usage,
        search_count=reply.search_count,
        left_out=selection.left_out,
        incomplete_reason=reason,
    )


# The number in a model's id decides which settings are sent, so that future models are served too. A gateway may put
# `openai/` before the id. What follows the number (`.2`, `-mini`, a date) does not matter.
_GPT_FROM_5 = re.compile(r"(?:openai/)?gpt-(?:[5-9]|[1-9][0-9])")
_O_FROM_3 = re.compile(r"(?:openai/)?o(?:[3-9]|[1-9][0-9])")


def takes_verbosity(model: str) -> bool:
    return _GPT_FROM_5.match(model) is not None


def takes_effort(model: str) -> bool:
    return takes_verbosity(model) or _O_FROM_3.match(model) is not None


class FetchAnswer:
    """Gives the answer, or raises the error, that the original call would have given."""

    def __init__(self, gateway: LLMGateway, clock: WallClock, rules: AnsweringRules) -> None:
        self._gateway = gateway
        self._clock = clock
        self._rules = rules

    async def wait(self, response_id: str, on_progress: ProgressListener | None = None) -> Answer:
        """Raises as `LLMGateway.follow`. Cancelling only stops the wait."""
        return self._answer(await self._gateway.follow(response_id, on_progress))

    async def look(self, response_id: str, allowed_domains: tuple[str, ...] | None = None) -> Answer | Progress:
        """The answer if it is finished, else its progress. Raises as `LLMGateway.look_up`.

        Without `allowed_domains`, those that the API reports are used.
        """
        reply = await self._gateway.look_up(response_id)
        if isinstance(reply, Progress):
            return reply
        return self._answer(reply if allowed_domains is None else replace(reply, allowed_domains=allowed_domains))

    def _answer(self, reply: ModelReply) -> Answer:
        # A response that can be fetched is stored at the API, even if new ones are not.
        return answer_from(reply, replace(self._rules, store=True), self._clock.today())
