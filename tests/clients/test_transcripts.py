"""The transcripts in the documentation are what the server says today."""

from tests.clients.transcripts import transcripts, written


def test_the_documented_transcripts_are_up_to_date() -> None:
    assert written() == transcripts(), "run `make transcripts`"
