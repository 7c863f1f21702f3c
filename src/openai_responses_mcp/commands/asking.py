"""`--ask` and `--fetch`: ask a question or fetch an answer in the terminal, under the same rules as a client's call.

Text from a pipe or a file is added to the question as material. A terminal or a silent socket is not waited for: agents
and editors often start a command with a socket on stdin and never write to it.
"""

import os
import select
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from openai_responses_mcp.adapters.bounded_file import read_text
from openai_responses_mcp.commands.showing import Showing, show_answer
from openai_responses_mcp.commands.usage import TOOLS as NAMES
from openai_responses_mcp.commands.words import Say, speaking
from openai_responses_mcp.config.loading import Configuration
from openai_responses_mcp.domain.errors import InvalidArguments
from openai_responses_mcp.domain.models import Answer, ProgressListener, Question
from openai_responses_mcp.domain.texts import Sentence, linked, without_surrogates
from openai_responses_mcp.server.tools import RESULT_TOOL, TOOLS, Tool, read_question
from openai_responses_mcp.start import basis_of

if TYPE_CHECKING:
    from openai_responses_mcp.container import Container


FROM_STDIN = "-"

# Option -> the argument of a tool that it sets.
_ARGUMENTS = {
    "--recency": "recency_days",
    "--domains": "domains",
    "--style": "style",
    "--continue": "previous_response_id",
}


class Unaskable(Exception):
    """The question cannot be asked. The message says why, on one line."""


class Inquiry(NamedTuple):
    """The question and its options on the command line. `continues` is an id, or empty for the last answer."""

    question: str
    tools: tuple[str, ...] = ()
    continues: str | None = None
    domains: str | None = None
    recency: str | None = None
    style: str | None = None


_MOST_REMEMBERED_BYTES = 64 * 1024


class LastAnswer:
    """The last answer in the terminal, remembered so that `--continue` needs no id. Only its owner can read the file.

    In a rehearsal, the stand-in ends with the command and keeps nothing. So the question is remembered too, in a separate
    file, and given to the next stand-in.
    """

    def __init__(self, environ: Mapping[str, str], *, rehearses: bool, platform: str = sys.platform) -> None:
        self._keeps_question = rehearses
        name = "last-rehearsal" if rehearses else "last-answer"
        self.path = os.path.join(_state_folder(environ, platform), "openai-responses-mcp", name)

    def maybe_recall(self) -> str | None:
        response_id, _ = self._read()
        return response_id if response_id.startswith("resp_") else None

    def rehearsed(self) -> dict[str, str]:
        """The id and the question of the last rehearsal, for the stand-in."""
        response_id, question = self._read()
        return {response_id: question} if self._keeps_question and response_id else {}

    def remember(self, response_id: str, question: str) -> bool:
        """True if the file was written. A failure is no error: the answer is shown anyway."""
        text = f"{response_id}\n{question if self._keeps_question else ''}"
        beside = f"{self.path}.{os.getpid()}"
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(without_surrogates(text).encode())
            os.replace(beside, self.path)
        except OSError:
            with suppress(OSError):
                os.remove(beside)
            return False
        return True

    def _read(self) -> tuple[str, str]:
        try:
            response_id, _, question = read_text(self.path, most_bytes=_MOST_REMEMBERED_BYTES).partition("\n")
        except (OSError, ValueError):
            return "", ""
        return response_id.strip(), question


def _state_folder(environ: Mapping[str, str], platform: str) -> str:
    if platform == "win32" and environ.get("LOCALAPPDATA"):
        return environ["LOCALAPPDATA"]
    stated = environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(stated):
        return stated
    return os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".local", "state")


def tool_of(inquiry: Inquiry) -> Tool:
    """Raises `Unaskable`."""
    chosen = list(dict.fromkeys(inquiry.tools)) or [NAMES[0]]
    if len(chosen) > 1:
        raise Unaskable(Sentence("choose one tool (found {tools})", tools=linked("{first} and {second}", chosen)))
    if chosen[0] not in NAMES:
        raise Unaskable(
            Sentence(
                "{option} must be one of {names} (found {found})",
                option="--tool",
                names=", ".join(NAMES),
                found=chosen[0],
            )
        )
    return TOOLS[chosen[0]]


def question_of(
    inquiry: Inquiry, tool: Tool, last_answer: LastAnswer, say: Say = str, *, keeps_responses: bool
) -> Question:
    """Reads stdin if there is anything to read. Raises `Unaskable`."""
    # Arguments are renamed to their flags, so that error messages name the flags.
    flags = {name: flag for flag, name in _ARGUMENTS.items()}
    named = (argument._replace(name=flags.get(argument.name, argument.name)) for argument in tool.arguments)
    spelled = tool._replace(arguments=tuple(named))
    values = {
        "--recency": inquiry.recency,
        "--domains": None if inquiry.domains is None else inquiry.domains.split(","),
        "--style": inquiry.style,
        "--continue": _continued(inquiry.continues, last_answer),
    }
    given = {flag: value for flag, value in values.items() if value is not None}
    taken = [argument.name for argument in spelled.arguments]
    for flag in given:
        if flag not in taken:
            raise Unaskable(Sentence("{tool} does not take {option}", tool=tool.name, option=flag))
    if "--continue" in given and not keeps_responses:
        raise Unaskable(
            Sentence("--continue cannot be used: request.store is false, so the API keeps no answers to continue")
        )
    try:
        # Check before reading stdin to EOF, so that other mistakes are reported at once.
        question = read_question(spelled, {"query": inquiry.question, **given})
        return replace(question, text=_text(inquiry.question, say))
    except InvalidArguments as exc:
        raise Unaskable(exc.sentence) from exc


def _continued(wanted: str | None, last_answer: LastAnswer) -> str | None:
    if wanted is None or wanted:
        return wanted
    response_id = last_answer.maybe_recall()
    if response_id is None:
        raise Unaskable(Sentence("there is no earlier answer to continue; name one: --continue resp_..."))
    return response_id


def _text(question: str, say: Say) -> str:
    """The question, followed by the material from stdin. Raises `Unaskable`."""
    if question == FROM_STDIN:
        text = whole_input(say).strip()
        if not text:
            raise Unaskable(Sentence("--ask needs a question, and stdin has none"))
        return text
    material = maybe_material(say)
    if not material:
        return question
    return f"{question}\n\n[Material from stdin]\n{material}\n[End of material]"


MOST_BYTES = 1024 * 1024
SOCKET_SECONDS = 0.2
# After this long we say what we are waiting for.
PATIENCE_SECONDS = 1.0
_STDIN = 0


def whole_input(say: Say) -> str:
    """Read stdin to EOF. Raises `Unaskable`."""
    if sys.stdin is None:
        return ""
    if sys.stdin.isatty():
        _tell(say, Sentence("Type the question, then Ctrl-D (Ctrl-Z and Enter on Windows)."))
    return _read()


def maybe_material(say: Say) -> str:
    """The text of a pipe or a file; empty when there is none. Raises `Unaskable`."""
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    try:
        is_socket = stat.S_ISSOCK(os.fstat(_STDIN).st_mode)
    except OSError:
        return ""
    if is_socket and not select.select([_STDIN], [], [], SOCKET_SECONDS)[0]:
        return ""
    if sys.stderr.isatty() and os.name != "nt" and not select.select([_STDIN], [], [], PATIENCE_SECONDS)[0]:
        _tell(say, Sentence("Reading stdin to its end, as material for the question. To give none, add < /dev/null."))
    text = _read().strip("\n")
    return text if text.strip() else ""


def _tell(say: Say, sentence: str) -> None:
    sys.stderr.write(f"{say(sentence)}\n")
    sys.stderr.flush()


def _read() -> str:
    data = bytearray()
    while len(data) <= MOST_BYTES and (chunk := _chunk()):
        data += chunk
    if len(data) > MOST_BYTES:
        raise Unaskable(Sentence("stdin has more than {size} KiB: send less", size=MOST_BYTES // 1024))
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise Unaskable(Sentence("stdin is not UTF-8 text")) from None


def _chunk() -> bytes:
    try:
        return os.read(_STDIN, MOST_BYTES)
    except OSError as exc:
        raise Unaskable(Sentence("stdin cannot be read ({why})", why=exc.strerror)) from exc


def ask(
    inquiry: Inquiry, configuration: Configuration, environ: Mapping[str, str], *, rehearses: bool, is_json: bool
) -> int:
    """The exit code: 0 with the answer on stdout, 1 with the reason on stderr, 3 with an incomplete answer.

    Raises `Unaskable`.
    """
    tool = tool_of(inquiry)
    last_answer = LastAnswer(environ, rehearses=rehearses)
    keeps_responses = configuration.settings.request.store
    question = question_of(inquiry, tool, last_answer, speaking(environ), keeps_responses=keeps_responses)
    known = last_answer.rehearsed() if rehearses else None
    started: list[str] = []

    async def answer(container: "Container", on_progress: ProgressListener | None) -> Answer:
        return await container.answer_question().answer(question, on_progress, started.append)

    showing = Showing(tool, environ, is_json=is_json, remember=lambda given: last_answer.remember(given, question.text))
    return show_answer(answer, basis_of(configuration, environ), showing, rehearsed=known, started=started)


def fetch(response_id: str, configuration: Configuration, environ: Mapping[str, str], *, is_json: bool) -> int:
    """The exit code, as with `--ask`. An interrupt does not cancel the response."""

    async def answer(container: "Container", on_progress: ProgressListener | None) -> Answer:
        return await container.fetch_answer().wait(response_id, on_progress)

    last_answer = LastAnswer(environ, rehearses=False)
    showing = Showing(
        TOOLS[RESULT_TOOL], environ, is_json=is_json, remember=lambda given: last_answer.remember(given, "")
    )
    return show_answer(answer, basis_of(configuration, environ), showing, started=())
