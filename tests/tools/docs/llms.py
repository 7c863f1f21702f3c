"""docs/llms.txt: the pages with a sentence each, for models that look for the right one (https://llmstxt.org)."""

import re

from tests.tools.docs.site import DOCS, RAW, configuration, navigation, read

FILE = "llms.txt"
# A sentence, and the next one too where it is only a few words.
_OPENING = re.compile(r"(.{40,}?[.。]|.+)(?=\s|$)")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def llms_text() -> str:
    site = configuration()
    lines = [f"# {site['site_name']}", "", f"> {site['site_description']}", ""]
    lines += [
        "The command is `openai-responses-mcp --stdio`, the key is in `OPENAI_API_KEY`; `--rehearse` needs none.",
        "The guard is `openai-responses-mcp guard -- COMMAND`; it comes with the extra `guard` and needs no key.",
        "",
    ]
    section = None
    for entry in navigation():
        if entry.section != section:
            lines += [*([""] if section else []), f"## {entry.section}", ""]
            section = entry.section
        lines.append(f"- [{entry.title}]({RAW}docs/{entry.path}): {opening_of(read(DOCS / entry.path))}")
    return "\n".join(lines) + "\n"


def opening_of(page: str) -> str:
    """How a page begins, without its links."""
    paragraphs = (text.strip() for text in page.split("\n\n"))
    prose = next(text for text in paragraphs if text and not text.startswith(("#", "<!--", "```", "|", "-", "!", "[")))
    sentence = _OPENING.match(_LINK.sub(r"\1", " ".join(prose.split())))
    return sentence[1] if sentence else ""
