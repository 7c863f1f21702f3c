"""`--ask`: one question, answered in the terminal."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from openai_responses_mcp.commands.terminal import show_answer
from openai_responses_mcp.config.loading import Configuration
from openai_responses_mcp.domain.models import Answer, ProgressListener, Question
from openai_responses_mcp.start import basis_of

if TYPE_CHECKING:
    from openai_responses_mcp.container import Container


def ask(question: str, configuration: Configuration, environ: Mapping[str, str], *, rehearses: bool) -> int:
    """The exit code: 0 with the answer on stdout, 1 with the reason on stderr."""
    started: list[str] = []

    async def answer(container: "Container", on_progress: ProgressListener | None) -> Answer:
        return await container.answer_question().answer(Question(text=question), on_progress, started.append)

    return show_answer(answer, basis_of(configuration, environ), rehearses=rehearses, started=started)
