"""What a person sees of the guard, as pictures: the form in the client, and the desk in a terminal.

The form is drawn from what the guard sends; each client shows it in its own way. The terminal is what the program prints
today, with fixed ids and times.
"""

import asyncio
import re
from dataclasses import replace
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from openai_responses_mcp.gate.sql.sql_stores import open_stores
from openai_responses_mcp.guard.questions import form_for
from tests.desk.page.asking import Asker
from tests.tools.docs.recording import on_terminal, terminal_picture

CLIENT, TERMINAL = "pictures/guard-client.svg", "pictures/guard-terminal.svg"
TITLE = "A request is listed, shown and approved in a terminal"

_SESSION = "guard_69e38ac29d9f180d"
_ID, _SHORT = "apr_9f27db6265734344b69d90e271d410c5", "9f27db"
_TIME = "20:28:14"
_PATH = "/path/to/notes/todo.md"
_REASON = "the policy file asks for a human (policy rule 2)"
_COLUMNS = 100
_LINE, _MARGIN = 20, 16


def pictures() -> dict[str, str]:
    """Path below docs -> what should stand there."""
    with TemporaryDirectory() as home:
        form, lines = asyncio.run(_asked(Path(home)))
    return {CLIENT: client_picture(form), TERMINAL: terminal_picture(lines, max(map(len, lines)), TITLE)}


async def _asked(home: Path) -> tuple[Any, list[str]]:
    folder = home / ".local" / "state" / "openai-responses-mcp"
    folder.mkdir(parents=True)
    stores = open_stores(f"sqlite:///{folder / 'guard.db'}")
    asker = Asker(stores, run_id=_SESSION, agent_name="")
    arguments = {"path": _PATH, "content": "buy milk\nbuy bread\n"}
    request = await asker.ask(
        arguments, reason=_REASON, name="files/write_file", description="Create or overwrite a file."
    )
    short = request.approval_id.removeprefix("apr_")[: len(_SHORT)]
    lines: list[str] = []
    for command in ("list", f"show {short}", f'approve {short} --comment "milk is enough"'):
        typed = f"openai-responses-mcp approvals {command}"
        # In a thread of its own: the program writes to the store that is open here.
        printed = await asyncio.to_thread(on_terminal, typed, str(home), _COLUMNS, 60)
        lines += [f"$ {typed}", *printed.rstrip().splitlines(), ""]
    text = "\n".join(lines[:-1]).replace(request.approval_id, _ID).replace(f" {short}", f" {_SHORT}")
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    text = re.sub(r"\d+ s ago", "3 s ago", re.sub(r"\d\d:\d\d:\d\d", _TIME, text))
    return form_for(replace(request, approval_id=_ID), "files"), text.splitlines()


# ---------------------------------------------------------------------------------------------------------------------
# Drawing


def client_picture(form: Any) -> str:
    fields = form["requestedSchema"]["properties"]
    message, choices = form["message"].splitlines(), fields["decision"]["enumNames"]
    drawn, at = [], 2 * _MARGIN
    for line in message:
        drawn.append(f'  <text class="message" x="{2 * _MARGIN}" y="{at + 12}">{escape(line, quote=False)}</text>')
        at += _LINE
    at += _MARGIN
    drawn.append(_label(fields["decision"]["title"], at))
    for choice in choices:
        at += 26
        drawn.append(f'  <circle class="field" cx="{2 * _MARGIN + 8}" cy="{at + 8}" r="7"/>')
        drawn.append(f'  <text x="{2 * _MARGIN + 26}" y="{at + 13}">{escape(choice)}</text>')
    at += 44
    drawn.append(_label(f"{fields['comment']['title']} ({fields['comment']['description'].lower()})", at))
    at += 10
    drawn.append(f'  <rect class="field" x="{2 * _MARGIN}" y="{at + 8}" width="640" height="32" rx="6"/>')
    at += 60
    for x, text, kind in ((2 * _MARGIN, "Accept", "accept"), (2 * _MARGIN + 112, "Decline", "field")):
        drawn.append(f'  <rect class="{kind}" x="{x}" y="{at}" width="100" height="34" rx="6"/>')
        drawn.append(f'  <text class="{kind}-text" x="{x + 50}" y="{at + 22}" text-anchor="middle">{text}</text>')
    at += 34 + 2 * _MARGIN
    style = [
        "    text { font: 15px system-ui, sans-serif; fill: #1f2328; white-space: pre; }",
        "    .message { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }",
        "    .label { font-weight: 600; }",
        "    .box { fill: #f6f8fa; stroke: #d0d7de; } .field { fill: #ffffff; stroke: #6e7781; }",
        "    .accept { fill: #0969da; } .accept-text { fill: #ffffff; }",
        "    @media (prefers-color-scheme: dark) {",
        "      text { fill: #e6edf3; } .box { fill: #161b22; stroke: #30363d; } .field { fill: #0d1117; stroke: #8b949e; }",
        "      .accept { fill: #1f6feb; }",
        "    }",
    ]
    box = f'  <rect class="box" x="8" y="8" width="{720 - 16}" height="{at - 16}" rx="10"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {at}" width="720" height="{at}" role="img">'
    title = "  <title>A form in the client asks whether write_file of the server files may run</title>"
    return "\n".join([head, title, "  <style>", *style, "  </style>", box, *drawn, "</svg>", ""])


def _label(text: str, at: int) -> str:
    return f'  <text class="label" x="{2 * _MARGIN}" y="{at + 12}">{escape(text)}</text>'
