"""The tool that runs the SDK's own tests here: what it does to their imports, and the lists it keeps."""

from tests.tools.sdk_tests.run import NOT_LOOKED_AT, missing_rows, read_differences, read_names
from tests.tools.sdk_tests.swapping import swapped

EXPORTED = frozenset({"Agent", "Runner"})


def test_names_from_the_top_of_the_sdk_are_swapped_and_others_stay() -> None:
    source = "from agents import Agent, _debug\nfrom agents.run import (\n    Runner as R,\n    DEFAULT,\n)\nimport agents\nx = 1\n"
    assert swapped(source, EXPORTED).splitlines() == [
        "from openai_responses_mcp.agents import Agent; from agents import _debug",
        "from openai_responses_mcp.agents import Runner as R; from agents.run import DEFAULT",
        "",
        "",
        "",
        "import openai_responses_mcp.agents as agents",
        "x = 1",
    ]


def test_every_difference_is_one_of_the_tests_and_is_listed_once() -> None:
    listed = [name for difference in read_differences() for name in difference.tests]
    assert set(listed) <= set(read_names())
    assert len(listed) == len(set(listed))


def test_every_difference_that_was_looked_at_has_a_row_in_the_docs() -> None:
    differences = read_differences()
    assert all(each.row for each in differences if each.reason != NOT_LOOKED_AT)
    assert missing_rows(differences) == []
