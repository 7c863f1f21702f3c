"""y/N at the terminal: a call that needs a human is asked about right there, one at a time."""

import asyncio
import json
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Literal

from openai_responses_mcp.domain.texts import revealed, visible
from openai_responses_mcp.gate.approvals.controller import ApprovalController
from openai_responses_mcp.gate.approvals.models import HumanApprovalRequest
from openai_responses_mcp.gate.approvals.standing import StandingApprovals, StandingTerms, approve_from_now_on
from openai_responses_mcp.gate.errors import AgentsError

Choice = Literal["yes", "no", "session"]
_CHOICES: dict[str, Choice] = {"y": "yes", "yes": "yes", "n": "no", "no": "no", "s": "session", "": "no"}
_HELP = "y: run it once. n, or just Enter: do not run it, and tell the model. s: run it, and all calls of this tool in this run."

Read = Callable[[str], str | None]
Show = Callable[[str], None]


class TerminalApprover:
    """`read` shows a prompt and gives a line, or None at the end of the input."""

    def __init__(self, read: Read, show: Show) -> None:
        self._read = read
        self._show = show
        self._one_at_a_time = threading.Lock()

    async def decide(
        self, request: HumanApprovalRequest, approvals: ApprovalController, standing: StandingApprovals
    ) -> None:
        choice, comment = await _in_daemon_thread(lambda: self._ask(request)), "at the terminal"
        if choice == "session":
            terms = StandingTerms(for_session=True)
            await approve_from_now_on(approvals, standing, request.approval_id, terms=terms, comment=comment)
        elif choice == "yes":
            await approvals.submit_decision(request.approval_id, "approve", comment)
        else:
            await approvals.submit_decision(request.approval_id, "deny", comment, tell_model=True)

    def _ask(self, request: HumanApprovalRequest) -> Choice:
        """The end of the input is a no."""
        with self._one_at_a_time:
            self._show(question(request))
            while True:
                typed = self._read("Let it run? [y/N/s/?] ")
                choice = "no" if typed is None else _CHOICES.get(typed.strip().lower())
                if choice is not None:
                    return choice
                self._show(f"{_HELP}\n")


async def _in_daemon_thread(ask: Callable[[], Choice]) -> Choice:
    """Not `asyncio.to_thread`: after Ctrl-C, the end of the program would wait for a line to be typed."""
    answer: Future[Choice] = Future()

    def work() -> None:
        answer.set_running_or_notify_cancel()
        try:
            answer.set_result(ask())
        except BaseException as exc:  # raised where it is awaited
            answer.set_exception(exc)

    threading.Thread(target=work, daemon=True).start()
    return await asyncio.wrap_future(answer)


def question(request: HumanApprovalRequest) -> str:
    """The question text. Invisible and misleading characters from a model, a judge or a server are escaped."""
    call = f"{request.tool_kind} {request.tool_name} {json.dumps(dict(request.arguments), ensure_ascii=False)}"
    parts = [request.prompt, request.tool_description, request.definition_change, call]
    return revealed("\n".join(["", *filter(None, parts), ""]))


def terminal_approver() -> TerminalApprover:
    """`AGENTS-E-RUNNER-CONFIG` where there is no terminal."""
    if not (sys.stdin and sys.stdout and sys.stdin.isatty() and sys.stdout.isatty()):
        message = 'ask="terminal" needs a terminal at stdin and stdout; without one, decide with approve_and_resume'
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", message)
    return TerminalApprover(read_line, show)


def read_line(prompt: str) -> str | None:
    try:
        return input(prompt)
    except EOFError:
        show("\n")
        return None


def show(text: str) -> None:
    sys.stdout.write(visible(text))
    sys.stdout.flush()
