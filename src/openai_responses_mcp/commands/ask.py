"""`--ask`: one question, answered in the terminal."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from openai_responses_mcp.commands.inquiry import Inquiry, question_of, tool_of
from openai_responses_mcp.commands.last_answer import LastAnswer
from openai_responses_mcp.commands.showing import Showing
from openai_responses_mcp.commands.terminal import show_answer
from openai_responses_mcp.config.loading import Configuration
from openai_responses_mcp.domain.errors import PreviousResponseLost
from openai_responses_mcp.domain.models import Answer, ProgressListener
from openai_responses_mcp.start import basis_of

if TYPE_CHECKING:
    from openai_responses_mcp.container import Container


def ask(
    inquiry: Inquiry, configuration: Configuration, environ: Mapping[str, str], *, rehearses: bool, is_json: bool
) -> int:
    """The exit code: 0 with the answer on stdout, 1 with the reason on stderr, 3 with an incomplete answer.

    Raises `Unaskable`.
    """
    tool = tool_of(inquiry)
    last_answer = LastAnswer(environ, rehearses=rehearses)
    question = question_of(inquiry, tool, last_answer, keeps_responses=configuration.settings.request.store)
    known = last_answer.rehearsed() if rehearses else None
    started: list[str] = []

    async def answer(container: "Container", on_progress: ProgressListener | None) -> Answer:
        try:
            return await container.answer_question().answer(question, on_progress, started.append)
        except PreviousResponseLost as exc:
            # Somebody at a terminal knows the option, and not the argument.
            raise PreviousResponseLost(str(exc).replace("previous_response_id", "--continue")) from exc

    showing = Showing(tool, environ, is_json=is_json, remember=lambda given: last_answer.remember(given, question.text))
    return show_answer(answer, basis_of(configuration, environ), showing, rehearsed=known, started=started)
