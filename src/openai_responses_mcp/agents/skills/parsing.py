"""Parses the text of a SKILL.md: front matter, headings in English or Japanese, fenced blocks, lists, names.

Headings inside fenced blocks are ignored, because instructions quote Markdown. The text is not trusted, so nothing here
takes more than linear time.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

INPUT_HEADINGS = frozenset({"input", "inputs", "parameters", "arguments", "入力", "引数", "パラメータ", "パラメーター"})
OUTPUT_HEADINGS = frozenset({"output", "outputs", "出力"})
EXAMPLE_HEADINGS = frozenset({"example", "examples", "usage examples", "例", "使用例", "利用例", "実行例", "サンプル"})
CONSTRAINT_HEADINGS = frozenset(
    {
        "constraint",
        "constraints",
        "limitations",
        "limits",
        "制約",
        "制約事項",
        "制約条件",
        "制限",
        "制限事項",
        "注意事項",
    }
)
OVERVIEW_HEADINGS = frozenset({"overview", "description", "summary", "概要", "説明"})
TAG_HEADINGS = frozenset({"tags", "keywords", "タグ", "キーワード"})

LONGEST_TOOL_NAME = 64
# The names that the introspection tools have on the wire.
RESERVED_SLUGS = frozenset({"list", "describe"})
MOST_HEADINGS = 1_000
LONGEST_KNOWN_HEADING = 100

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_BULLET = re.compile(r"\s*(?:[-*+・]|[0-9]{1,9}[.)])[ \t]+(.*\S)\s*|\s*・(.*\S)\s*")
_NUMBERING = re.compile(r"^[0-9]+(?:\.[0-9]+)*(?:[.)]\s*|\s+)")
_IN_BRACKETS = re.compile(r"\s*[(（【\[].*?[)）】\]]\s*")
_OF_A_SCHEMA = re.compile(r"\s*(?:json )?(?:schema|format|スキーマ|形式)$")


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced block; `title` is the heading or line that introduces it."""

    language: str
    text: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and everything below it, up to the next heading of its own rank."""

    rank: int
    title: str
    text: str

    @property
    def fences(self) -> list[Fence]:
        return list(_fences(self.text))


def split_front_matter(text: str) -> tuple[str | None, str]:
    """The YAML between two lines of three dashes at the top, and the rest. Without a second line, all is YAML."""
    text = text.removeprefix("\ufeff")
    lines = text.splitlines()
    if not lines or lines[0].rstrip() != "---":
        return None, text
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == "---":
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :]).strip()
    return "\n".join(lines[1:]), ""


def sections_of(text: str) -> list[Section]:
    lines = text.splitlines()
    headings = list(islice(_headings(lines), MOST_HEADINGS))
    sections: list[Section] = []
    for place, (number, rank, title) in enumerate(headings):
        end = next((later for later, other, _ in headings[place + 1 :] if other <= rank), len(lines))
        sections.append(Section(rank, title, "\n".join(lines[number + 1 : end]).strip()))
    return sections


def section_named(sections: list[Section], names: frozenset[str]) -> Section | None:
    return next((section for section in sections if _plain(section.title) in names), None)


def first_paragraph(text: str) -> str:
    """The first lines that are plain prose, joined into one."""
    prose: list[str] = []
    for line, is_fenced in _outside_fences(text.splitlines()):
        is_prose = bool(line.strip()) and not is_fenced and _heading(line) is None
        if is_prose:
            prose.append(line.strip())
        elif prose:
            break
    return " ".join(prose)


def list_items(text: str) -> list[str]:
    """Bullets and numbered points, or else the lines of prose."""
    lines = [line for line, is_fenced in _outside_fences(text.splitlines()) if not is_fenced and line.strip()]
    points = [found[1] or found[2] for found in map(_BULLET.fullmatch, lines) if found]
    return points or [line.strip() for line in lines if _heading(line) is None]


# ---------------------------------------------------------------------------------------------------------------------
# Names


def skill_id_for(name: str) -> str:
    """The same name always gives the same id: "Writer Skill" is writer-skill, 議事録 stays 議事録."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return "-".join(re.findall(r"[^\W_]+", folded))


def tool_name_for(skill_id: str) -> str:
    """`skill_` and the id in ASCII, with a short hash if that is not unique or too long."""
    slug = "_".join(re.findall(r"[a-z0-9]+", skill_id))
    name = f"skill_{slug}"
    is_whole = slug == skill_id.replace("-", "_") and slug not in RESERVED_SLUGS
    if is_whole and len(name) <= LONGEST_TOOL_NAME:
        return name
    mark = hashlib.sha256(skill_id.encode()).hexdigest()[:8]
    start = name[: LONGEST_TOOL_NAME - len(mark) - 1].rstrip("_")
    return f"{start}_{mark}"


# ---------------------------------------------------------------------------------------------------------------------


def _plain(title: str) -> str:
    """A heading without numbering, emphasis, brackets and the word schema."""
    if len(title) > LONGEST_KNOWN_HEADING:
        return ""
    title = unicodedata.normalize("NFKC", title).casefold().strip(" *_`:#")
    title = _IN_BRACKETS.sub("", _NUMBERING.sub("", title)).strip(" *_`:")
    return _OF_A_SCHEMA.sub("", title)


def _outside_fences(lines: list[str]) -> Iterator[tuple[str, bool]]:
    """Every line, and whether it belongs to a fenced block (including the fences)."""
    closing: str | None = None
    for line in lines:
        found = _FENCE.fullmatch(line)
        if closing is not None:
            yield line, True
            if found and found[1].startswith(closing) and not found[2].strip():
                closing = None
        elif found and not (found[1][0] == "`" and "`" in found[2]):
            closing = found[1]
            yield line, True
        else:
            yield line, False


def _heading(line: str) -> tuple[int, str] | None:
    """The rank and the title of a line that is a heading."""
    text = line.strip()
    rank = len(text) - len(text.lstrip("#"))
    rest = text[rank:]
    if not 1 <= rank <= 6 or line.startswith("    ") or not rest.startswith((" ", "\t")):
        return None
    title = rest.strip()
    unclosed = title.rstrip("#")
    return rank, unclosed.strip() if unclosed.endswith((" ", "\t")) else title


def _headings(lines: list[str]) -> Iterator[tuple[int, int, str]]:
    for number, (line, is_fenced) in enumerate(_outside_fences(lines)):
        found = None if is_fenced else _heading(line)
        if found:
            yield number, *found


def _fences(text: str) -> Iterator[Fence]:
    title, opened, inside = "", None, list[str]()
    for line, is_fenced in _outside_fences(text.splitlines()):
        found = _FENCE.fullmatch(line)
        if not is_fenced:
            if line.strip():
                heading = _heading(line)
                title = (heading[1] if heading else line).strip(" *_:：#-")
            continue
        if opened is None:
            opened, inside = found, []
        elif found and found[1].startswith(opened[1]) and not found[2].strip():
            yield Fence((opened[2].split() or [""])[0].casefold(), "\n".join(inside), title)
            opened = None
        else:
            inside.append(line)
