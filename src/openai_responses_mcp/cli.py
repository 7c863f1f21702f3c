"""The command line: arguments, exit codes, and which command runs.

Parsed by a table of our own: argparse takes as long to import as the rest of the way to the first reply takes to run.
Exit codes: 0 done, 1 the question or the check failed, 2 the command line or the configuration is wrong.
"""

import contextlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from openai_responses_mcp import __version__
from openai_responses_mcp.config.loading import ConfigError, Configuration, Flags, load, show
from openai_responses_mcp.domain.texts import one_line

if TYPE_CHECKING:
    from types import TracebackType

PROGRAM = "openai-responses-mcp"

HELP = f"""\
{PROGRAM} {__version__}: answers questions for MCP clients, with sources, through the OpenAI Responses API.

Usage: {PROGRAM} --stdio [options]        serve an MCP client on stdin and stdout
       {PROGRAM} --ask "<question>"       answer one question in the terminal
       {PROGRAM} --fetch <response id>    show the answer of research that went on at the API
       {PROGRAM} --doctor                 check configuration, key, API and client set-up
       {PROGRAM} --show-config            show the effective configuration (JSON, on stderr)
       {PROGRAM} agents ...               operate guarded agents (extra "agents"; see agents --help)

Options:
  --config <path>     read this YAML file instead of the default one
  --model <id>        use this model for the answer profile
  --debug [<path>]    log what happens on stderr, and to this file
  --rehearse          with --stdio, --ask: no key needed, a built-in stand-in answers
  -h, --help          show this help
  -v, --version       show the version

Set OPENAI_API_KEY in the environment. Try it without a key: {PROGRAM} --ask "What is HTTP 404?" --rehearse
"""


class UsageError(Exception):
    """The command line cannot be understood; the text says why, on one line."""


class Options(NamedTuple):
    """The command line, taken apart; None and False stand for what was not given."""

    stdio: bool = False
    show_config: bool = False
    doctor: bool = False
    rehearse: bool = False
    help: bool = False
    version: bool = False
    ask: str | None = None
    fetch: str | None = None
    config: str | None = None
    model: str | None = None
    debug: bool = False
    debug_file: str | None = None


_SWITCHES = {
    "--stdio": "stdio",
    "--show-config": "show_config",
    "--doctor": "doctor",
    "--rehearse": "rehearse",
    "--help": "help",
    "-h": "help",
    "--version": "version",
    "-v": "version",
}
_VALUES = {"--ask": "ask", "--fetch": "fetch", "--config": "config", "--model": "model"}


def parse(arguments: Sequence[str]) -> Options:
    """Raises `UsageError`. Takes `--name value` and `--name=value`; the last one given counts."""
    given: dict[str, str | bool] = {}
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        name, has_value, value = argument.partition("=")
        if name in _SWITCHES and not has_value:
            given[_SWITCHES[name]] = True
        elif name in _VALUES:
            given[_VALUES[name]] = value if has_value else _next_value(name, rest)
        elif name == "--debug":
            given["debug"] = True
            if has_value or (rest and not rest[0].startswith("-")):
                given["debug_file"] = value if has_value else rest.pop(0)
        else:
            raise UsageError(f"unknown option {argument} (see {PROGRAM} --help)")
    return Options(**given)  # type: ignore[arg-type]


def _next_value(name: str, rest: list[str]) -> str:
    if not rest or rest[0].startswith("--"):
        raise UsageError(f"{name} needs a value (see {PROGRAM} --help)")
    return rest.pop(0)


def main(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> int:
    """The exit code."""
    if arguments[:1] == ["agents"]:
        from openai_responses_mcp.agents.terminal.command_line import main as operate_agents

        return operate_agents(list(arguments[1:]))
    try:
        return _run(parse(arguments), environ)
    except UsageError as exc:
        return _complain(_presentable(str(exc), environ))
    except ConfigError as exc:
        return _complain(*exc.problems)
    except KeyboardInterrupt:
        return 130


def _run(options: Options, environ: Mapping[str, str]) -> int:
    if options.help or options == Options():
        return _say(HELP)
    if options.version:
        return _say(f"{__version__}\n")
    if options.rehearse and not (options.stdio or options.ask is not None):
        raise UsageError(f"--rehearse goes with --stdio or --ask (see {PROGRAM} --help)")
    if options.ask is not None and not options.ask.strip():
        raise UsageError("--ask needs a question")
    if options.fetch is not None and not options.fetch.strip():
        raise UsageError("--fetch needs the id of a response")
    configuration = load(_flags(options), environ)
    for warning in configuration.warnings:
        _tell(f"warning: {warning}")
    if options.show_config:
        _write_stderr(json.dumps(show(configuration, environ), ensure_ascii=False, indent=2) + "\n")
    return _command(options, configuration, environ)


def _command(options: Options, configuration: Configuration, environ: Mapping[str, str]) -> int:
    if options.ask is not None:
        from openai_responses_mcp.commands.ask import ask

        return ask(options.ask, configuration, environ, rehearses=options.rehearse)
    if options.fetch is not None:
        from openai_responses_mcp.commands.fetch import fetch

        return fetch(options.fetch.strip(), configuration, environ)
    if options.doctor:
        from openai_responses_mcp.commands.doctor.examining import examine

        return examine(configuration, environ)
    if options.stdio:
        from openai_responses_mcp.commands.serve import serve_stdio

        if configuration.settings.server.show_config_on_start:
            _tell(_summary(configuration))
        return serve_stdio(configuration, environ, rehearses=options.rehearse)
    return 0 if options.show_config else _say(HELP)


def _flags(options: Options) -> Flags:
    return Flags(config=options.config, model=options.model, debug=options.debug, debug_file=options.debug_file)


def _summary(configuration: Configuration) -> str:
    settings, answer = configuration.settings, configuration.settings.model_profiles.answer
    return (
        f"version={__version__} config={configuration.sources.yaml or 'none'}"
        f" model={answer.model if answer else 'none'} tools={','.join(settings.server.tools)}"
        f" timeout_ms={settings.request.timeout_ms} max_retries={settings.request.max_retries}"
        f" debug={'on' if settings.server.debug else 'off'}"
    )


def _say(text: str) -> int:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as exc:
        _tell(f"cannot write to stdout ({exc.strerror})")
        return 1
    return 0


def _complain(*problems: str) -> int:
    for problem in problems:
        _tell(problem)
    return 2


def _presentable(text: str, environ: Mapping[str, str]) -> str:
    """One line, whatever the arguments held, and without a key that was taken for one."""
    return one_line(_masked(text, environ))


def _masked(text: str, environ: Mapping[str, str]) -> str:
    from openai_responses_mcp.domain.masking import SecretMask, secrets_in

    return SecretMask(secrets_in(environ, key_variable="OPENAI_API_KEY", base_url=""))(text)


def _report_crash(kind: type[BaseException], error: BaseException, trace: "TracebackType | None") -> None:
    """The traceback of what nobody caught, without secrets."""
    import traceback

    _write_stderr(_masked("".join(traceback.format_exception(error)), os.environ))


def _tell(line: str) -> None:
    _write_stderr(f"{PROGRAM}: {line}\n")


def _write_stderr(text: str) -> None:
    """Straight to the descriptor, which may be closed; that is no reason to stop."""
    with contextlib.suppress(OSError):
        os.write(2, text.encode("utf-8", "backslashreplace"))


def run_and_leave() -> NoReturn:
    """Run, then leave at once: threads that still import or wait for input must not hold up the end."""
    sys.excepthook = _report_crash
    _replace_closed_streams()
    try:
        code = main(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def _replace_closed_streams() -> None:
    """Python has None where a descriptor was closed from the start; nobody reads there, and nobody needs to know."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 -- open until the end
