"""The lines of the doctor's report."""

import sys
from typing import NamedTuple

from openai_responses_mcp.domain.texts import one_line

NOT_SET_UP = "--"


class Line(NamedTuple):
    """`level` is ok, warn, FAIL or `NOT_SET_UP`; only what was checked and found well is ok."""

    level: str
    what: str
    detail: str


def write(line: Line) -> None:
    text = one_line(f"{line.level:<6}{line.what}: {line.detail}")
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    sys.stdout.flush()
