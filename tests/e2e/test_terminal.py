"""`--ask` and `--fetch` for somebody who is watching: a pseudo-terminal stands in for the screen."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import httpx2
import pytest

from tests.e2e.client import COMMAND, WAIT_SECONDS, environment
from tests.e2e.screens import Screen as Emulated
from tests.stand_in.http_wire import RecordedRequest, Reply
from tests.stand_in.server import StandInThread

pytestmark = pytest.mark.slow

WIPED = "\r\x1b[J"
COLUMNS, ROWS = 80, 24


class Screen:
    """A process whose stderr is a terminal, and what it shows there; its stdout may be the same terminal."""

    def __init__(
        self,
        command: tuple[str, ...],
        environ: dict[str, str],
        *,
        is_whole: bool = False,
        stdin: int = subprocess.DEVNULL,
    ) -> None:
        self._shown = b""
        self._screen, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            [*COMMAND, *command],
            stdin=stdin,
            stdout=terminal if is_whole else subprocess.PIPE,
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
        return self.process.returncode, (out or b"").decode()

    def seen(self) -> Emulated:
        """What is on the screen now, for a person."""
        emulated = Emulated(COLUMNS, ROWS)
        emulated.feed(self._shown.decode())
        return emulated

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


@pytest.fixture(autouse=True)
def _hang_ups_count() -> Iterator[None]:
    """Also where the tests themselves were started with `nohup`, which processes inherit."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def start(rehearsal: StandInThread, tmp_path: Path) -> Iterator[Callable[..., Screen]]:
    environ = environment(tmp_path, OPENAI_BASE_URL=rehearsal.base_url, TERM="xterm-256color")
    with ExitStack() as screens:

        def start(*command: str, is_whole: bool = False, stdin: int = subprocess.DEVNULL, **variables: str) -> Screen:
            screen = Screen(command, environ | variables, is_whole=is_whole, stdin=stdin)
            return screens.enter_context(closing(screen))

        yield start


@pytest.fixture
def ask(start: Callable[..., Screen]) -> Callable[[str], Screen]:
    return lambda question: start("--ask", question)


@pytest.fixture
def research(start: Callable[..., Screen], tmp_path: Path) -> Callable[..., Screen]:
    """Asks in the background."""
    config = tmp_path / "background.yaml"
    config.write_text("model_profiles: {answer: {background: true}}", encoding="utf-8")
    return lambda question, **how: start("--ask", question, "--config", str(config), **how)


QUESTION = "本日の東京の天気は？とても長い質問なので端末の一行には収まりきらないはずです。くわしく教えてください。"
FRAME = re.compile(r"\r(?:\x1b\[\d+A)?([⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]) (\d+) s · ([^\x1b]*)")


def test_a_moving_line_shows_what_happens_and_is_gone_before_the_answer(ask: Callable[[str], Screen]) -> None:
    screen = ask(f"{QUESTION} [rehearse: slow_stream=0.1]")
    code, answer = screen.finish()
    frames = FRAME.findall(screen.shown)
    messages = list(dict.fromkeys(message for _, _, message in frames))
    assert code == 0
    assert "\nSources:\n" in answer
    assert messages[0] == "starting"
    assert any(message.startswith('searching for "本日の東京の天気は？') for message in messages)
    assert len({spinner for spinner, _, _ in frames}) > 3
    assert screen.shown.count("\n") == 2  # those of the footer
    seen = screen.seen()
    assert seen.widest < COLUMNS
    assert len(seen.lines) == 3
    assert re.fullmatch(r"1 search · [\d,]+ tokens · continue with --continue", seen.lines[1])
    assert [seen.lines[0], seen.lines[2]] == ["", ""]


MARKDOWN = (
    "# 東京\\n\\n　今日は**晴れ**です。\\n次の行。\\n\\n- 一つ目\\n- `code` と <b>\\n\\n| a | b |\\n|---|---|\\n| 1 | 2 |"
    "\\n\\n![絵](https://example.com/p.png) [名](https://example.com/n)"
)


def test_words_appear_below_the_line_as_they_come(start: Callable[..., Screen]) -> None:
    screen = start("--ask", f"なぜ？ [rehearse: slow_stream=0.3; text={MARKDOWN}]", is_whole=True)
    screen.wait_for("今日は")
    line, *words = screen.seen().lines
    assert line.endswith(" s · writing the answer")
    assert words[:2] == ["東京", ""]
    assert words[2].startswith("　今日は")
    screen.process.send_signal(signal.SIGINT)
    assert screen.finish()[0] == 130
    assert screen.seen().lines == [""]


def test_the_answer_is_rendered_in_the_place_of_the_view(start: Callable[..., Screen]) -> None:
    screen = start("--ask", f"なぜ？ [rehearse: search=yes; text={MARKDOWN}; citations=1]", is_whole=True)
    assert screen.finish()[0] == 0
    seen = screen.seen()
    assert seen.lines[:-3] == [
        "東京",
        "",
        "　今日は晴れです。",
        "次の行。",
        "",
        " • 一つ目",
        " • code と <b>",
        "",
        "",
        " a  b",
        " ────",
        " 1  2",
        "",
        "",
        "!絵 (https://example.com/p.png) 名 (https://example.com/n)",
        "",
        "Sources:",
        "",
        f" • Rehearsal example 1 (https://example.com/rehearsal/1) (read on {day_in(seen.lines)})",
    ]
    assert seen.lines[-3] == ""
    assert seen.lines[-2].endswith("tokens · continue with --continue")
    assert "https://example.com/rehearsal/1" in seen.links
    assert "\x1b[1m" in screen.shown


def day_in(lines: list[str]) -> str:
    [day] = re.findall(r"\d{4}-\d{2}-\d{2}", "".join(lines))
    return str(day)


def test_nothing_moves_and_nothing_is_rendered_where_that_is_not_wanted(start: Callable[..., Screen]) -> None:
    screen = start("--ask", "Why? [rehearse: text=# **東京**\\n<b>]", is_whole=True, NO_COLOR="1")
    assert screen.finish()[0] == 0
    assert re.fullmatch(r"# \*\*東京\*\*\n<b>\n\n0 searches · \d+ tokens · continue with --continue\n", screen.shown)


def test_a_failure_takes_the_place_of_the_progress(ask: Callable[[str], Screen]) -> None:
    screen = ask("Why? [rehearse: status=401]")
    assert screen.finish() == (1, "")
    assert screen.shown.rpartition(WIPED)[2].startswith("answer failed: The API key was refused (401)")


def test_an_interrupt_ends_the_waiting_without_a_traceback(
    ask: Callable[[str], Screen], rehearsal: StandInThread
) -> None:
    screen = ask("Why? [rehearse: delay=60]")
    rehearsal.wait_for_requests(1)
    screen.process.send_signal(signal.SIGINT)
    assert screen.finish() == (130, "")
    assert screen.shown.endswith(WIPED)
    rehearsal.wait_for_abort(1)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_cancels_research_at_the_api_and_says_so(
    research: Callable[[str], Screen], rehearsal: StandInThread, number: signal.Signals, code: int
) -> None:
    screen = research("Why? [rehearse: hang_after=4]")
    screen.wait_for("thinking")
    (response_id,) = rehearsal.server.api.background.running
    screen.process.send_signal(number)
    assert screen.finish() == (code, "")
    assert screen.shown.endswith(f"{WIPED}interrupted; {response_id} was cancelled at the API\n")
    assert rehearsal.server.api.background.running == []


def test_research_under_nohup_survives_the_end_of_its_terminal(rehearsal: StandInThread, tmp_path: Path) -> None:
    command = ["nohup", *COMMAND, "--detailed", "--ask", "Why? [rehearse: text=Because.; slow_stream=0.02]"]
    environ = environment(tmp_path, OPENAI_BASE_URL=rehearsal.base_url)
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ
    )
    rehearsal.wait_for_requests(1)
    process.send_signal(signal.SIGHUP)
    out, err = process.communicate(timeout=WAIT_SECONDS)
    assert (process.returncode, out, err) == (0, b"Because.\n", b"")


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
        f"{WIPED}interrupted before the API said the id of the response, so it may go on there, and be billed\n"
    )


def test_fetching_shows_what_happens_meanwhile(start: Callable[..., Screen], rehearsal: StandInThread) -> None:
    response_id = begin(rehearsal, "queue=60")
    screen = start("--fetch", response_id)
    screen.wait_for("waiting in the API's queue")
    request(rehearsal, f"/responses/{response_id}/cancel")
    assert screen.finish() == (1, "")
    assert screen.shown.rpartition(WIPED)[2].startswith("answer failed: The response was cancelled at the API")


def test_an_interrupt_of_fetching_leaves_the_response_alone(
    start: Callable[..., Screen], rehearsal: StandInThread
) -> None:
    response_id = begin(rehearsal, "hang_after=4")
    screen = start("--fetch", response_id)
    screen.wait_for("thinking")
    screen.process.send_signal(signal.SIGINT)
    assert screen.finish() == (130, "")
    assert screen.shown.endswith(WIPED)
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


@pytest.mark.parametrize("is_whole", [True, False], ids=["rendered", "to a pipe"])
@pytest.mark.parametrize("reply", HOSTILE.values(), ids=HOSTILE)
def test_nothing_that_the_api_says_steers_the_terminal(
    start: Callable[..., Screen], rehearsal: StandInThread, reply: Reply, is_whole: bool
) -> None:
    async def answer(request: RecordedRequest) -> Reply:
        return reply

    rehearsal.server.handler = answer
    screen = start("--ask", "Why?", is_whole=is_whole)
    _, answer_text = screen.finish()
    # The emulated screen fails for anything that is not ours.
    shown = "".join(screen.seen().lines)
    assert "owned" in shown + answer_text
    assert shown.isprintable()
    assert [letter for letter in answer_text if letter in ESCAPES and not letter.isprintable()] == []


def test_waiting_for_a_silent_pipe_is_shown(start: Callable[..., Screen]) -> None:
    reading, writing = os.pipe()
    try:
        screen = start("--ask", "Why?", stdin=reading)
        os.close(reading)
        screen.wait_for("Reading stdin to its end")
        os.write(writing, "材料".encode())
    finally:
        os.close(writing)
    code, answer = screen.finish()
    assert code == 0
    assert "材料" in answer


def test_progress_never_overwrites_log_lines(start: Callable[..., Screen]) -> None:
    screen = start("--ask", "Why?", "--debug")
    assert screen.finish()[0] == 0
    assert "request summary" in screen.shown
    assert WIPED not in screen.shown
