"""A pause: what waits together."""

import re

from openai_responses_mcp.gate.approvals.tokens import Pause


def test_each_pause_has_an_id_of_its_own_and_begins_empty() -> None:
    first, second = Pause(), Pause()
    assert first.pause_id != second.pause_id
    assert re.fullmatch("pause_[0-9a-f]{32}", first.pause_id)
    assert (first.state_hash, first.records) == ("", [])
