"""What a look at the set-up gives back: one line for each thing, and the runner's status."""

from dataclasses import dataclass
from typing import Literal

from openai_responses_mcp.agents.policy.profiles import PolicyProfile
from openai_responses_mcp.domain.texts import one_line

Level = Literal["ok", "warn", "FAIL"]


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    what: str
    detail: str
    next_step: str = ""

    def __str__(self) -> str:
        line = f"{self.level:<6}{self.what}: {self.detail}"
        line = f"{line}; {self.next_step}" if self.next_step else line
        return one_line(line)


@dataclass(frozen=True, slots=True)
class DoctorReport:
    findings: tuple[Finding, ...]

    @property
    def is_healthy(self) -> bool:
        return all(finding.level != "FAIL" for finding in self.findings)

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings))


@dataclass(frozen=True, slots=True)
class AgentsStatus:
    """`problem` says why provider and model are not known, if they are not."""

    provider: str
    model: str | None
    policy: PolicyProfile
    tools: int
    problem: str = ""
