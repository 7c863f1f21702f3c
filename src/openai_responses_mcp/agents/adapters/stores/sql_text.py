"""Texts that every database takes, whatever is in them.

PostgreSQL refuses NUL, and no database takes half a surrogate pair. Both can stand in what models, judges and people
write. Such a character is kept as DLE and four hexadecimal digits, and DLE itself likewise, so that each text comes
back as it was. Any other text is kept as it is.
"""

import re
from typing import Any

from sqlalchemy import Dialect, Text
from sqlalchemy.types import TypeDecorator

_DLE = "\x10"
_TROUBLE = re.compile("[\x00\x10\ud800-\udfff]")
_ESCAPED = re.compile(f"{_DLE}([0-9a-f]{{4}})")


def storable(text: str) -> str:
    if text.isprintable():  # neither of them is
        return text
    return _TROUBLE.sub(lambda found: f"{_DLE}{ord(found[0]):04x}", text)


def restored(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if _DLE in text else text


class AnyText(TypeDecorator[str]):
    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else storable(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        # SQLite keeps what it is given: whoever writes by hand can put a number into a column of texts.
        return restored(value) if isinstance(value, str) else value
