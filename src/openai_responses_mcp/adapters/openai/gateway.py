"""The Responses API as the model gateway: one attempt per question, with a timeout and a limit on parallel questions.

Every question asks for a stream. It is read past its last event to the end, because only then can the connection be
reused. A question in the background keeps running at the API if the connection breaks; see `background`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager

from openai import AsyncOpenAI

from openai_responses_mcp.adapters.openai.api import ResponsesApi, counted_body
from openai_responses_mcp.adapters.openai.background import AbandonedRuns, BackgroundRun
from openai_responses_mcp.adapters.openai.errors import BackgroundRefused
from openai_responses_mcp.adapters.openai.replies import StreamEnded, stream_cut
from openai_responses_mcp.adapters.openai.wire import JsonObject, progress_of, read_reply, read_state, request_body
from openai_responses_mcp.domain.errors import (
    GatewayError,
    GatewayTimeout,
    KeyMissing,
    KeyUnusable,
    ResponseLost,
    StillRunning,
)
from openai_responses_mcp.domain.models import (
    ModelReply,
    ModelRequest,
    Progress,
    ProgressListener,
    StartListener,
)
from openai_responses_mcp.domain.ports import LLMGateway, Logger, WallClock
from openai_responses_mcp.domain.texts import Sentence

# After a signal, the process has a second to end, and other things to do in that time.
LONGEST_SETTLE_SECONDS = 0.7
# Longer reasons are cut, to leave room for the advice on how to fetch the answer.
LONGEST_REASON = 150


class OpenAIResponsesGateway(LLMGateway):
    """`make_client` is called once, with the first question or in `prepare`."""

    def __init__(
        self,
        make_client: Callable[[], AsyncOpenAI],
        *,
        api_key: str,
        api_key_variable: str,
        timeout_seconds: float,
        max_concurrency: int,
        omit: Iterable[str],
        clock: WallClock,
        logger: Logger,
        mask: Callable[[str], str] = str,
        extra: Mapping[str, object] | None = None,
    ) -> None:
        self._api = ResponsesApi(make_client, clock.now, mask)
        self._abandoned = AbandonedRuns(self._api, clock)
        self._api_key = api_key.strip()
        self._api_key_variable = api_key_variable
        self._timeout_seconds = timeout_seconds
        self._slots = asyncio.Semaphore(max_concurrency)
        self._omit = tuple(omit)
        self._extra = extra
        self._clock = clock
        self._logger = logger
        self._mask = mask
        self._knows_background = True
        self._let_go: set[str] = set()
        self._lets_all_go = False

    async def respond(
        self,
        request: ModelRequest,
        on_progress: ProgressListener | None = None,
        on_started: StartListener | None = None,
    ) -> ModelReply:
        self._refuse_unusable_key()
        body = request_body(request, self._omit, self._extra)
        async with self._slots:
            if "background" in body and self._knows_background:
                try:
                    run = BackgroundRun(self._api, self._clock, self._logger, self._mask, on_progress, on_started)
                    return read_reply(await self._ask_in_background(run, body))
                except BackgroundRefused:
                    self._knows_background = False
            body.pop("background", None)
            return read_reply(await self._ask(body, on_progress))

    async def follow(self, response_id: str, on_progress: ProgressListener | None = None) -> ModelReply:
        self._refuse_unusable_key()
        run = BackgroundRun(self._api, self._clock, self._logger, self._mask, on_progress)
        async with self._slots:
            try:
                async with asyncio.timeout(self._timeout_seconds):
                    return read_reply(await run.fetch(response_id))
            except TimeoutError as exc:
                raise self._late(run) from exc

    async def look_up(self, response_id: str) -> ModelReply | Progress:
        async with self._attempt():
            return read_state(await self._api.retrieve(response_id), self._mask)

    async def cancel(self, response_id: str) -> None:
        async with self._attempt():
            await self._api.cancel(response_id)

    def let_go(self, response_id: str) -> None:
        self._let_go.add(response_id)

    def let_all_go(self) -> None:
        """From now on background responses keep running even if their call is cancelled."""
        self._lets_all_go = True

    async def check_model(self, model: str) -> str | None:
        """The day on which the model will be shut down, if one is announced. Raises as `respond`."""
        async with self._attempt():
            return await self._api.model_shutdown_date(model)

    async def check_request(self, request: ModelRequest) -> None:
        """Check that the API accepts a request. It is not answered, so this costs nothing. Raises as `respond`."""
        async with self._attempt():
            await self._api.count_tokens(counted_body(request_body(request, self._omit, self._extra)))

    def prepare(self) -> None:
        """Do in advance what only the first question needs, in a thread without an event loop."""
        self._api.prepare()

    async def settle(self) -> bool | None:
        """Wait briefly until cancelled responses are cancelled at the API too; True if they all are.

        None if there was nothing to cancel.
        """
        return await self._abandoned.wait(LONGEST_SETTLE_SECONDS)

    async def close(self) -> bool | None:
        """Settle, and close the connections; a later question opens new ones."""
        is_settled = await self.settle()
        await self._api.close()
        return is_settled

    async def _ask(self, body: JsonObject, on_progress: ProgressListener | None) -> object:
        def report(event: JsonObject) -> None:
            progress = progress_of(event, self._mask)
            if progress is not None and on_progress is not None:
                on_progress(progress)

        async with self._attempt() as deadline, self._api.posted(body) as stream:
            try:
                response = await stream.final_response(report if on_progress else None)
            except StreamEnded as exc:
                raise stream_cut() from exc
            deadline.reschedule(None)  # The answer is complete, so the deadline no longer applies.
            await stream.read_to_end()
            return response

    async def _ask_in_background(self, run: BackgroundRun, body: JsonObject) -> object:
        """Reads in a task of its own: a call that is cancelled early must still learn which response to cancel."""
        reading = asyncio.ensure_future(run.ask(body))
        try:
            await asyncio.wait({reading}, timeout=self._timeout_seconds)
        except asyncio.CancelledError:
            self._abandoned.add(run, reading, cancels=not self._lets_all_go and run.response_id not in self._let_go)
            raise
        finally:
            self._let_go.discard(run.response_id or "")
        if reading.done() or run.has_answer:
            return await self._outcome(run, reading)
        # Without an id the answer cannot be fetched, so it is cancelled.
        self._abandoned.add(run, reading, cancels=run.response_id is None)
        raise self._late(run)

    async def _outcome(self, run: BackgroundRun, reading: "asyncio.Future[object]") -> object:
        """What was read. If reading failed, the error says how to fetch the answer."""
        try:
            return await reading
        except ResponseLost:
            raise
        except GatewayError as exc:
            if run.response_id is None:
                raise
            reason = exc.what_happened
            if exc.demands_long_wait:
                seconds = f"{exc.retry_after_seconds:.0f}"
                reason = Sentence("The API wants us to wait for {seconds} s. {what}", seconds=seconds, what=reason)
            raise self._still_running(reason, run.response_id, exc) from exc

    @asynccontextmanager
    async def _attempt(self) -> AsyncIterator[asyncio.Timeout]:
        """The timeout covers the whole attempt."""
        self._refuse_unusable_key()
        try:
            async with asyncio.timeout(self._timeout_seconds) as deadline:
                yield deadline
        except TimeoutError as exc:
            raise self._timeout() from exc

    def _timeout(self) -> GatewayTimeout:
        return GatewayTimeout(
            Sentence(
                "No complete answer within {seconds} s. Ask again, ask for less,"
                " or raise request.timeout_ms (OPENAI_API_TIMEOUT).",
                seconds=f"{self._timeout_seconds:g}",
            )
        )

    def _late(self, run: BackgroundRun) -> GatewayError:
        """Names the last reading error, unless reading has recovered."""
        if run.response_id is None:
            return self._timeout()
        reason = Sentence("No complete answer within {seconds} s.", seconds=f"{self._timeout_seconds:g}")
        if run.trouble is not None:
            reason = Sentence("{reason} {trouble}", reason=reason, trouble=run.trouble.what_happened)
        return self._still_running(reason, run.response_id, run.trouble)

    def _still_running(self, reason: str, response_id: str, cause: GatewayError | None) -> StillRunning:
        """The reason must not advise asking again, because that would cost twice."""
        masked = self._mask(reason)
        if len(masked) > LONGEST_REASON:
            masked = f"{masked[:LONGEST_REASON]}…"
        # If nothing was masked or cut, keep the `Sentence`, which can be translated.
        reason = reason if masked == reason else masked
        return StillRunning(reason, response_id=response_id, cause=cause)

    def _refuse_unusable_key(self) -> None:
        if not self._api_key:
            raise KeyMissing(Sentence("Missing API key: set {variable}", variable=self._api_key_variable))
        if not (self._api_key.isascii() and self._api_key.isprintable()) or " " in self._api_key:
            raise KeyUnusable(
                Sentence(
                    "The API key in {variable} contains a space, a control character or another character"
                    " that no key has. Copy it again.",
                    variable=self._api_key_variable,
                )
            )
