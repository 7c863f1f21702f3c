"""Checks of what agents need: provider, store, MCP servers, skills."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Literal

from openai_responses_mcp.agents.providers.settings import (
    CHOICE_VARIABLE,
    ModelList,
    ProviderSpec,
    chosen_provider,
    settings_from,
)
from openai_responses_mcp.agents.skills.manifests import SkillList
from openai_responses_mcp.domain.texts import one_line
from openai_responses_mcp.gate.audit.records import LogVerification
from openai_responses_mcp.gate.calls import ToolDescription
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.policy.rules import DEFAULT_PROFILE, PROFILES, PolicyProfile, PolicyStore
from openai_responses_mcp.gate.secrets.masking import Masking

McpListing = tuple[str, Callable[[], Awaitable[Sized]]]
"""The name of an MCP server, and how to list its tools. Listing may raise anything."""

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
    """`problem` says why the provider is unknown."""

    provider: str
    model: str | None
    policy: PolicyProfile
    tools: int
    problem: str = ""


_LOCAL = ("ollama", "lmstudio")


class Diagnosis:
    """Without `verify_log` no store is checked."""

    def __init__(
        self,
        environ: Mapping[str, str],
        list_models: Callable[[str], Awaitable[ModelList]],
        load_skills: Callable[[str], Awaitable[SkillList]],
        *,
        policies: PolicyStore | None = None,
        verify_log: Callable[[], Awaitable[LogVerification]] | None = None,
    ) -> None:
        self._environ = environ
        self._list_models = list_models
        self._load_skills = load_skills
        self._policies = policies
        self._verify_log = verify_log
        self._masking = Masking(environ)

    async def status(self, tools: Sequence[ToolDescription] = ()) -> AgentsStatus:
        policy = PROFILES[DEFAULT_PROFILE]
        if self._policies is not None:
            policy = await self._policies.get_profile(DEFAULT_PROFILE)
        count = len({tool.scope_name for tool in tools})
        try:
            settings = settings_from(chosen_provider(None, self._environ), self._environ)
        except AgentsError as exc:
            return AgentsStatus("none", None, policy, count, self._masking.text(exc.message))
        return AgentsStatus(settings.spec.name, settings.model, policy, count)

    async def doctor(
        self, *, servers: Sequence[McpListing] = (), skills: Sequence[str] = (), provider: str | None = None
    ) -> DoctorReport:
        checks: list[Awaitable[list[Finding]]] = [self._provider(provider)]
        checks += [_server(name, list_tools) for name, list_tools in servers]
        checks += [self._store()] if self._verify_log is not None else []
        checks += [self._skills(folder) for folder in skills]
        findings = [finding for group in await asyncio.gather(*checks) for finding in group]
        mask = self._masking.text
        return DoctorReport(
            tuple(Finding(one.level, mask(one.what), mask(one.detail), mask(one.next_step)) for one in findings)
        )

    # -----------------------------------------------------------------------------------------------------------------

    async def _provider(self, name: str | None) -> list[Finding]:
        try:
            spec = chosen_provider(name, self._environ)
            settings = settings_from(spec, self._environ)
        except AgentsError as exc:
            missing = str(exc.details.get("variable", ""))
            if name is None and missing and not any(map(self._environ.get, (CHOICE_VARIABLE, missing))):
                # Agents may not be used here at all: the guard needs no provider.
                step = f"to run agents, set {missing}"
                return [Finding("warn", "provider", "none is set up, and the guard needs none", step)]
            return [Finding("FAIL", "provider", exc.message, "set the variable in the environment of your program")]
        findings = [Finding("ok", "provider", f"{spec.name} at {settings.config.base_url}")]
        models = await self._list_models(spec.name)
        findings.append(_reachability(spec, models))
        findings.append(_model(spec, settings.model, models))
        return findings

    async def _store(self) -> list[Finding]:
        assert self._verify_log is not None  # noqa: S101 - asked for only where there is one
        try:
            found = await self._verify_log()
        except AgentsError as exc:
            return [Finding("FAIL", "store", exc.message, "check the address and the rights of the store")]
        if not found.is_intact:
            step = "find out who wrote to the store, and leave it unchanged until then"
            return [
                Finding("FAIL", "store", f"the log of {found.records} records is not intact: {found.problem}", step)
            ]
        detail = f"the log of {found.records} records is intact"
        if found.uncovered:
            return [
                Finding("warn", "store", f"{detail}; not covered: {found.uncovered}", "keep its head with audit_head=")
            ]
        return [Finding("ok", "store", detail)]

    async def _skills(self, folder: str) -> list[Finding]:
        try:
            skills = await self._load_skills(folder)
        except AgentsError as exc:
            return [Finding("FAIL", "skills", exc.message, "name a folder that exists")]
        bad = [
            Finding(
                "warn" if problem.details.get("level") == "warning" else "FAIL",
                "skill",
                f"{problem.code}: {problem.message}",
                "mend its SKILL.md or take it out",
            )
            for problem in skills.problems
        ]
        step = "" if skills or bad else "put folders with a SKILL.md into it"
        return [Finding("ok" if skills or bad else "warn", "skills", f"{len(skills)} in {folder}", step), *bad]


async def _server(name: str, list_tools: Callable[[], Awaitable[Sized]]) -> list[Finding]:
    what = f"MCP server {name}"
    try:
        tools = await list_tools()
    except AgentsError as exc:
        step = "check that its command or address works by itself"
        if exc.code == "AGENTS-E-MCP-SCHEMA":
            step = "report it to the makers of the server"
        return [Finding("FAIL", what, f"{exc.code}: {exc.message}", step)]
    except Exception:  # a server object of the user may raise anything
        step = "connect it before it is used, or give it to hosted_mcp_tool"
        return [Finding("FAIL", what, "does not list its tools", step)]
    return [Finding("ok", what, f"{len(tools)} tools")]


def _reachability(spec: ProviderSpec, models: ModelList) -> Finding:
    what = f"{spec.name} API"
    if models.source == "live":
        return Finding("ok", what, f"answers, {len(models)} models")
    step = f"check {spec.base_url_variable}"
    if spec.name in _LOCAL and models.reason in ("network_error", "timeout"):
        step = f"start {spec.name}, or {step}"
    elif models.reason == "http_error":
        step = f"check {spec.key_variable} and {spec.base_url_variable}"
    elif models.reason == "empty_response":
        return Finding("warn", what, "answers, and has no models", f"load a model into {spec.name}")
    return Finding("FAIL", what, f"no list of models: {models.reason} ({models.detail})", step)


def _model(spec: ProviderSpec, model: str | None, models: ModelList) -> Finding:
    if model is None:
        known = f", such as {models[0]}" if models.source == "live" else ""
        return Finding("FAIL", "model", "none is chosen", f"set {spec.model_variable}{known}")
    if models.source != "live":
        return Finding("warn", "model", f"{model} was not checked, because there is no list")
    if model not in models:
        return Finding("warn", "model", f"{model} is not in the list", f"check {spec.model_variable}")
    return Finding("ok", "model", model)
