"""Patterns on the engine inside pydantic, whose time grows only in proportion to the text.

Python's own engine tries again and again, and one careless pattern would let an argument keep it busy for hours. This
one knows no back references and no look-around; everything else is written the same way.
"""

from collections.abc import Callable

from openai_responses_mcp.domain.texts import without_surrogates
from openai_responses_mcp.gate.schema.patterns import Patterns


class LinearPatterns(Patterns):
    def compile(self, pattern: str) -> Callable[[str], bool]:
        # By itself first: a pattern such as `a)|(b` is complete only with the brackets below, and would escape from
        # them.
        _checker(pattern)
        is_match = _checker(rf"\A(?:{pattern})\z")
        return lambda text: is_match(without_surrogates(text))


def _checker(pattern: str) -> Callable[[str], bool]:
    # Only a policy with patterns pays for the import.
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")).isinstance_python
    except SchemaError as exc:
        raise ValueError(f"is not a pattern that can be used: {_last_words(str(exc))}") from exc


def _last_words(message: str) -> str:
    """The engine shows the pattern with a mark below the place, and says what is wrong on the last line."""
    return message.strip().splitlines()[-1].strip().removeprefix("error: ").removeprefix("SchemaError: ")
