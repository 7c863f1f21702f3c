"""Markdown for a terminal, with rich. Marks become styles and links can be clicked, but no text is lost.

Other Markdown renderers drop more than marks: line breaks, HTML, pictures, link addresses and definitions, the space at
the start of a Japanese paragraph, and text that is too wide for a column. This one keeps all of it.
"""

import re
from collections.abc import Iterator
from io import StringIO

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown, TableElement

from openai_responses_mcp.domain.texts import visible

# The parser would strip these blanks at the ends of a line. So they are replaced by characters that Unicode never
# assigns, and put back after parsing.
_BLANKS = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_TO_PLACEHOLDER = {ord(blank): 0xFDD0 + place for place, blank in enumerate(_BLANKS)}
_FROM_PLACEHOLDER = {stand_in: blank for blank, stand_in in _TO_PLACEHOLDER.items()}
_DEEPEST = 100  # Deeper text is lost. Nested lists soon reach the parser's own limit.
_TRAILING_BLANKS = re.compile(r" +$", re.MULTILINE)

# Japanese and Chinese have no blanks between words, but rich breaks lines only at blanks. So this blank without width is
# put between such letters. The text itself cannot contain it: control characters are made visible first.
_BREAK = "\x1f"
_IDEOGRAPHIC = "\u2e80-\u2fff\u3001-\u30ff\u3400-\u9fff\uf900-\ufaff\uff01-\uff9f\U00020000-\U0003ffff"
# Characters that must not begin a line, and those that must not end one.
_NOT_FIRST = r"\])},.:;!?%’”…‥、。，．・：；？！％ー〜々ゝヽ゛゜」』）］｝〉》】〕ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮ\u3099\u309a\ufe00-\ufe0f"
_NOT_LAST = r"\[({‘“「『（［｛〈《【〔"
_BREAKABLE = re.compile(
    rf"(?<=[{_IDEOGRAPHIC}])(?<![{_NOT_LAST}])(?=[^\s{_NOT_FIRST}])|(?<=[^\s{_NOT_LAST}])(?=[{_IDEOGRAPHIC}])(?![{_NOT_FIRST}])"
)


def rendered(text: str, width: int) -> str:
    """Lines of at most `width` columns, with escape sequences. The last one ends with a newline."""
    file = StringIO()
    console = Console(
        file=file, force_terminal=True, width=width, legacy_windows=False, highlight=False, markup=False, emoji=False
    )
    console.print(_FaithfulMarkdown(text))
    return _TRAILING_BLANKS.sub("", file.getvalue().replace(_BREAK, "")).strip("\n") + "\n"


class _LeftHeading(Heading):
    LEVEL_ALIGN = {}  # noqa: RUF012 -- declared so by rich; empty means left


class _FoldedTable(TableElement):
    """A word that is wider than its column goes on in the next line; rich would cut it off."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = [self.header.row] if self.header and self.header.row else []
        for row in [*rows, *(self.body.rows if self.body else [])]:
            for cell in row.cells:
                cell.content.overflow = "fold"
        yield from super().__rich_console__(console, options)


class _FaithfulMarkdown(Markdown):
    elements = {**Markdown.elements, "heading_open": _LeftHeading, "table_open": _FoldedTable}  # noqa: RUF012 -- as above

    def __init__(self, text: str) -> None:
        super().__init__("", code_theme="ansi_dark")
        parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST}).enable(["strikethrough", "table"])
        parser.disable(["entity", "html_block", "html_inline", "image", "reference"])
        self.parsed = parser.parse(text.translate(_TO_PLACEHOLDER))
        _restore(self.parsed)


def _restore(tokens: list[Token]) -> None:
    """Restore the blanks, and add each address once, after the last link to it."""
    flat = [token for block in tokens for token in (block, *(block.children or []))]
    for token in flat:
        # Done after parsing, which can turn an escape into a control character.
        token.content = visible(token.content.translate(_FROM_PLACEHOLDER))
        token.type = "hardbreak" if token.type == "softbreak" else token.type
    last = {_address(token): token for token in flat if token.type == "link_open"}
    for token in tokens:
        token.children = list(_with_addresses(token.children, last)) if token.children else token.children
        for text in token.children or []:
            text.content = _BREAKABLE.sub(_BREAK, text.content)


def _with_addresses(tokens: list[Token], last: dict[str, Token]) -> Iterator[Token]:
    opened, title = Token("", "", 0), ""
    for token in tokens:
        title += token.content
        yield token
        if token.type == "link_open":
            opened, title = token, ""
        elif token.type == "link_close" and last[_address(opened)] is opened:
            address = _address(opened)
            if address.removeprefix("mailto:") != title:
                yield Token("text", "", 0, content=f" ({address})")


def _address(token: Token) -> str:
    return str(token.attrs.get("href", "")).translate(_FROM_PLACEHOLDER)
