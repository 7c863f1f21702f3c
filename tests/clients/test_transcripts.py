"""The transcripts in the documentation are what the server says today."""

import pytest

from tests.tools.transcripts import PAGE, page

pytestmark = pytest.mark.slow


def test_the_documented_transcripts_are_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make transcripts`"
