"""What `--ask` takes besides the question: tools and their arguments, JSON, stdin, and going on with an answer."""

import json
import os
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from openai_responses_mcp.cli import main
from tests.commands.test_ask import logging_as_before
from tests.e2e.client import COMMAND, WAIT_SECONDS, environment, run
from tests.stand_in.server import StandInThread

pytestmark = pytest.mark.slow

__all__ = ["logging_as_before"]


@pytest.fixture
def environ(rehearsal: StandInThread, tmp_path: Path) -> dict[str, str]:
    state = str(tmp_path / "state")
    return environment(tmp_path, OPENAI_BASE_URL=rehearsal.base_url, XDG_STATE_HOME=state, LOCALAPPDATA=state)


def asked(rehearsal: StandInThread) -> str:
    text: str = rehearsal.server.requests[-1].json["input"][0]["content"][0]["text"]
    return text


# Tools and their arguments


@pytest.mark.parametrize("options", [["--quick"], ["--tool", "answer_quick"]])
def test_a_tool_brings_its_profile(environ: dict[str, str], rehearsal: StandInThread, options: list[str]) -> None:
    assert main(["Why?", *options], environ | {"MODEL_QUICK": "gpt-5-mini"}) == 0
    assert rehearsal.server.requests[-1].json["model"] == "gpt-5-mini"


def test_arguments_of_the_tool_reach_the_model(environ: dict[str, str], rehearsal: StandInThread) -> None:
    options = ["--domains", "jma.go.jp, example.org", "--recency", "7", "--style", "bullets"]
    assert main(["Why?", *options], environ) == 0
    assert "recency_days=7, max_results=5. domains: jma.go.jp, example.org style: bullets today=" in asked(rehearsal)


# The result


def test_json_keeps_every_letter_and_steers_nothing(environ: dict[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    text = "東京\u3000a\u00a0b\u202e\x1bc\x9b"
    assert main([f"Why? [rehearse: text={text}]", "--json"], environ) == 0
    written = capfd.readouterr().out
    assert json.loads(written)["answer"] == text
    assert "東京\u3000a\u00a0b\\u202e\\u001bc\\u009b" in written


def test_json_is_whole_where_the_output_cannot_spell_it(environ: dict[str, str]) -> None:
    done = run(environ | {"PYTHONIOENCODING": "ascii"}, "--ask", "Why? [rehearse: text=東京]", "--json")
    assert json.loads(done.stdout)["answer"] == "東京"


def test_an_answer_is_never_changed(environ: dict[str, str]) -> None:
    text = "　東京　大阪\u00a0km 1\u202f000 👩\u200d💻 می\u200cخواهم\n\n* a_b_c * <b>\n   indented"
    done = run(environ, "--ask", f"Why? [rehearse: text=x\n{text}]")
    assert done.stdout.decode() == f"x\n{text}\n"


def test_an_incomplete_answer_is_shown_with_exit_three(
    environ: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["Why? [rehearse: outcome=incomplete; text=Because]"], environ) == 3
    assert capfd.readouterr() == (
        "[Incomplete: max_output_tokens] Because\n",
        "the answer is incomplete (max_output_tokens)\n",
    )


# Stdin


def test_the_question_can_come_from_stdin(environ: dict[str, str], rehearsal: StandInThread) -> None:
    assert run(environ, "--ask", "-", input="\ufeff  東京の天気は？\r\nくわしく\n".encode()).returncode == 0
    assert asked(rehearsal).startswith("東京の天気は？\nくわしく\n[Hints] ")


def test_a_question_from_an_empty_stdin_is_refused(environ: dict[str, str]) -> None:
    done = run(environ, "-", input=b" \n")
    assert (done.returncode, done.stderr) == (
        2,
        b"openai-responses-mcp: --ask needs a question, and stdin has none\n",
    )


MATERIAL = "Sum it up.\n\n[Material from stdin]\n一行目\n  two\n[End of material]\n[Hints] "


def test_text_from_a_pipe_is_material_to_the_question(environ: dict[str, str], rehearsal: StandInThread) -> None:
    assert run(environ, "Sum it up.", input="一行目\n  two\n".encode()).returncode == 0
    assert asked(rehearsal).startswith(MATERIAL)


def test_a_stdin_without_text_is_no_material(environ: dict[str, str], rehearsal: StandInThread) -> None:
    ours, theirs = socket.socketpair()
    terminal, end_of_terminal = os.openpty()
    try:
        for given in ({"input": b"\n \n"}, {"stdin": theirs}, {"stdin": end_of_terminal}):
            assert run(environ, "Why?", **given).returncode == 0
        closed = ["sh", "-c", 'exec "$@" <&-', "sh", *COMMAND, "Why?"]
        assert subprocess.run(closed, env=environ, capture_output=True, timeout=WAIT_SECONDS).returncode == 0
    finally:
        ours.close()
        theirs.close()
        os.close(terminal)
        os.close(end_of_terminal)
    for request in rehearsal.server.requests:
        assert request.json["input"][0]["content"][0]["text"].startswith("Why?\n[Hints] ")
    assert len(rehearsal.server.requests) == 4


def test_a_socket_that_says_something_is_read_to_its_end(environ: dict[str, str], rehearsal: StandInThread) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall("一行目\n  two\n".encode())
        ours.shutdown(socket.SHUT_WR)
        assert run(environ, "Sum it up.", stdin=theirs).returncode == 0
    assert asked(rehearsal).startswith(MATERIAL)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff\xfea\x00", "stdin is not UTF-8 text"),
        (b"x" * 1_100_000, "stdin has more than 1024 KiB: send less"),
    ],
)
def test_material_that_cannot_be_used_is_refused(environ: dict[str, str], data: bytes, reason: str) -> None:
    done = run(environ, "Why?", input=data)
    assert (done.returncode, done.stderr.decode()) == (2, f"openai-responses-mcp: {reason}\n")


def test_a_wrong_argument_does_not_wait_for_stdin(environ: dict[str, str]) -> None:
    reading, writing = os.pipe()
    try:
        assert run(environ, "Why?", "--recency=soon", stdin=reading).returncode == 2
    finally:
        os.close(reading)
        os.close(writing)


# Going on


def test_the_last_answer_is_continued_without_its_id(
    environ: dict[str, str], rehearsal: StandInThread, tmp_path: Path
) -> None:
    assert main(["Why?"], environ) == 0
    file = tmp_path / "state" / "openai-responses-mcp" / "last-answer"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    remembered = file.read_text()
    assert remembered.startswith("resp_")
    assert "Why" not in remembered
    assert main(["And why that?", "--continue"], environ) == 0
    assert rehearsal.server.requests[-1].json["previous_response_id"] == remembered.strip()
    assert file.read_text() != remembered


def test_a_rehearsal_goes_on_too(environ: dict[str, str]) -> None:
    assert run(environ, "なぜ空は青い？", "--rehearse").returncode == 0
    done = run(environ, "夕方は？", "--continue", "--rehearse")
    assert "この会話の前のご質問:「なぜ空は青い？」。" in done.stdout.decode()
    assert run(environ, "And without?", "--continue").returncode == 2


def test_a_place_that_cannot_be_written_costs_no_answer(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file in the place of a folder")
    assert run(environ, "Why?").returncode == 0


def test_without_kept_answers_there_is_nothing_to_continue(environ: dict[str, str], tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("request: {store: false}")
    done = run(environ, "Why?", "--continue", "resp_1", "--config", str(config))
    assert done.returncode == 2
    assert b"request.store is false" in done.stderr
