"""`--fetch`: the answer of a response that the API works on, or has worked on, in the terminal."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from openai_responses_mcp.commands.last_answer import LastAnswer
from openai_responses_mcp.commands.showing import Showing
from openai_responses_mcp.commands.terminal import show_answer
from openai_responses_mcp.config.loading import Configuration
from openai_responses_mcp.domain.models import Answer, ProgressListener
from openai_responses_mcp.server.tools import RESULT_TOOL, TOOLS
from openai_responses_mcp.start import basis_of

if TYPE_CHECKING:
    from openai_responses_mcp.container import Container


def fetch(response_id: str, configuration: Configuration, environ: Mapping[str, str], *, is_json: bool) -> int:
    """The exit code, as that of `--ask`. An interrupt leaves the response alone."""

    async def answer(container: "Container", on_progress: ProgressListener | None) -> Answer:
        return await container.fetch_answer().wait(response_id, on_progress)

    last_answer = LastAnswer(environ, rehearses=False)
    showing = Showing(
        TOOLS[RESULT_TOOL], environ, is_json=is_json, remember=lambda given: last_answer.remember(given, "")
    )
    return show_answer(answer, basis_of(configuration, environ), showing, started=())
