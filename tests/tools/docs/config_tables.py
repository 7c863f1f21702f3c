"""The tables of docs/reference/config-reference.md: a row for each key of the settings.

Type, limits, default and variable come from the settings. What a key is for is said once, in the comment beside it in
config/config.yaml.example.
"""

import re
from collections.abc import Iterator
from typing import Any, get_args, get_origin

from openai_responses_mcp.config.loading import VARIABLES
from openai_responses_mcp.config.settings import (
    BACKGROUND_BY_DEFAULT,
    ModelProfiles,
    Settings,
    is_section,
    key_paths,
    kind_at,
    wanted,
)
from tests.tools.docs.markdown import table_row
from tests.tools.docs.site import ROOT, read

EXAMPLE = ROOT / "config" / "config.yaml.example"
PAGE = "reference/config-reference.md"
SECTIONS = Settings._fields

Meanings = dict[tuple[str, ...], str]

_HEAD = "| key | type | default | variable, flag | what it is for |\n| --- | --- | --- | --- | --- |\n"
_FLAGS = {
    ("model_profiles", "answer", "model"): "`--model`",
    ("server", "debug"): "`DEBUG`, `--debug`",
    ("server", "debug_file"): "`DEBUG`, `--debug <path>`",
}
_LINE = re.compile(r"^(?P<indent> *)(?P<off># )?(?P<deeper> *)(?P<key>[a-z_]+):(?P<value>[^#]*)(?:# (?P<words>.*))?$")
_MORE_WORDS = re.compile(r"^ *#? +# (?P<words>.*)$")


def table_of(section: str) -> str:
    """A row for each key. What the profiles have in common is one row, with the key of each of them."""
    words = meanings(read(EXAMPLE))
    alike: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for path in key_paths():
        if path[0] == section and len(path) > 1:
            alike.setdefault(path[2:] if section == "model_profiles" else path, []).append(path)
    return _HEAD + "".join(_row(paths, words) for paths in alike.values())


def _row(paths: list[tuple[str, ...]], words: Meanings) -> str:
    keys = ", ".join(f"`{'.'.join(path)}`" for path in paths)
    defaults = _default(paths[0])
    others = {path[1]: default for path in paths[1:] if (default := _default(path)) != defaults}
    if len({*others.values()}) == 1 and len(others) == len(paths) - 1:
        others = {"the others": next(iter(others.values()))}
    defaults += "".join(f"; {name}: {default}" for name, default in others.items())
    variables = ", ".join(filter(None, map(_variable, paths)))
    return (
        table_row(keys, _type(kind_at(paths[0])), defaults.removeprefix("; "), variables, meaning_of(paths[0], words))
        + "\n"
    )


def _type(kind: Any) -> str:
    bare = get_args(kind)[0] if hasattr(kind, "__metadata__") else kind
    if is_section(bare):
        return "mapping"
    if get_origin(bare) is tuple:
        limits = "".join(f", {rule.words}" for rule in getattr(kind, "__metadata__", ()))
        return f"list of {_type(get_args(bare)[0])}{limits}"
    words = wanted(kind).removeprefix("a ").removesuffix(" that is not blank").removeprefix("text that is an ")
    return ", ".join(f"`{name}`" for name in words[7:].split(", ")) if words.startswith("one of ") else words


def _default(path: tuple[str, ...]) -> str:
    if path[0] == "model_profiles" and path[1] != "answer":
        return _default_of_profile(path)
    value: Any = Settings()
    for name in path:
        value = getattr(value, name, None)
    return "" if is_section(value) else _spelled(value)


def _default_of_profile(path: tuple[str, ...]) -> str:
    if path[-1] == "background":
        return _spelled(path[1] in BACKGROUND_BY_DEFAULT)
    return "absent" if len(path) == 2 else "that of `answer`"


def _spelled(value: Any) -> str:
    if value is None:
        return "absent"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"`{value}`"
    if isinstance(value, tuple):
        return f"`[{', '.join(value)}]`"
    return "`{}`" if value == {} else str(value)


def _variable(path: tuple[str, ...]) -> str:
    names = [f"`{name}`" for name, key in VARIABLES.items() if key == path]
    return ", ".join([*names, *filter(None, [_FLAGS.get(path)])])


def meaning_of(path: tuple[str, ...], words: Meanings) -> str:
    """A key of a profile means the same in each of them, and the example says it once."""
    if path not in words and path[0] == "model_profiles":
        others = ((path[0], name, *path[2:]) for name in ModelProfiles._fields)
        return next((words[other] for other in others if other in words), "")
    return words.get(path, "")


def meanings(example: str) -> Meanings:
    """What the example says of each key; keys that are commented out count as well."""
    found: Meanings = {}
    for path, words in _keys_with_words(example.splitlines()):
        if words:
            found[path] = f"{found[path]} {words}" if path in found else words
    return found


def _keys_with_words(lines: list[str]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The path of each key with the comment behind it; what goes on in the next line comes with the same path."""
    above: list[tuple[int, str]] = []
    for line in lines:
        if found := _LINE.match(line):
            depth = len(found["indent"]) + len(found["deeper"])
            above = [(other, key) for other, key in above if other < depth] + [(depth, found["key"])]
        else:
            found = _MORE_WORDS.match(line)
        if found and above:
            yield tuple(key for _, key in above), found["words"] or ""
