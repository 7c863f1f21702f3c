"""Writes docs/reference/transcripts.md from real conversations: `make transcripts`.

The same conversations give the same text: what differs from run to run is replaced, and of several progress
notifications of a call the first one is shown, since how many there are depends on the machine.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.clients.scenes import SCENES, Scene, Turn, play
from tests.tools.docs.regions import replaced

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "transcripts.md"
LONGEST_TEXT = 90
INTRODUCTION = """\
Written by `make transcripts` from conversations with the real process, started with `--stdio --rehearse`; the tests
compare them with new ones, and hold every message against the types of its revision. `→` is what the client writes, `←`
what the server writes. `…` stands for what was cut: long texts, all tools but the first, schemas, numbers of tokens. Of
a call's progress only the first is shown. Ids of responses and tasks, and times, are made up; lengths are those of the
whole messages.
"""
_CUT = {"inputSchema": "{…}", "outputSchema": "{…}", "openai-responses-mcp/usage": "{…}"}
_RESPONSE_ID = re.compile(r"resp_[0-9a-f]{20,}")
_TASK_ID = re.compile(r"task_[A-Za-z0-9_-]{40,}")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T[0-9:.]+Z")
_PLACEHOLDER = re.compile(r'"(\{…\}|…)"')


def transcripts() -> str:
    return INTRODUCTION + "".join(map(_rendered, SCENES))


def page() -> str:
    """What should stand on the page."""
    return replaced(PAGE.read_text(encoding="utf-8"), "transcripts", transcripts())


def _rendered(scene: Scene) -> str:
    lines = [line for turn in _without_later_progress(play(scene)) for line in _lines(turn)]
    return "\n".join(["", f"### {scene.title}", "", scene.told, "", "```", *lines, "```", ""])


def _without_later_progress(turns: Sequence[Turn]) -> list[Turn]:
    return [turn for turn in turns if json.loads(turn.body).get("params", {}).get("progress", 1) == 1]


def _lines(turn: Turn) -> list[str]:
    arrow = "→" if turn.sender == "client" else "←"
    head = [f"{arrow} Content-Length: {len(turn.body)}", arrow] if turn.framing == "framed" else []
    return [*head, f"{arrow} {_shortened(turn.body)}"]


def _shortened(body: bytes) -> str:
    text = json.dumps(_cut(json.loads(body)), ensure_ascii=False, separators=(",", ":"))
    return _PLACEHOLDER.sub(r"\1", text)


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        text = _TASK_ID.sub("task_0a1b2c", _RESPONSE_ID.sub("resp_0a1b2c", value))
        text = _TIME.sub("2026-07-28T09:00:00.000Z", text)
        return text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "…"
    if isinstance(value, list):
        return [_cut(item) for item in value]
    if isinstance(value, dict):
        return {key: _CUT[key] if key in _CUT else _cut(_fewer(key, item)) for key, item in value.items()}
    return value


def _fewer(key: str, value: Any) -> Any:
    return [value[0], "…"] if key == "tools" and isinstance(value, list) else value


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
