"""`--ask` and `--fetch` for somebody who is watching: a pseudo-terminal stands in for the screen."""

import json
import os
import pty
import select
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import httpx2
import pytest

from tests.e2e.client import COMMAND, WAIT_SECONDS, environment
from tests.stand_in.http_wire import RecordedRequest, Reply
from tests.stand_in.server import StandInThread

CLEAR_LINE = "\r\x1b[K"


class Screen:
    """A process whose stderr is a terminal, and what it shows there."""

    def __init__(self, command: tuple[str, ...], environ: dict[str, str]) -> None:
        self._shown = b""
        self._screen, terminal = pty.openpty()
        self.process = subprocess.Popen(
            [*COMMAND, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=terminal,
            env=environ,
        )
        os.close(terminal)

    @property
    def shown(self) -> str:
        return self._shown.decode(errors="ignore").replace("\r\n", "\n")

    def wait_for(self, text: str) -> None:
        while text not in self.shown:
            assert self._show_more(), f"the process ended without showing {text!r}: {self.shown!r}"

    def finish(self) -> tuple[int, str]:
        """The exit code and what was written to stdout."""
        while self._show_more():
            pass
        out, _ = self.process.communicate(timeout=WAIT_SECONDS)
        return self.process.returncode, out.decode()

    def close(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=WAIT_SECONDS)
        os.close(self._screen)

    def _show_more(self) -> bool:
        assert select.select([self._screen], [], [], WAIT_SECONDS)[0]
        try:
            data = os.read(self._screen, 65536)
        except OSError:  # Nobody has the terminal open any more.
            return False
        self._shown += data
        return bool(data)


@pytest.fixture
def start(rehearsal: StandInThread, tmp_path: Path) -> Iterator[Callable[..., Screen]]:
    environ = environment(tmp_path, OPENAI_BASE_URL=rehearsal.base_url)
    with ExitStack() as screens:
        yield lambda *command: screens.enter_context(closing(Screen(command, environ)))


@pytest.fixture
def ask(start: Callable[..., Screen]) -> Callable[[str], Screen]:
    return lambda question: start("--ask", question)


@pytest.fixture
def research(start: Callable[..., Screen], tmp_path: Path) -> Callable[[str], Screen]:
    """Asks in the background."""
    config = tmp_path / "background.yaml"
    config.write_text("model_profiles: {answer: {background: true}}", encoding="utf-8")
    return lambda question: start("--ask", question, "--config", str(config))


def test_progress_is_shown_on_one_line_that_is_gone_before_the_answer(ask: Callable[[str], Screen]) -> None:
    screen = ask("What is the weather today? [rehearse: slow_stream=0.01]")
    code, answer = screen.finish()
    progress, _, footnote = screen.shown.rpartition(CLEAR_LINE)
    steps = progress.split(f"{CLEAR_LINE}… ")
    assert code == 0
    assert "\nSources:\n" in answer
    assert "…" not in answer
    assert steps[:3] == ["", "starting", "thinking"]
    assert 'searching for "What is the weather today?"' in steps
    assert steps[-1] == "writing the answer"
    assert "\n" not in progress
    assert footnote.startswith("\n[gpt-5.2 · 1 searches · ")
    assert " tokens · resp_" in footnote


def test_a_failure_takes_the_place_of_the_progress(ask: Callable[[str], Screen]) -> None:
    screen = ask("Why? [rehearse: status=401]")
    assert screen.finish() == (1, "")
    assert screen.shown.rpartition(CLEAR_LINE)[2].startswith("answer failed: The API key was refused (401)")


def test_an_interrupt_ends_the_waiting_without_a_traceback(
    ask: Callable[[str], Screen], rehearsal: StandInThread
) -> None:
    screen = ask("Why? [rehearse: delay=60]")
    rehearsal.wait_for_requests(1)
    screen.process.send_signal(signal.SIGINT)
    assert screen.finish() == (130, "")
    assert screen.shown.endswith(CLEAR_LINE)
    rehearsal.wait_for_abort(1)


def test_an_interrupt_cancels_research_at_the_api_and_says_so(
    research: Callable[[str], Screen], rehearsal: StandInThread
) -> None:
    screen = research("Why? [rehearse: hang_after=4]")
    screen.wait_for("thinking")
    (response_id,) = rehearsal.server.api.background.running
    screen.process.send_signal(signal.SIGINT)
    assert screen.finish() == (130, "")
    assert screen.shown.endswith(f"{CLEAR_LINE}interrupted; {response_id} was cancelled at the API\n")
    assert rehearsal.server.api.background.running == []


def test_an_interrupt_says_when_the_api_does_not_cancel(research: Callable[[str], Screen]) -> None:
    screen = research("Why? [rehearse: hang_after=4; cancel_status=403]")
    screen.wait_for("thinking")
    screen.process.send_signal(signal.SIGINT)
    assert screen.finish() == (130, "")
    assert "the API has not confirmed that resp_" in screen.shown


def test_an_interrupt_before_the_id_is_known_says_so(
    research: Callable[[str], Screen], rehearsal: StandInThread
) -> None:
    rehearsal.server.api.delay_seconds = WAIT_SECONDS
    screen = research("Why?")
    rehearsal.wait_for_requests(1)
    screen.process.send_signal(signal.SIGINT)
    assert screen.finish() == (130, "")
    assert screen.shown.endswith(
        f"{CLEAR_LINE}interrupted before the API said the id of the response, so it may go on there, and be billed\n"
    )


def test_whoever_fetches_sees_what_happens_meanwhile(start: Callable[..., Screen], rehearsal: StandInThread) -> None:
    response_id = begin(rehearsal, "queue=60")
    screen = start("--fetch", response_id)
    screen.wait_for("waiting in the API's queue")
    request(rehearsal, f"/responses/{response_id}/cancel")
    assert screen.finish() == (1, "")
    assert screen.shown.rpartition(CLEAR_LINE)[2].startswith("answer failed: The response was cancelled at the API")


def test_an_answer_is_fetched_by_its_id(start: Callable[..., Screen], rehearsal: StandInThread) -> None:
    response_id = begin(rehearsal, "text=Because.")
    screen = start("--fetch", response_id)
    assert screen.finish() == (0, "Because.\n")
    assert screen.shown.rpartition(CLEAR_LINE)[2].startswith("\n[gpt-5 · 0 searches · ")
    assert response_id in screen.shown


def test_an_interrupt_of_fetching_leaves_the_response_alone(
    start: Callable[..., Screen], rehearsal: StandInThread
) -> None:
    response_id = begin(rehearsal, "hang_after=4")
    screen = start("--fetch", response_id)
    screen.wait_for("thinking")
    screen.process.send_signal(signal.SIGINT)
    assert screen.finish() == (130, "")
    assert screen.shown.endswith(CLEAR_LINE)
    assert rehearsal.server.api.background.running == [response_id]


def begin(rehearsal: StandInThread, keys: str) -> str:
    """Start a response as another process would have; its id."""
    body = {"model": "gpt-5", "input": f"Why? [rehearse: {keys}]", "background": True}
    return str(request(rehearsal, "/responses", body)["id"])


def request(rehearsal: StandInThread, path: str, body: dict[str, object] | None = None) -> dict[str, object]:
    with httpx2.Client(headers={"authorization": "Bearer made-up"}, trust_env=False, timeout=WAIT_SECONDS) as client:
        response: dict[str, object] = client.post(rehearsal.base_url + path, json=body).json()
    return response


ESCAPES = "\x1b]0;owned\x07\x1b[2J\u202e\x9b31m"


def message(text: str) -> Reply:
    """A reply in one piece with this as its output text, or a refusal of this text."""
    search = {"type": "web_search_call", "action": {"type": "search", "query": f"why {ESCAPES}"}}
    part = {"type": "output_text", "text": text, "annotations": []}
    body = {
        "id": f"resp_{ESCAPES}",
        "model": f"gpt-{ESCAPES}",
        "output": [search, {"type": "message", "content": [part]}],
    }
    done = {"type": "response.completed", "response": body}
    added = {"type": "response.output_item.done", "item": search}
    events = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in (added, done))
    return Reply(headers={"content-type": "text/event-stream"}, body=events)


HOSTILE = {
    "answer, progress and footnote": message(f"Because.{ESCAPES}"),
    "refusal": Reply(
        headers={"content-type": "application/json"},
        body=json.dumps(
            {"output": [{"type": "message", "content": [{"type": "refusal", "refusal": f"No.{ESCAPES}"}]}]}
        ).encode(),
    ),
    "error": Reply(400, {"content-type": "application/json"}, json.dumps({"error": {"message": ESCAPES}}).encode()),
}


@pytest.mark.parametrize("reply", HOSTILE.values(), ids=HOSTILE)
def test_nothing_that_the_api_says_steers_the_terminal(
    ask: Callable[[str], Screen], rehearsal: StandInThread, reply: Reply
) -> None:
    async def answer(request: RecordedRequest) -> Reply:
        return reply

    rehearsal.server.handler = answer
    screen = ask("Why?")
    _, answer_text = screen.finish()
    shown = screen.shown.replace(CLEAR_LINE, "") + answer_text
    assert "owned" in shown
    assert [letter for letter in shown if letter in ESCAPES and not letter.isprintable()] == []
