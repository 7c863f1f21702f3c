"""What the pages take from the program is what the program says today."""

import ast

import pytest

from openai_responses_mcp.config.settings import key_paths
from tests.tools.docs import config_tables, guard_pictures, llms, recording
from tests.tools.docs.markdown import code_spans, tables
from tests.tools.docs.site import DOCS, ROOT, read
from tests.tools.docs.write import references


@pytest.mark.parametrize("path", references())
def test_a_reference_is_up_to_date(path: str) -> None:
    assert read(DOCS / path) == references()[path], "run `make references`"


def test_the_list_for_models_is_up_to_date() -> None:
    assert read(DOCS / llms.FILE) == llms.llms_text(), "run `make references`"


def test_the_pictures_show_what_the_program_shows_today() -> None:
    for path, picture in guard_pictures.pictures().items():
        assert read(DOCS / path) == picture, "run `make references`"


def test_the_recording_shows_what_the_commands_print_today() -> None:
    printed = recording.answers()
    assert read(DOCS / recording.CAST) == recording.cast(printed), "run `make references`"
    assert read(DOCS / recording.PICTURE) == recording.picture(printed), "run `make references`"


def test_the_example_says_of_every_key_what_it_is_for() -> None:
    meanings = config_tables.meanings(read(config_tables.EXAMPLE))
    for path in (path for path in key_paths() if len(path) > 1):
        assert f"`{'.'.join(path)}`" in config_tables.table_of(path[0])
        assert config_tables.meaning_of(path, meanings), path


def test_every_promise_of_the_security_page_has_tests_that_exist() -> None:
    """One table, promise and test."""
    page = read(DOCS / "security.md")
    (table,) = tables(page)
    _, *rows = table
    assert len(rows) >= 20
    for promise, shown_by in rows:
        named = code_spans(shown_by)
        assert named, promise
        for name in named:
            file, _, function = name.partition("::")
            tree = ast.parse(read(ROOT / file))
            known = [one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
            assert function.startswith("test_"), name
            assert function in known, name
