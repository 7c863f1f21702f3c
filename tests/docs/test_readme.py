"""README and help name the same things, and the Japanese page has the same parts."""

import json
import re

from openai_responses_mcp.commands.usage import HELP
from tests.tools.docs.markdown import Block, blocks, code_spans, headings, tables
from tests.tools.docs.site import DOCS, README, REPOSITORY, ROOT, read

TWIN = DOCS / "README.ja.md"
ENGLISH, JAPANESE = read(README), read(TWIN)
COMMENT = re.compile(r"\s+# .*$", re.MULTILINE)


def test_the_registry_finds_the_name_of_the_server() -> None:
    owner, name = REPOSITORY.split("/")[-2:]
    assert re.findall(r"mcp-name: (\S+)", ENGLISH) == [f"io.github.{owner}/{name}"]
    assert json.loads(read(ROOT / "config" / "dist" / "server.json"))["name"] == f"io.github.{owner}/{name}"


def test_every_option_of_the_command_line_is_on_the_page_about_the_terminal() -> None:
    options = set(re.findall(r"--[a-z-]+", HELP))
    assert len(options) > 10
    named = set(re.findall(r"--[a-z-]+", " ".join(code_spans(read(DOCS / "terminal.md")))))
    assert options - named == set()


# The twin


def commands(block: Block) -> str:
    """A block without its comments."""
    return COMMENT.sub("", block.text) if block.language in ("sh", "py") else block.text


def test_the_twin_has_the_same_headings_commands_and_tables() -> None:
    japanese, english = (
        (
            [one.level for one in headings(page)],
            [(one.language, commands(one)) for one in blocks(page)],
            [[len(row) for row in table] for table in tables(page)],
        )
        for page in (JAPANESE, ENGLISH)
    )
    assert japanese == english
