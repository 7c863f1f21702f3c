import io
import os

import pytest

from openai_responses_mcp.commands.live import HOLD_SECONDS, LiveView, fitted, is_lively
from openai_responses_mcp.commands.words import speaking
from openai_responses_mcp.domain.models import Progress
from openai_responses_mcp.domain.texts import Sentence
from tests.e2e.screens import Screen


class FakeTerminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class Scene:
    """A view on a terminal of any size, at any time."""

    def __init__(
        self,
        columns: int = 80,
        rows: int = 24,
        *,
        renders: bool = True,
        encoding: str = "utf-8",
        language: str = "en_US.UTF-8",
    ) -> None:
        self.seconds = 100.0
        self.size = os.terminal_size((columns, rows))
        self.terminal = FakeTerminal()
        self.terminal.encoding = encoding
        render = (lambda text, width: text) if renders else None
        self.view = LiveView(
            self.terminal, lambda: self.seconds, render, lambda: self.size, speaking({"LANG": language})
        )

    def tell(self, message: str, words: str = "") -> None:
        self.view.hear(Progress(message, words))

    def seen(self) -> list[str]:
        screen = Screen(self.size.columns, self.size.lines)
        screen.feed(self.terminal.getvalue().replace("\n", "\r\n"))
        assert screen.widest < self.size.columns
        return screen.lines

    def drawn(self) -> list[str]:
        self.view.draw()
        return self.seen()


def test_the_line_has_a_spinner_the_seconds_and_what_happens() -> None:
    scene = Scene()
    assert scene.drawn() == ["⠙ 0 s · starting"]
    scene.seconds += 12.7
    scene.tell("thinking\n\x1b[2J")
    assert scene.drawn() == ["⠹ 12 s · thinking  [2J"]


def test_a_search_query_stays_on_screen_long_enough_to_be_read() -> None:
    scene = Scene()
    scene.tell('searching for "東京"')
    scene.tell("thinking")
    assert scene.drawn() == ['⠙ 0 s · searching for "東京"']
    scene.seconds += HOLD_SECONDS
    assert scene.drawn() == ["⠹ 1 s · thinking"]


def test_the_line_is_japanese_for_a_japanese_reader_and_fits() -> None:
    scene = Scene(columns=30, language="ja_JP.UTF-8")
    assert scene.drawn() == ["⠙ 0 s · 開始しています"]
    scene.tell(Sentence("searching for {queries}", queries='"東京の天気"'))
    scene.tell(Sentence("thinking"))
    assert scene.drawn() == ['⠹ 0 s · 検索しています: "東…']


def test_words_stand_below_the_line_as_they_come() -> None:
    scene = Scene()
    scene.tell("writing", "東京は")
    scene.tell("writing", "晴れ\n\x1b[2Jです")
    assert scene.drawn() == ["⠙ 0 s · writing", "東京は晴れ", "\\x1b[2Jです"]
    scene.tell("writing", "。")
    assert scene.drawn()[1:] == ["東京は晴れ", "\\x1b[2Jです。"]


def test_of_many_words_only_the_end_is_rendered() -> None:
    scene = Scene(columns=10, rows=3)
    given: list[str] = []

    def render(text: str, width: int) -> str:
        given.append(text)
        return text

    scene.view = LiveView(scene.terminal, lambda: scene.seconds, render, lambda: scene.size)
    scene.tell("writing", "x" * 100 + "\n" + "y" * 5 + "\nz")
    assert scene.drawn()[1:] == ["z"]
    scene.tell("writing", "w" * 100)
    scene.view.draw()
    assert given == ["yyyyy\nz", "w" * 36]


def test_the_answer_is_rendered_again_only_for_new_words_or_another_width() -> None:
    scene = Scene()
    given: list[str] = []

    def render(text: str, width: int) -> str:
        given.append(text)
        return text

    scene.view = LiveView(scene.terminal, lambda: scene.seconds, render, lambda: scene.size)
    for letter in "ab":
        scene.tell("writing", letter)
        scene.view.draw()
        scene.view.draw()
    assert given == ["a", "ab"]
    scene.size = os.terminal_size((40, 24))
    scene.view.draw()
    assert given == ["a", "ab", "ab"]


def test_words_before_another_text_are_not_the_answer() -> None:
    scene = Scene()
    scene.tell("writing", "Let me see.")
    scene.tell("writing")
    assert scene.drawn()[1:] == ["Let me see."]
    scene.tell("writing", "42")
    assert scene.drawn()[1:] == ["42"]


def test_only_the_line_is_shown_where_the_answer_goes_elsewhere() -> None:
    scene = Scene(renders=False)
    scene.tell("writing", "words")
    assert scene.drawn() == ["⠙ 0 s · writing"]


def test_the_view_is_never_higher_than_the_terminal() -> None:
    scene = Scene(rows=5)
    scene.tell("writing", "\n".join("abcdefgh"))
    assert scene.drawn() == ["⠙ 0 s · writing", "f", "g", "h"]
    low = Scene(rows=1)
    low.tell("writing", "words")
    assert low.drawn() == ["⠙ 0 s · writing"]


@pytest.mark.parametrize("rows", [1, 5])
def test_nothing_is_left_in_the_end(rows: int) -> None:
    scene = Scene(rows=rows)
    for letter in "abcdefgh":
        scene.tell("writing", f"{letter}\n\n")
        scene.view.draw()
    scene.view.wipe()
    scene.view.wipe()
    assert scene.seen() == [""]


def test_a_terminal_without_the_letters_gets_others() -> None:
    scene = Scene(encoding="ascii")
    scene.tell("東京")
    assert scene.drawn() == ["/ 0 s ? ??"]


def test_what_stood_above_stays_when_the_terminal_is_made_narrower() -> None:
    scene = Scene()
    link = "\x1b]8;id=1;https://example.com/an/address/that/is/long\x1b\\link\x1b]8;;\x1b\\"
    lines = f"\x1b[1m短い\x1b[0m\n{link}\n{'長' * 30}"
    scene.view = LiveView(scene.terminal, lambda: scene.seconds, lambda *_: lines, lambda: scene.size)
    scene.tell("writing", "words")
    scene.view.draw()
    scene.size = os.terminal_size((41, 24))
    before = len(scene.terminal.getvalue())
    scene.view.wipe()
    # The terminal has wrapped the last line alone: five rows, so four to go back.
    assert scene.terminal.getvalue()[before:] == "\r\x1b[4A\x1b[J"


def test_a_terminal_that_does_not_tell_its_size_is_taken_for_a_usual_one() -> None:
    scene = Scene(columns=0, rows=0)
    scene.tell("x" * 100)
    scene.view.draw()
    assert len(scene.terminal.getvalue()) == len("\r") + 79 + len("\x1b[J")

    def fail() -> os.terminal_size:
        raise OSError

    view = LiveView(scene.terminal, lambda: 0.0, None, fail)
    view.draw()
    assert scene.terminal.getvalue().endswith("⠙ 0 s · starting\x1b[J")


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
    ],
)
def test_a_view_needs_a_terminal_that_can_and_a_person_who_wants_it(environ: dict[str, str], expected: bool) -> None:
    assert is_lively(FakeTerminal(), environ) is expected
    assert is_lively(io.StringIO(), environ) is False


def test_a_message_wraps_at_words_on_a_terminal_and_its_command_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    said = ("put the question in quotes:", "program 'a question that is long'")
    assert fitted(said[0], FakeTerminal(), said[1]) == f"put the question\n  in quotes:\n  {said[1]}\n"
    assert fitted(said[0], io.StringIO(), said[1]) == f"{said[0]} {said[1]}\n"
