"""What a command in the terminal works with, and how it writes: tables for people, JSON for programs."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from openai_responses_mcp.agents.approvals.controller import ApprovalController
from openai_responses_mcp.agents.approvals.models import ResumeToken
from openai_responses_mcp.agents.approvals.standing import StandingApprovals
from openai_responses_mcp.agents.audit.log import AuditLog
from openai_responses_mcp.agents.calls import GUARD_RUN
from openai_responses_mcp.agents.json_values import JsonObject, JsonValue
from openai_responses_mcp.agents.terminal.output import json_of, writable
from openai_responses_mcp.agents.terminal.tables import table


@dataclass(frozen=True, slots=True)
class Console:
    approvals: ApprovalController
    audit: AuditLog
    standing: StandingApprovals
    write: Callable[[str], object]
    is_json: bool
    width: int
    encoding: str = "utf-8"

    def show(self, facts: JsonValue, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table for people, all facts as JSON for programs."""
        self.tell(facts, table(headings, rows, self.width) if rows else "Nothing.\n")

    def show_fields(self, facts: JsonObject) -> None:
        """One thing, field by field; what is empty is left out of the table."""
        rows = [(name, as_text(value)) for name, value in facts.items() if value not in (None, "")]
        self.show(facts, ("FIELD", "VALUE"), rows)

    def tell(self, facts: JsonValue, for_people: str) -> None:
        self.write(f"{json_of(facts, self.encoding)}\n" if self.is_json else writable(for_people, self.encoding))


def told_of(token: ResumeToken) -> dict[str, JsonValue]:
    """What whoever has decided is told. A call behind the guard goes on by itself, and has no run to resume."""
    if token.run_id.startswith(GUARD_RUN):
        return {"run_id": token.run_id, "decided": "the guard goes on by itself"}
    return asdict(token)


def as_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json_of(value)
