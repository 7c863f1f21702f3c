"""`--doctor`: one line for each thing that has to be right, on stdout; what is not says what to do about it.

Nothing is changed and nothing is billed: the API is only asked which models it knows, once each and all at the same
time, and client files are only read.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from openai_responses_mcp.adapters.bounded_file import read_text, reason_of
from openai_responses_mcp.commands.doctor.client_setups import (
    CLIENTS,
    Client,
    Finding,
    examine_file,
    files_of,
    how_to_add,
)
from openai_responses_mcp.config.loading import VARIABLES, Configuration
from openai_responses_mcp.config.settings import ModelProfiles, Profile, Settings
from openai_responses_mcp.domain.errors import GatewayError, GatewayOverloaded, GatewayTimeout, KeyUnusable
from openai_responses_mcp.domain.texts import one_line
from openai_responses_mcp.start import Basis, basis_of

if TYPE_CHECKING:
    from openai_responses_mcp.adapters.openai.gateway import OpenAIResponsesGateway

LONGEST_WAIT_SECONDS = 10.0
MAX_CLIENT_FILE_BYTES = 8 * 1024 * 1024

_PROFILES = ("answer", "answer_detailed", "answer_quick")
_NOT_SET_UP = "--"


class Line(NamedTuple):
    level: str
    what: str
    detail: str


class ApiReport(NamedTuple):
    """What is wrong with the key, as far as it shows here, and what the API said of each model: None for yes."""

    key_problem: KeyUnusable | None
    outcomes: dict[str, GatewayError | None]


def examine(
    configuration: Configuration, environ: Mapping[str, str], *, longest_wait_seconds: float = LONGEST_WAIT_SECONDS
) -> int:
    """The exit code: 1 when a line says FAIL."""
    basis = basis_of(configuration, environ)
    levels = set()
    try:
        for line in _lines(basis, environ, longest_wait_seconds):
            levels.add(line.level)
            # Our own snippets are not masked: to the mask, the place for a key looks like a key.
            _write(line if line.level == _NOT_SET_UP else line._replace(detail=basis.mask(line.detail)))
    finally:
        basis.logger.close()
    return 1 if "FAIL" in levels else 0


def _lines(basis: Basis, environ: Mapping[str, str], longest_wait_seconds: float) -> Iterator[Line]:
    settings = basis.configuration.settings
    yield _configuration_line(basis.configuration)
    report = asyncio.run(_ask_api(basis, _models(settings.model_profiles), longest_wait_seconds))
    yield _key_line(settings, report)
    yield _api_line(settings, report)
    for name in _PROFILES:
        yield _model_line(name, settings, report)
    if settings.server.debug_file is not None:
        yield _debug_file_line(settings.server.debug_file)
    for client in CLIENTS:
        yield _client_line(client, environ, settings.openai.api_key_env)


def _write(line: Line) -> None:
    text = f"{line.level:<6}{line.what}: {line.detail}"
    text = one_line(text)
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    sys.stdout.flush()


def _configuration_line(configuration: Configuration) -> Line:
    sources = configuration.sources
    parts = [sources.yaml or "defaults, no file"]
    if sources.env:
        parts.append(f"variables {', '.join(sources.env)}")
    if sources.cli:
        parts.append(f"flags {', '.join(sources.cli)}")
    return Line(
        "warn" if configuration.warnings else "ok", "configuration", "; ".join([*parts, *configuration.warnings])
    )


# The API


def _models(profiles: ModelProfiles) -> list[str]:
    """Each model once; the default one when there is none, because the way to the API is checked all the same."""
    chosen = [getattr(profiles, name) for name in _PROFILES]
    return list(dict.fromkeys(profile.model for profile in chosen if profile)) or [Profile().model]


async def _ask_api(basis: Basis, models: list[str], longest_wait_seconds: float) -> ApiReport:
    try:
        return ApiReport(None, await _ask(basis.load_container().openai_gateway(), models, longest_wait_seconds))
    except KeyUnusable as exc:
        # A made-up key shows as well whether anybody answers there, so that both problems are seen at once.
        container = basis.load_container()
        container.api_key.override("none")
        return ApiReport(exc, await _ask(container.openai_gateway(), models[:1], longest_wait_seconds))


async def _ask(
    gateway: "OpenAIResponsesGateway", models: list[str], longest_wait_seconds: float
) -> dict[str, GatewayError | None]:
    outcomes = await asyncio.gather(*(_outcome(gateway, model, longest_wait_seconds) for model in models))
    await gateway.close()
    return dict(zip(models, outcomes, strict=True))


async def _outcome(gateway: "OpenAIResponsesGateway", model: str, longest_wait_seconds: float) -> GatewayError | None:
    try:
        async with asyncio.timeout(longest_wait_seconds):
            await gateway.check_model(model)
    except GatewayError as exc:
        return exc
    except TimeoutError:
        return GatewayTimeout(
            f"No answer within {longest_wait_seconds:g} s. Check the network, the proxy and openai.base_url."
        )
    return None


def _is_answer(outcome: GatewayError | None) -> bool:
    """Any answer will do but a redirect, which is not followed."""
    return outcome is None or (outcome.status or 0) >= 400


def _key_line(settings: Settings, report: ApiReport) -> Line:
    if report.key_problem:
        return Line("FAIL", "key", str(report.key_problem))
    refusals = [outcome for outcome in report.outcomes.values() if outcome and outcome.status == 401]
    if refusals:
        return Line("FAIL", "key", str(refusals[0]))
    return Line("ok", "key", f"set in {settings.openai.api_key_env}")


def _api_line(settings: Settings, report: ApiReport) -> Line:
    base_url, outcomes = settings.openai.base_url, report.outcomes.values()
    if any(map(_is_answer, outcomes)):
        return Line("ok", "API", f"{base_url} answers")
    return Line("FAIL", "API", f"{base_url}: {next(iter(outcomes))}")


def _model_line(name: str, settings: Settings, report: ApiReport) -> Line:
    what = f"model for {name}"
    profile: Profile | None = getattr(settings.model_profiles, name)
    if profile is not None:
        level, detail = _verdict(name, profile.model, settings.openai.base_url, report)
        return Line(level, what, detail)
    answer = settings.model_profiles.answer
    if answer is not None:
        return Line("ok", what, f"{answer.model}, as for answer")
    needed = "model_profiles.answer is required"
    return Line("FAIL", what, f"{needed}: set {_where_to_change('answer')}" if name == "answer" else needed)


def _verdict(name: str, model: str, base_url: str, report: ApiReport) -> tuple[str, str]:
    if report.key_problem:
        return "warn", f"{model} was not checked, which takes a key"
    outcome = report.outcomes[model]
    if outcome is None:
        return "ok", model
    if not _is_answer(outcome):
        return "warn", f"{model} was not checked, because the API did not answer"
    if outcome.status in (401, 403):
        return "FAIL", f"{model} was not checked, because the key was refused: {outcome}"
    if outcome.status == 404:
        return _unknown_model(name, model, base_url)
    return "warn" if isinstance(outcome, GatewayOverloaded) else "FAIL", f"{model} could not be checked: {outcome}"


def _unknown_model(name: str, model: str, base_url: str) -> tuple[str, str]:
    text = f"the API does not know {model} (404): change {_where_to_change(name)}"
    if urlsplit(base_url).hostname == "api.openai.com":
        return "FAIL", text
    return "warn", f"{text}, or check openai.base_url; gateways without a list of models answer so for every one"


def _where_to_change(name: str) -> str:
    path = ("model_profiles", name, "model")
    return " or ".join([*(variable for variable, key in VARIABLES.items() if key == path), ".".join(path)])


# Files


def _debug_file_line(path: str) -> Line:
    if _is_writable(path):
        return Line("ok", "debug file", path)
    return Line(
        "FAIL", "debug file", f"{path} cannot be written: choose another with --debug, DEBUG or server.debug_file"
    )


def _is_writable(path: str) -> bool:
    """Found out without making anything: folders that are missing will be made with the file."""
    if os.path.exists(path):
        return not os.path.isdir(path) and os.access(path, os.W_OK)
    folder = os.path.dirname(os.path.join(_working_folder(), path))
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


def _client_line(client: Client, environ: Mapping[str, str], key_variable: str) -> Line:
    files = files_of(client, environ, _working_folder())
    findings = [finding for path in files for finding in _examine(client, path, environ, key_variable)]
    if not findings:
        return Line(_NOT_SET_UP, client.name, f"not set up; {how_to_add(client, files[0], key_variable)}")
    levels = {finding.level for finding in findings}
    worst = next(level for level in ("FAIL", "warn", "ok") if level in levels)
    # What is well is only worth telling when all is.
    return Line(worst, client.name, "; ".join(text for level, text in findings if worst == "ok" or level != "ok"))


def _examine(client: Client, path: str, environ: Mapping[str, str], key_variable: str) -> list[Finding]:
    try:
        text = read_text(path, most_bytes=MAX_CLIENT_FILE_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError) as exc:
        return [Finding("warn", f"{path} {reason_of(exc)}")]
    return examine_file(client, path, text, key_variable, lambda name: shutil.which(name, path=environ.get("PATH")))


def _working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # It was deleted meanwhile.
        return os.curdir
