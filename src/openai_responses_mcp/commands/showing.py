"""An answer as it is written, once it is whole: rendered on a terminal, as it is into a pipe or a file, or as JSON.

The text itself is never changed. What would steer a terminal is made visible on one, and left out elsewhere.
"""

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence

from openai_responses_mcp.commands.live import is_lively
from openai_responses_mcp.domain.citations import split_sources
from openai_responses_mcp.domain.models import Answer, Citation
from openai_responses_mcp.domain.texts import harmless, harmless_json, one_line, visible
from openai_responses_mcp.server.tool_results import tool_result
from openai_responses_mcp.server.tools import Tool

INCOMPLETE = 3
# Rendering more than this takes too long, and is more than a terminal is good for.
MOST_RENDERED = 100_000
_DIM, _NOT_DIM = "\x1b[2m", "\x1b[0m"
_ADDRESS = re.compile(r"(?<!\]\()(?:<(?P<bracketed>https?://[^\s<>]+)>|(?P<plain>https?://\S+))", re.IGNORECASE)
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")


class Showing:
    """`remember` keeps the id of the answer for `--continue`, and says whether it could."""

    def __init__(
        self, tool: Tool, environ: Mapping[str, str], *, is_json: bool, remember: Callable[[str], bool]
    ) -> None:
        self.environ = environ
        self._tool = tool
        self._is_json = is_json
        self._remember = remember

    @property
    def is_rendered(self) -> bool:
        return not self._is_json and is_lively(sys.stdout, self.environ)

    def show(self, answer: Answer) -> int:
        """The exit code: 0, 1 when nothing can be written, 3 for an answer that is incomplete."""
        is_remembered = answer.response_id is not None and self._remember(answer.response_id)
        try:
            _write(self._text(answer))
        except BrokenPipeError:  # Who reads has read enough.
            return 0
        except OSError as exc:
            sys.stderr.write(f"cannot write the answer ({exc.strerror})\n")
            return 1
        if sys.stderr.isatty() and not self._is_json:
            self._write_footer(answer, is_remembered=is_remembered)
        if answer.incomplete_reason is None:
            return 0
        sys.stderr.write(f"the answer is incomplete ({one_line(answer.incomplete_reason)})\n")
        return INCOMPLETE

    def render(self, text: str, width: int) -> str:
        """Markdown as a terminal shows it."""
        # Here: only a terminal needs it, and it takes a while to load.
        from openai_responses_mcp.adapters.rich_markdown import rendered

        return rendered(text, width)

    def _text(self, answer: Answer) -> str:
        if self._is_json:
            return _json_of(tool_result(self._tool, answer)["structuredContent"])
        if not sys.stdout.isatty():
            return harmless(answer.text) + "\n"
        text = with_kinds_of_dates(visible(answer.text), answer.citations)
        if self.is_rendered and len(text) <= MOST_RENDERED:
            return self.render(with_titles(text, answer.citations), _terminal_width())
        return text + "\n"

    def _write_footer(self, answer: Answer, *, is_remembered: bool) -> None:
        text = one_line(footer(answer, is_remembered=is_remembered))
        is_dim = is_lively(sys.stderr, self.environ)
        sys.stderr.write(f"\n{_DIM}{text}{_NOT_DIM}\n" if is_dim else f"\n{text}\n")


def footer(answer: Answer, *, is_remembered: bool) -> str:
    facts = [_counted(answer.search_count, "search", "searches")]
    if answer.usage:
        facts.append(_counted(answer.usage.total_tokens, "token", "tokens"))
    if answer.response_id:
        facts.append(f"continue with --continue{'' if is_remembered else f' {answer.response_id}'}")
    return " · ".join(facts)


def with_kinds_of_dates(text: str, citations: Sequence[Citation]) -> str:
    """The text with the dates in its last section as what they are: when a source was published, or when it was read."""
    body, section = split_sources(text)
    lines = []
    for line in section:
        # The longest first: one address may be the beginning of another.
        cited = sorted((one for one in citations if one.url in line), key=lambda one: len(one.url))
        if cited:
            said = "published" if cited[-1].date_kind == "published" else "read on"
            line = line.replace(f"({cited[-1].published_at})", f"({said} {cited[-1].published_at})")
        lines.append(line)
    return "\n".join([body, *lines]) if lines else text


def with_titles(text: str, citations: Sequence[Citation]) -> str:
    """The text with the sources in its last section as links with their titles, in Markdown."""
    body, section = split_sources(text)
    titles = {citation.url: citation.title for citation in citations if citation.title}
    lines = [_with_title(line, titles) for line in section]
    return "\n".join([body, *lines]) if lines else text


def _with_title(line: str, titles: Mapping[str, str]) -> str:
    """A link that the model wrote stays as it is, and so does a source id, which is no address."""
    address = _ADDRESS.search(line)
    url = (address["bracketed"] or address["plain"]) if address else ""
    if address is None or url not in titles:
        return line
    title = _PUNCTUATION.sub(r"\\\1", one_line(titles[url]))
    link = f"[{title}](<{url.replace('<', '%3C').replace('>', '%3E')}>)"
    return line[: address.start()] + link + line[address.end() :]


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _json_of(value: object) -> str:
    text = harmless_json(json.dumps(value, ensure_ascii=False, indent=2))
    encoding = sys.stdout.encoding
    is_spelled = text.encode(encoding, "replace").decode(encoding) == text
    return (text if is_spelled else json.dumps(value, indent=2)) + "\n"


def _terminal_width() -> int:
    import shutil

    return shutil.get_terminal_size().columns


def _write(text: str) -> None:
    # Not every output can spell every letter: a pipe on Windows has the code page of the system.
    encoding = sys.stdout.encoding
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()
