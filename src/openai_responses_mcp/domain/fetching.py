"""The fetch use case: the id of a response goes in, and its answer comes out. Anybody may have asked, at any time."""

from dataclasses import replace

from openai_responses_mcp.domain.answering import AnsweringRules, answer_from
from openai_responses_mcp.domain.models import Answer, ModelReply, Progress, ProgressListener
from openai_responses_mcp.domain.ports import Clock, LLMGateway


class FetchAnswer:
    """Both ways give the answer, or raise the error, that the question itself would have led to."""

    def __init__(self, gateway: LLMGateway, clock: Clock, rules: AnsweringRules) -> None:
        self._gateway = gateway
        self._clock = clock
        self._rules = rules

    async def wait(self, response_id: str, on_progress: ProgressListener | None = None) -> Answer:
        """Raises `KeyUnusable` or `GatewayError`, as `LLMGateway.follow`. Being cancelled, it only stops waiting."""
        return self._answer(await self._gateway.follow(response_id, on_progress))

    async def look(self, response_id: str, allowed_domains: tuple[str, ...] | None = None) -> Answer | Progress:
        """The answer if it is there, else what is happening. Raises as `LLMGateway.look_up`.

        The domains are those of the question, if they are known; else what the API says of them.
        """
        state = await self._gateway.look_up(response_id)
        if state.reply is None:
            return state.progress or Progress("working")
        reply = state.reply
        return self._answer(reply if allowed_domains is None else replace(reply, allowed_domains=allowed_domains))

    def _answer(self, reply: ModelReply) -> Answer:
        # A response that can be fetched is kept at the API, whatever is asked of new ones.
        return answer_from(reply, replace(self._rules, store=True), self._clock.today())
