"""The transcripts in the documentation are what the server says today."""

import pytest

from tests.tools.transcripts import transcripts, written

pytestmark = pytest.mark.slow


def test_the_documented_transcripts_are_up_to_date() -> None:
    assert written() == transcripts(), "run `make transcripts`"
