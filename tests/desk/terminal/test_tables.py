"""Tables and the width of a terminal."""

from openai_responses_mcp.desk.terminal.tables import table
from openai_responses_mcp.domain.texts import columns

HEADINGS = ("APPROVAL", "TOOL", "REASON")
ROW = ("apr_0123456789", "mcp:files/書く", "the policy file asks for a human")


def test_a_wide_terminal_shows_a_row_on_one_line() -> None:
    assert table(HEADINGS, [ROW], 80).splitlines() == [
        "APPROVAL        TOOL            REASON",
        "apr_0123456789  mcp:files/書く  the policy file asks for a human",
    ]


def test_only_the_last_column_is_cut() -> None:
    assert table(HEADINGS, [ROW], 50).splitlines()[1] == "apr_0123456789  mcp:files/書く  the policy file a…"


def test_what_does_not_fit_goes_on_in_the_next_line() -> None:
    assert table(HEADINGS, [ROW, ("apr_1", "a", "b")], 36).splitlines() == [
        "APPROVAL        TOOL",
        "  REASON",
        "apr_0123456789  mcp:files/書く",
        "  the policy file asks for a human",
        "apr_1           a",
        "  b",
    ]


def test_no_line_is_wider_than_the_terminal() -> None:
    for width in range(18, 100):
        assert max(map(columns, table(HEADINGS, [ROW], width).splitlines())) <= width
