"""y/N at the terminal: a call that needs a human is asked about right there, one at a time."""

import asyncio
import json
import sys
import threading
from concurrent.futures import Future

from openai_responses_mcp.domain.texts import revealed, visible
from openai_responses_mcp.gate.approvals.controller import ApprovalController
from openai_responses_mcp.gate.approvals.models import HumanApprovalRequest
from openai_responses_mcp.gate.approvals.standing import StandingApprovals, StandingTerms, approve_from_now_on
from openai_responses_mcp.gate.errors import AgentsError

_CHOICES = {"y": "yes", "yes": "yes", "n": "no", "no": "no", "s": "session", "": "no"}
_HELP = "y: run it once. n, or just Enter: do not run it, and tell the model. s: run it, and all calls of this tool in this run."


class TerminalApprover:
    def __init__(self) -> None:
        """`AGENTS-E-RUNNER-CONFIG` where there is no terminal."""
        if not (sys.stdin and sys.stdout and sys.stdin.isatty() and sys.stdout.isatty()):
            message = 'ask="terminal" needs a terminal at stdin and stdout; without one, decide with approve_and_resume'
            raise AgentsError("AGENTS-E-RUNNER-CONFIG", message)
        self._one_at_a_time = threading.Lock()

    async def decide(
        self, request: HumanApprovalRequest, approvals: ApprovalController, standing: StandingApprovals
    ) -> None:
        choice, comment = await self._choice(request), "at the terminal"
        if choice == "session":
            terms = StandingTerms(for_session=True)
            await approve_from_now_on(approvals, standing, request.approval_id, terms=terms, comment=comment)
        elif choice == "yes":
            await approvals.submit_decision(request.approval_id, "approve", comment)
        else:
            await approvals.submit_decision(request.approval_id, "deny", comment, tell_model=True)

    async def _choice(self, request: HumanApprovalRequest) -> str:
        """Ask in a daemon thread. With `asyncio.to_thread`, a program stopped by Ctrl-C would wait for Enter."""
        answer: Future[str] = Future()

        def ask() -> None:
            answer.set_running_or_notify_cancel()
            try:
                with self._one_at_a_time:
                    answer.set_result(_ask(request))
            except BaseException as exc:  # raised where it is awaited
                answer.set_exception(exc)

        threading.Thread(target=ask, daemon=True).start()
        return await asyncio.wrap_future(answer)


def _ask(request: HumanApprovalRequest) -> str:
    show(question(request))
    while True:
        typed = read_line("Let it run? [y/N/s/?] ")
        choice = "no" if typed is None else _CHOICES.get(typed.strip().lower())
        if choice is not None:
            return choice
        show(f"{_HELP}\n")


def question(request: HumanApprovalRequest) -> str:
    """The question text. Invisible and misleading characters from a model, a judge or a server are escaped."""
    call = f"{request.tool_kind} {request.tool_name} {json.dumps(dict(request.arguments), ensure_ascii=False)}"
    parts = [request.prompt, request.tool_description, request.definition_change, call]
    return revealed("\n".join(["", *filter(None, parts), ""]))


def read_line(prompt: str) -> str | None:
    """None at the end of the input."""
    try:
        return input(prompt)
    except EOFError:
        show("\n")
        return None


def show(text: str) -> None:
    sys.stdout.write(visible(text))
    sys.stdout.flush()
