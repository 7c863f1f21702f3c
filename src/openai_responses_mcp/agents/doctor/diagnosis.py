"""`status()` and `doctor()`: how a runner is set up, and whether everything it needs is there and answers.

Nothing is changed and nothing is billed: a provider is only asked for its list of models, an MCP server for its list of
tools, the store for its log. Each finding is one line that says what was checked, what was found and, if that is a
problem, what to do next.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from openai_responses_mcp.agents.audit.models import LogVerification
from openai_responses_mcp.agents.calls import ToolDescription
from openai_responses_mcp.agents.doctor.findings import AgentsStatus, DoctorReport, Finding
from openai_responses_mcp.agents.doctor.ports import McpProbe
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.policy.ports import PolicyStore
from openai_responses_mcp.agents.policy.profiles import DEFAULT_PROFILE, PROFILES
from openai_responses_mcp.agents.providers.models import ModelList
from openai_responses_mcp.agents.providers.ports import ProviderHandle
from openai_responses_mcp.agents.providers.settings import chosen_provider, settings_from
from openai_responses_mcp.agents.providers.table import ProviderSpec
from openai_responses_mcp.agents.secrets.masking import Masking
from openai_responses_mcp.agents.skills.models import SkillList

_LOCAL = ("ollama", "lmstudio")


class Diagnosis:
    """`open_provider` sets a provider up from the environment, `load_skills` reads a folder of skills, and `verify_log`
    tells whether the log of a store is intact."""

    def __init__(
        self,
        environ: Mapping[str, str],
        open_provider: Callable[[str | None], ProviderHandle],
        load_skills: Callable[[str], Awaitable[SkillList]],
        *,
        policies: PolicyStore | None = None,
        verify_log: Callable[[], Awaitable[LogVerification]] | None = None,
    ) -> None:
        self._environ = environ
        self._open_provider = open_provider
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
        self, *, servers: Sequence[McpProbe] = (), skills: Sequence[str] = (), provider: str | None = None
    ) -> DoctorReport:
        checks: list[Awaitable[list[Finding]]] = [self._provider(provider)]
        checks += [_server(server) for server in servers]
        checks += [self._store()] if self._verify_log is not None else []
        checks += [self._skills(folder) for folder in skills]
        findings = [finding for group in await asyncio.gather(*checks) for finding in group]
        return DoctorReport(tuple(self._shown(finding) for finding in findings))

    def _shown(self, finding: Finding) -> Finding:
        mask = self._masking.text
        return Finding(finding.level, mask(finding.what), mask(finding.detail), mask(finding.next_step))

    # -----------------------------------------------------------------------------------------------------------------

    async def _provider(self, name: str | None) -> list[Finding]:
        try:
            spec = chosen_provider(name, self._environ)
            settings = settings_from(spec, self._environ)
        except AgentsError as exc:
            return [Finding("FAIL", "provider", exc.message, "set the variable in the environment of your program")]
        findings = [Finding("ok", "provider", f"{spec.name} at {settings.config.base_url}")]
        models = await self._open_provider(spec.name).list_models()
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
            step = "find out who wrote to the store, and keep it as it is until then"
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
            Finding("FAIL", "skill", f"{problem.code}: {problem.message}", "mend its SKILL.md or take it out")
            for problem in skills.problems
        ]
        step = "" if skills or bad else "put folders with a SKILL.md into it"
        return [Finding("ok" if skills or bad else "warn", "skills", f"{len(skills)} in {folder}", step), *bad]


async def _server(server: McpProbe) -> list[Finding]:
    what = f"MCP server {server.name}"
    try:
        tools = await server.list_tools()
    except AgentsError as exc:
        step = "check that its command or address works by itself"
        if exc.code == "AGENTS-E-MCP-SCHEMA":
            step = "tell whoever makes the server"
        return [Finding("FAIL", what, f"{exc.code}: {exc.message}", step)]
    except Exception:  # a server object of the user's own may raise what it likes
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
