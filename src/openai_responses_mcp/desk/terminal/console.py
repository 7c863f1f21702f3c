"""What a command in the terminal works with, and how it writes: sentences for people, JSON for programs."""

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from openai_responses_mcp.desk.opening import DeskParts
from openai_responses_mcp.desk.terminal.output import json_of, writable
from openai_responses_mcp.desk.terminal.text import Paper
from openai_responses_mcp.desk.words import Words, language_of
from openai_responses_mcp.gate.approvals.controller import ApprovalController
from openai_responses_mcp.gate.approvals.models import ApprovalRecord, ApprovalStore
from openai_responses_mcp.gate.approvals.standing import StandingApprovals
from openai_responses_mcp.gate.audit.log import AuditLog
from openai_responses_mcp.gate.clock import PresenceStore
from openai_responses_mcp.gate.json_values import JsonValue
from openai_responses_mcp.gate.sentences import shown

PROGRAM = "openai-responses-mcp"


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Console:
    parts: DeskParts
    paper: Paper
    words: Words
    is_json: bool = False
    write: Callable[[str], object] = sys.stdout.write
    flush: Callable[[], object] = sys.stdout.flush
    encoding: str = "utf-8"
    program: str = PROGRAM
    now: Callable[[], datetime] = _now

    @classmethod
    def here(cls, parts: DeskParts, *, is_json: bool) -> "Console":
        is_terminal = sys.stdout.isatty()
        width = shutil.get_terminal_size().columns if is_terminal else None
        has_colours = is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        return cls(
            parts,
            Paper(width, has_colours=has_colours),
            Words(language_of(os.environ)),
            is_json,
            sys.stdout.write,
            sys.stdout.flush,
            sys.stdout.encoding or "utf-8",
        )

    @property
    def approvals(self) -> ApprovalController:
        return self.parts.approvals

    @property
    def requests(self) -> ApprovalStore:
        return self.parts.requests

    @property
    def standing(self) -> StandingApprovals:
        return self.parts.standing

    @property
    def audit(self) -> AuditLog:
        return self.parts.audit

    @property
    def presence(self) -> PresenceStore:
        return self.parts.presence

    def reason_of(self, record: ApprovalRecord) -> str:
        request = record.request
        return shown(request.reasons, "needs_human", self.words.language, otherwise=request.reason)

    def tell(self, facts: JsonValue, for_people: str) -> None:
        self.write(f"{json_of(facts, self.encoding)}\n" if self.is_json else writable(f"{for_people}\n", self.encoding))
