"""What the pages take from the program is what the program says today."""

import ast
from pathlib import Path

import pytest

from openai_responses_mcp.config.settings import key_paths
from openai_responses_mcp.domain.texts import columns
from tests.tools.docs import config_tables, guard_pictures, llms, recording
from tests.tools.docs.markdown import code_spans, tables
from tests.tools.docs.site import DOCS, ROOT, read
from tests.tools.docs.write import references

PACKAGE = ROOT / "src" / "openai_responses_mcp"


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
    shown = recording.transcript_of_cast(read(DOCS / recording.CAST))
    assert shown == recording.transcript(printed)
    assert read(DOCS / recording.CAST) == recording.cast(printed), "run `make references`"
    assert read(DOCS / recording.PICTURE) == recording.picture(printed), "run `make references`"
    assert " • Status of Python versions (https://devguide.python.org/versions/) (read on 2026-11-16)" in shown
    assert shown.count("continue with --continue\n") == len(recording.COMMANDS)
    assert max(map(columns, shown.splitlines())) <= recording.COLUMNS


def test_the_example_says_of_every_key_what_it_is_for() -> None:
    meanings = config_tables.meanings(read(config_tables.EXAMPLE))
    for path in (path for path in key_paths() if len(path) > 1):
        assert f"`{'.'.join(path)}`" in config_tables.table_of(path[0])
        assert config_tables.meaning_of(path, meanings), path


# What is written by hand, compared with the program


def variables_read_by(path: Path) -> set[str]:
    """Names in `environ.get("NAME")` and `environ["NAME"]`."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(read(path))):
        match node:
            case ast.Call(func=ast.Attribute(value=source, attr="get"), args=[ast.Constant(value=str(name)), *_]):
                names |= {name} if "environ" in ast.unparse(source) else set()
            case ast.Subscript(value=source, slice=ast.Constant(value=str(name))):
                names |= {name} if "environ" in ast.unparse(source) else set()
    return names


def test_every_variable_that_the_server_reads_is_in_the_reference() -> None:
    rooms = {PACKAGE / name for name in ("agents", "desk", "gate", "guard")}
    files = [path for path in PACKAGE.rglob("*.py") if rooms.isdisjoint(path.parents)]
    # The page about clients says where they keep their files.
    of_clients = PACKAGE / "commands" / "doctor" / "clients.py"
    found = {name for path in files if path != of_clients for name in variables_read_by(path)}
    assert {"MCP_LINE_MODE", "DEBUG", "APPDATA"} <= found
    page = set(code_spans(read(DOCS / config_tables.PAGE)))
    assert found - page - set(code_spans(read(DOCS / "telemetry.md"))) == set()
    assert {"OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE"} <= page


def test_every_promise_of_the_security_page_has_tests_that_exist() -> None:
    """One table, promise and test."""
    page = read(DOCS / "security.md")
    (table,) = tables(page)
    header, *rows = table
    assert header == ["promise", "test"]
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
