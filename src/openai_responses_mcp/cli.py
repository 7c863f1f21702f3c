"""The command line: arguments, exit codes, and which command runs.

Parsed by a table of our own: argparse takes as long to import as the rest of the way to the first reply takes to run.
Exit codes: 0 done, 1 the question or the check failed, 2 the command line or the configuration is wrong, 3 the answer
is incomplete. The help is in `commands.usage`: a server that starts does not need it.
"""

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, NoReturn

from openai_responses_mcp import __version__
from openai_responses_mcp.config.loading import ConfigError, Configuration, Flags, load, load_what_can_be_used, show
from openai_responses_mcp.domain.texts import one_line

if TYPE_CHECKING:
    from types import TracebackType

PROGRAM = "openai-responses-mcp"


class UsageError(Exception):
    """The command line cannot be understood; the text says why, on one line."""


class Options(NamedTuple):
    """The command line, taken apart; None and False stand for what was not given."""

    stdio: bool = False
    http: str | None = None
    drain: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    show_config: bool = False
    doctor: bool = False
    init: bool = False
    rehearse: bool = False
    help: bool = False
    version: bool = False
    ask: str | None = None
    fetch: str | None = None
    completion: str | None = None
    tool: str | None = None
    detailed: bool = False
    quick: bool = False
    continues: str | None = None
    """Empty: the last answer."""
    domains: str | None = None
    recency: str | None = None
    style: str | None = None
    json: bool = False
    config: str | None = None
    model: str | None = None
    debug: bool = False
    debug_file: str | None = None


SWITCHES = {
    "--stdio": "stdio",
    "--show-config": "show_config",
    "--doctor": "doctor",
    "--init": "init",
    "--detailed": "detailed",
    "--quick": "quick",
    "--json": "json",
    "--rehearse": "rehearse",
    "--help": "help",
    "-h": "help",
    "--version": "version",
    "-v": "version",
}
VALUES = {
    "--http": "http",
    "--drain": "drain",
    "--tls-cert": "tls_cert",
    "--tls-key": "tls_key",
    "--ask": "ask",
    "--fetch": "fetch",
    "--completion": "completion",
    "--tool": "tool",
    "--domains": "domains",
    "--recency": "recency",
    "--style": "style",
    "--config": "config",
    "--model": "model",
}
MAYBE_VALUES = {"--continue": "continues", "--debug": "debug"}

_COMMANDS = ("--stdio", "--http", "--ask", "--fetch", "--doctor", "--init", "--completion", "--show-config")
_ASKING = ("--tool", "--detailed", "--quick", "--continue", "--domains", "--recency", "--style", "--json")
_COMMAND_WORDS = ("approvals", "log", "policy", "status")
_SERVING = ("--drain", "--tls-cert", "--tls-key")
_TOGETHER = (["--stdio", "--show-config"], ["--http", "--show-config"], ["--fetch", "--json"])
_ID = "resp_"
_LONGEST_DRAIN_SECONDS = 3600
_SEE_HELP = f"(see {PROGRAM} --help)"


def parse(arguments: Sequence[str]) -> Options:
    """Raises `UsageError`. Takes `--name value` and `--name=value`; the last one given counts."""
    given: dict[str, str | bool] = {}
    questions: list[str] = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        name, has_value, value = argument.partition("=")
        if name in SWITCHES and not has_value:
            given[SWITCHES[name]] = True
        elif name in VALUES:
            given[VALUES[name]] = value if has_value else _next_value(name, rest)
        elif name == "--debug":
            given["debug"] = True
            if has_value or (rest and not rest[0].startswith("-")):
                given["debug_file"] = value if has_value else rest.pop(0)
        elif name == "--continue":
            given["continues"] = _response_id(value) if has_value else _maybe_next_id(rest)
        elif argument.startswith("-") and argument != "-":
            raise UsageError(f"unknown option {argument} {_SEE_HELP}")
        else:
            questions.append(_question(argument))
    if len(questions) + ("ask" in given) > 1:
        raise UsageError(f"one question at a time: put it in quotes (found {questions[-1]}) {_SEE_HELP}")
    return Options(**given, **({"ask": questions[0]} if questions else {}))  # type: ignore[arg-type]


def _next_value(name: str, rest: list[str]) -> str:
    if not rest or rest[0].startswith("--"):
        raise UsageError(f"{name} needs a value {_SEE_HELP}")
    return rest.pop(0)


def _maybe_next_id(rest: list[str]) -> str:
    return rest.pop(0) if rest and rest[0].startswith(_ID) else ""


def _response_id(value: str) -> str:
    if not value.startswith(_ID):
        raise UsageError(f"--continue takes the id of an answer, which starts with {_ID} {_SEE_HELP}")
    return value


def _question(argument: str) -> str:
    """A word that is the name of an option or a command is a mistake, and asking the API about it would cost money."""
    if argument in (*_COMMAND_WORDS, "agents", "guard"):
        raise UsageError(f"{argument} is a command: write it first {_SEE_HELP}")
    if f"--{argument}" in (*SWITCHES, *VALUES, *MAYBE_VALUES):
        raise UsageError(f"unknown command {argument}: did you mean --{argument}? {_SEE_HELP}")
    return argument


def _check(options: Options) -> None:
    """Raises `UsageError` for what does not go together."""
    commands, asking = _given(options, _COMMANDS), _given(options, _ASKING)
    if len(commands) > 1 and sorted(commands) not in map(sorted, _TOGETHER):
        raise UsageError(f"{commands[0]} and {commands[1]} do not go together {_SEE_HELP}")
    if asking and commands != ["--ask"] and commands + asking not in _TOGETHER:
        raise UsageError(f"{asking[0]} goes with --ask {_SEE_HELP}")
    serving = _given(options, _SERVING)
    if serving and options.http is None:
        raise UsageError(f"{serving[0]} goes with --http {_SEE_HELP}")
    if options.rehearse and not (options.stdio or options.ask is not None or options.http is not None):
        raise UsageError(f"--rehearse goes with --stdio, --http or --ask {_SEE_HELP}")
    if options.ask is not None and not options.ask.strip():
        raise UsageError("--ask needs a question")
    if options.fetch is not None and not options.fetch.strip():
        raise UsageError("--fetch needs the id of a response")


def _given(options: Options, names: Sequence[str]) -> list[str]:
    fields = {**SWITCHES, **VALUES, **MAYBE_VALUES}
    return [name for name in names if getattr(options, fields[name]) not in (None, False)]


def main(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> int:
    """The exit code."""
    try:
        # `agents guard` and the like stand in the configuration of clients.
        words = arguments[1:] if arguments[:1] == ["agents"] else arguments
        if words[:1] == ["guard"]:
            return _guard(words[1:], environ)
        if arguments[:2] == ["agents", "doctor"]:
            return _examine_agents(arguments[2:])
        if arguments[:1] == ["agents"] or (words[0:1] and words[0] in _COMMAND_WORDS):
            return _operate(words)
        return _run(parse(arguments), environ)
    except UsageError as exc:
        return _complain(_presentable(str(exc), environ))
    except ConfigError as exc:
        return _complain(*exc.problems)
    except BrokenPipeError:  # Whoever reads has closed the pipe, as `| head -1` does.
        return 0
    except KeyboardInterrupt:
        return 130


def _guard(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    # Without the other commands of agents: they take long to load, and a client is waiting.
    from openai_responses_mcp.guard.command_line import main as guard

    return guard(list(arguments), environ)


def _examine_agents(arguments: Sequence[str]) -> int:
    with _naming_the_extra("agents"):
        from openai_responses_mcp.agents.command_line import main as diagnose
    return diagnose(arguments)


def _operate(arguments: Sequence[str]) -> int:
    with _naming_the_extra("guard"):
        from openai_responses_mcp.desk.terminal.command_line import main as operate
    return operate(list(arguments))


@contextlib.contextmanager
def _naming_the_extra(extra: Literal["agents", "guard", "http"]) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as exc:
        if (exc.name or "").startswith("openai_responses_mcp"):
            raise
        from openai_responses_mcp.domain.extras import needs_extra

        raise UsageError(needs_extra(extra, exc.name)) from exc


def _run(options: Options, environ: Mapping[str, str]) -> int:
    if options.help or options == Options():
        return _help()
    if options.version:
        return _say(f"{__version__}\n")
    _check(options)
    if options.completion is not None:
        return _completion(options.completion)
    if options.init:
        from openai_responses_mcp.commands.init import init

        return init(options.config, environ)
    if options.doctor:
        return _examine(options, environ)
    configuration = load(_flags(options), environ)
    for warning in configuration.warnings:
        _tell(f"warning: {warning}")
    if options.show_config:
        _write_stderr(json.dumps(show(configuration, environ), ensure_ascii=False, indent=2) + "\n")
    return _command(options, configuration, environ)


def _command(options: Options, configuration: Configuration, environ: Mapping[str, str]) -> int:
    if options.ask is not None:
        return _ask(options, configuration, environ)
    if options.fetch is not None:
        from openai_responses_mcp.commands.asking import fetch

        return fetch(options.fetch.strip(), configuration, environ, is_json=options.json)
    if options.stdio:
        from openai_responses_mcp.commands.serve import serve_stdio

        if configuration.settings.server.show_config_on_start:
            _tell(_summary(configuration))
        return serve_stdio(configuration, environ, rehearses=options.rehearse)
    if options.http is not None:
        return _serve_http(options.http, options, configuration, environ)
    return 0 if options.show_config else _help()


def _serve_http(where: str, options: Options, configuration: Configuration, environ: Mapping[str, str]) -> int:
    with _naming_the_extra("http"):
        from openai_responses_mcp.commands.serve_http import USUAL_DRAIN_SECONDS, HttpOptions, address_in, serve_http
    try:
        host, port = address_in(where)
    except ValueError:
        raise UsageError(f"--http takes [HOST:]PORT (found {where}) {_SEE_HELP}") from None
    try:
        drain_seconds = USUAL_DRAIN_SECONDS if options.drain is None else float(options.drain)
        if not 0 <= drain_seconds <= _LONGEST_DRAIN_SECONDS:
            raise ValueError
    except ValueError:
        raise UsageError(f"--drain takes 0 to {_LONGEST_DRAIN_SECONDS} seconds (found {options.drain})") from None
    wanted = HttpOptions(host, port, drain_seconds, options.tls_cert, options.tls_key)
    return serve_http(wanted, configuration, environ, rehearses=options.rehearse)


def _ask(options: Options, configuration: Configuration, environ: Mapping[str, str]) -> int:
    from openai_responses_mcp.commands.asking import Inquiry, Unaskable, ask

    tools = [] if options.tool is None else [options.tool]
    tools += ["answer_detailed"] * options.detailed + ["answer_quick"] * options.quick
    inquiry = Inquiry(
        question=options.ask or "",
        tools=tuple(tools),
        continues=options.continues,
        domains=options.domains,
        recency=options.recency,
        style=options.style,
    )
    try:
        return ask(inquiry, configuration, environ, rehearses=options.rehearse, is_json=options.json)
    except Unaskable as exc:
        raise UsageError(str(exc)) from exc


def _examine(options: Options, environ: Mapping[str, str]) -> int:
    from openai_responses_mcp.commands.doctor.examining import examine

    configuration, problems = load_what_can_be_used(_flags(options), environ)
    return examine(configuration, environ, problems)


def _completion(shell: str) -> int:
    from openai_responses_mcp.commands.completion import SCRIPTS

    if shell not in SCRIPTS:
        raise UsageError(f"--completion must be one of {', '.join(SCRIPTS)} (found {shell})")
    return _say(SCRIPTS[shell]())


def _help() -> int:
    from openai_responses_mcp.commands.usage import HELP

    return _say(HELP)


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
    except BrokenPipeError:
        raise
    except OSError as exc:
        _tell(f"cannot write to stdout ({exc.strerror})")
        return 1
    return 0


def _complain(*problems: str) -> int:
    for problem in problems:
        _tell(problem)
    return 2


def _presentable(text: str, environ: Mapping[str, str]) -> str:
    """On one line, whatever the arguments hold. One of them may be a key, which is masked."""
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
    """Straight to the descriptor. If that is closed, nothing is written, and the program goes on."""
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
    except SystemExit as exc:  # How argparse ends.
        code = exc.code if isinstance(exc.code, int) else int(exc.code is not None)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def _replace_closed_streams() -> None:
    """Python has no stream where a descriptor was closed from the start. What is written there is dropped."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 -- open until the end
