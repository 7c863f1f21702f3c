"""YAML text -> plain data, with the line of every key.

The text is read event by event, and limits apply while reading, so a huge file is never built in memory. Values follow
the core schema of YAML 1.2 (`yes` is text, `1_000` is text). Other tags are refused. So are aliases, because with them a
small file can describe a huge document.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError

from openai_responses_mcp.domain.texts import Sentence, without_surrogates

MAX_NODES = 10_000
MAX_DEPTH = 32

KeyPath = tuple[str | int, ...]


class YamlProblem(Exception):
    """The text is not valid YAML, or uses a feature that is refused. `line` counts from 1."""

    def __init__(self, line: int, text: Sentence) -> None:
        super().__init__(f"line {line}: {text}")
        self.line = line
        self.text = text


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """`data` is made of dict, list, str, int, float, bool and None; an empty document is None."""

    data: Any
    lines: dict[KeyPath, int]

    def line_of(self, path: KeyPath) -> int:
        """The line of a key. If the file does not contain it, the line of its nearest parent."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_yaml(text: str) -> YamlDocument:
    """Raises `YamlProblem`."""
    reading = _YamlReading(text)
    try:
        return reading.document()
    except ReaderError as exc:
        raise YamlProblem(
            text.count("\n", 0, exc.position) + 1, Sentence("a character that YAML does not allow")
        ) from exc
    except MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 1
        raise YamlProblem(line, Sentence("not valid YAML: {problem}", problem=exc.problem)) from exc
    except (AssertionError, OverflowError, ValueError) as exc:
        # ruamel raises these for an unknown %YAML version and for a \U escape out of range.
        raise YamlProblem(reading.last_line, Sentence("not valid YAML: {problem}", problem=exc)) from exc


class _YamlReading:
    def __init__(self, text: str) -> None:
        self._events: Iterator[Any] = YAML(typ="safe", pure=True).parse(text)
        self._lines: dict[KeyPath, int] = {}
        self._nodes = 0

    @property
    def last_line(self) -> int:
        return max(self._lines.values(), default=1)

    def document(self) -> YamlDocument:
        data, documents = None, 0
        for event in self._events:
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise YamlProblem(_line(event), Sentence("a second document (---) in one file"))
            elif isinstance(event, NodeEvent):
                data = self._node(event, ())
        return YamlDocument(data, self._lines)

    def _node(self, event: NodeEvent, path: KeyPath) -> Any:
        """The value that starts with this event."""
        if isinstance(event, AliasEvent):
            raise YamlProblem(
                _line(event), Sentence("the alias *{anchor} is not allowed: write its value out", anchor=event.anchor)
            )
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise YamlProblem(_line(event), Sentence("more than {most} values", most=MAX_NODES))
        if len(path) >= MAX_DEPTH:
            raise YamlProblem(_line(event), Sentence("nested deeper than {most} levels", most=MAX_DEPTH))
        return _READERS[type(event)](self, event, path)

    def _mapping(self, event: MappingStartEvent, path: KeyPath) -> dict[str, Any]:
        _require_tag(event, "map")
        mapping: dict[str, Any] = {}
        for key_event in self._until_end():
            key = self._key(key_event, path)
            mapping[key] = self._node(next(self._events), (*path, key))
        return mapping

    def _key(self, event: NodeEvent, path: KeyPath) -> str:
        if not isinstance(event, ScalarEvent):
            raise YamlProblem(_line(event), Sentence("a key that is not plain text"))
        _scalar_value(event)
        key: str = event.value
        if (*path, key) in self._lines:
            name = ".".join(map(str, (*path, key)))
            raise YamlProblem(
                _line(event),
                Sentence("{name} is there twice, first on line {line}", name=name, line=self._lines[(*path, key)]),
            )
        self._lines[(*path, key)] = _line(event)
        return key

    def _sequence(self, event: SequenceStartEvent, path: KeyPath) -> list[Any]:
        _require_tag(event, "seq")
        items: list[Any] = []
        for item_event in self._until_end():
            item_path = (*path, len(items))
            self._lines[item_path] = _line(item_event)
            items.append(self._node(item_event, item_path))
        return items

    def _until_end(self) -> Iterator[NodeEvent]:
        while not isinstance(event := next(self._events), CollectionEndEvent):
            yield event


_READERS: dict[type[NodeEvent], Callable[[_YamlReading, Any, KeyPath], Any]] = {
    MappingStartEvent: _YamlReading._mapping,
    SequenceStartEvent: _YamlReading._sequence,
    ScalarEvent: lambda reading, event, path: _scalar_value(event),
}

_TAG = "tag:yaml.org,2002:"

# The length is bounded because Python is slow with very long numbers, and refuses the longest.
_SCALARS: tuple[tuple[str, re.Pattern[str], Callable[[str], Any]], ...] = (
    ("null", re.compile(r"|~|null|Null|NULL"), lambda text: None),
    ("bool", re.compile(r"true|True|TRUE|false|False|FALSE"), lambda text: text.lower() == "true"),
    ("int", re.compile(r"[-+]?[0-9]{1,99}"), int),
    ("int", re.compile(r"0o[0-7]{1,99}"), lambda text: int(text, 8)),
    ("int", re.compile(r"0x[0-9a-fA-F]{1,99}"), lambda text: int(text, 16)),
    ("float", re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"), float),
    ("float", re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"), lambda text: float(text.replace(".", ""))),
)


def _scalar_value(event: ScalarEvent) -> Any:
    text: str = event.value
    if without_surrogates(text) != text:
        raise YamlProblem(_line(event), Sentence("an escape that stands for half a character"))
    is_quoted = event.tag is None and not event.implicit[0]
    if is_quoted or event.tag in ("!", f"{_TAG}str"):
        return text
    for name, pattern, read in _SCALARS:
        if event.tag in (None, _TAG + name) and pattern.fullmatch(text):
            return read(text)
    if event.tag is None:
        return text
    raise _foreign_tag(event)


def _require_tag(event: MappingStartEvent | SequenceStartEvent, name: str) -> None:
    if event.tag not in (None, "!", _TAG + name):
        raise _foreign_tag(event)


def _foreign_tag(event: MappingStartEvent | SequenceStartEvent | ScalarEvent) -> YamlProblem:
    return YamlProblem(
        _line(event), Sentence("the tag {tag} does not belong here", tag=str(event.tag).replace(_TAG, "!!"))
    )


def _line(event: Event) -> int:
    line: int = event.start_mark.line
    return line + 1
