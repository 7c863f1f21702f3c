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
from typing import TYPE_CHECKING

from openai_responses_mcp.adapters.bounded_file import read_text
from openai_responses_mcp.commands.showing import Showing, show_answer
from openai_responses_mcp.commands.usage import TOOLS as NAMES
from openai_responses_mcp.commands.usage import BadCommandLine, Options
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


def _tool(options: Options) -> Tool:
    named = [] if options.tool is None else [options.tool]
    named += ["answer_detailed"] * options.detailed + ["answer_quick"] * options.quick
    chosen = list(dict.fromkeys(named)) or [NAMES[0]]
    if len(chosen) > 1:
        raise BadCommandLine(Sentence("choose one tool (found {tools})", tools=linked("{first} and {second}", chosen)))
    return TOOLS[chosen[0]]


def _question(options: Options, tool: Tool, last_answer: LastAnswer, say: Say, *, keeps_responses: bool) -> Question:
    """Reads stdin if there is anything to read."""
    # Arguments are renamed to their options, so that error messages name the options.
    flags = {name: flag for flag, name in _ARGUMENTS.items()}
    named = (argument._replace(name=flags.get(argument.name, argument.name)) for argument in tool.arguments)
    spelled = tool._replace(arguments=tuple(named))
    continued = options.continues
    if continued == "":
        continued = last_answer.maybe_recall()
        if continued is None:
            raise BadCommandLine(Sentence("there is no earlier answer to continue; name one: --continue resp_..."))
    values = {
        "--recency": options.recency,
        "--domains": None if options.domains is None else options.domains.split(","),
        "--style": options.style,
        "--continue": continued,
    }
    given = {flag: value for flag, value in values.items() if value is not None}
    for flag in given:
        if flag not in [argument.name for argument in spelled.arguments]:
            raise BadCommandLine(Sentence("{tool} does not take {option}", tool=tool.name, option=flag))
    if continued is not None and not keeps_responses:
        says = "--continue cannot be used: request.store is false, so the API keeps no answers to continue"
        raise BadCommandLine(Sentence(says))
    try:
        # Check before reading stdin to EOF, so that other mistakes are reported at once.
        question = read_question(spelled, {"query": options.ask, **given})
    except InvalidArguments as exc:
        raise BadCommandLine(exc.sentence) from exc
    return replace(question, text=_text(options.ask or "", say))


MOST_BYTES = 1024 * 1024
SOCKET_SECONDS = 0.2
# After this long we say what we are waiting for.
PATIENCE_SECONDS = 1.0
_STDIN = 0


def _text(question: str, say: Say) -> str:
    """The question, followed by the material from stdin."""
    if question == FROM_STDIN:
        if sys.stdin is not None and sys.stdin.isatty():
            _tell(say, Sentence("Type the question, then Ctrl-D (Ctrl-Z and Enter on Windows)."))
        text = "" if sys.stdin is None else _read().strip()
        if not text:
            raise BadCommandLine(Sentence("--ask needs a question, and stdin has none"))
        return text
    material = _read().strip("\n") if _has_material(say) else ""
    return f"{question}\n\n[Material from stdin]\n{material}\n[End of material]" if material.strip() else question


def _has_material(say: Say) -> bool:
    """True for a pipe or a file, and for a socket that is not silent."""
    if sys.stdin is None or sys.stdin.isatty():
        return False
    try:
        is_socket = stat.S_ISSOCK(os.fstat(_STDIN).st_mode)
    except OSError:
        return False
    if is_socket and not select.select([_STDIN], [], [], SOCKET_SECONDS)[0]:
        return False
    if sys.stderr.isatty() and os.name != "nt" and not select.select([_STDIN], [], [], PATIENCE_SECONDS)[0]:
        _tell(say, Sentence("Reading stdin to its end, as material for the question. To give none, add < /dev/null."))
    return True


def _tell(say: Say, sentence: str) -> None:
    sys.stderr.write(f"{say(sentence)}\n")
    sys.stderr.flush()


def _read() -> str:
    """stdin to EOF."""
    data = bytearray()
    try:
        while len(data) <= MOST_BYTES and (chunk := os.read(_STDIN, MOST_BYTES)):
            data += chunk
    except OSError as exc:
        raise BadCommandLine(Sentence("stdin cannot be read ({why})", why=exc.strerror)) from exc
    if len(data) > MOST_BYTES:
        raise BadCommandLine(Sentence("stdin has more than {size} KiB: send less", size=MOST_BYTES // 1024))
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise BadCommandLine(Sentence("stdin is not UTF-8 text")) from None


def ask(options: Options, configuration: Configuration, environ: Mapping[str, str]) -> int:
    """The exit code: 0 with the answer on stdout, 1 with the reason on stderr, 3 with an incomplete answer.

    Raises `BadCommandLine` for a question that cannot be asked.
    """
    tool = _tool(options)
    last_answer = LastAnswer(environ, rehearses=options.rehearse)
    keeps_responses = configuration.settings.request.store
    question = _question(options, tool, last_answer, speaking(environ), keeps_responses=keeps_responses)
    known = last_answer.rehearsed() if options.rehearse else None
    started: list[str] = []

    async def answer(container: "Container", on_progress: ProgressListener | None) -> Answer:
        return await container.answer_question().answer(question, on_progress, started.append)

    def remember(response_id: str) -> bool:
        return last_answer.remember(response_id, question.text)

    showing = Showing(tool, environ, is_json=options.json, remember=remember)
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
