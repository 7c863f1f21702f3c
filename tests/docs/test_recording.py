"""The recording is what the commands leave on a terminal today."""

from openai_responses_mcp.domain.texts import columns
from tests.tools.docs import recording
from tests.tools.docs.site import DOCS, read


def test_the_recording_shows_what_the_commands_print_today() -> None:
    printed = recording.answers()
    assert recording.transcript_of_cast(read(DOCS / recording.CAST)) == recording.transcript(printed)
    assert read(DOCS / recording.CAST) == recording.cast(printed), "run `make references`"
    assert read(DOCS / recording.PICTURE) == recording.picture(printed), "run `make references`"


def test_the_recording_shows_an_answer_as_a_terminal_does() -> None:
    shown = recording.transcript_of_cast(read(DOCS / recording.CAST))
    assert " • Status of Python versions (https://devguide.python.org/versions/) (read on 2026-11-16)" in shown
    assert shown.count("continue with --continue\n") == len(recording.COMMANDS)
    assert max(map(columns, shown.splitlines())) <= recording.COLUMNS
