"""Which command runs, and its exit code.

0 done, 1 the question or the check failed, 2 the command line or the configuration is wrong, 3 the answer is incomplete.
"""

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, NoReturn

from openai_responses_mcp import __version__
from openai_responses_mcp.commands.usage import (
    COMMAND_WORDS,
    DEMO_QUESTION,
    HELP,
    PROGRAM,
    BadCommandLine,
    Options,
    parse,
)
from openai_responses_mcp.config.loading import ConfigError, Configuration, Flags, load, load_what_can_be_used, show
from openai_responses_mcp.domain.texts import Sentence, one_line

if TYPE_CHECKING:
    from types import TracebackType

    from openai_responses_mcp.commands.doctor.report import Line

_WARNING = "WARNING:"


def main(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> int:
    """The exit code."""
    try:
        # Client files may still have `agents guard` and the like.
        words = list(arguments[1:] if arguments[:1] == ["agents"] else arguments)
        if words[:2] == ["guard", "doctor"]:
            from openai_responses_mcp.guard.doctor import main as examine_guards

            return examine_guards(words[2:], environ)
        if words[:1] == ["guard"]:
            # Loads the guard alone: a client is waiting.
            from openai_responses_mcp.guard.command_line import main as guard

            return guard(words[1:], environ)
        if arguments[:2] == ["agents", "doctor"]:
            with _naming_the_extra("agents"):
                from openai_responses_mcp.agents.command_line import main as examine_agents
            return examine_agents(arguments[2:])
        if arguments[:1] == ["agents"] or (words and words[0] in COMMAND_WORDS):
            with _naming_the_extra("guard"):
                from openai_responses_mcp.desk.terminal.command_line import main as operate
            return operate(words)
        # What clients start. They wait for it, so it skips the parser.
        return _run(Options(stdio=True) if words == ["--stdio"] else parse(words), environ)
    except BadCommandLine as exc:
        _tell(_presentable(_said(exc.args[0], environ), environ), _presentable(exc.paste, environ))
        return 2
    except ConfigError as exc:
        for problem in exc.problems:
            _tell(_said(problem, environ))
        return 2
    except BrokenPipeError:  # The reader has closed the pipe, as `| head -1` does.
        return 0
    except KeyboardInterrupt:
        return 130


@contextlib.contextmanager
def _naming_the_extra(extra: Literal["agents", "guard", "http"]) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as exc:
        if (exc.name or "").startswith("openai_responses_mcp"):
            raise
        from openai_responses_mcp.domain.extras import needs_extra

        raise BadCommandLine(needs_extra(extra, exc.name)) from exc


def _run(options: Options, environ: Mapping[str, str]) -> int:
    if options.help or options == Options():
        return _say(_help(environ))
    if options.version:
        return _say(f"{__version__}\n")
    if options.completion is not None:
        from openai_responses_mcp.commands.completion import SCRIPTS

        return _say(SCRIPTS[options.completion]())
    if options.init:
        from openai_responses_mcp.commands.init import init

        return init(options.config, environ)
    if options.doctor:
        return _examine(options, environ)
    configuration = load(_flags(options), environ, partial(_said, environ=environ))
    for warning in configuration.warnings:
        _warn(warning, environ)
    if options.show_config:
        _write_stderr(json.dumps(show(configuration, environ), ensure_ascii=False, indent=2) + "\n")
    if options.ask is not None:
        from openai_responses_mcp.commands.asking import ask

        if options.rehearse and options.ask == DEMO_QUESTION:
            _tell(_said(Sentence("asking the demo question: {question}", question=DEMO_QUESTION), environ))
        return ask(options, configuration, environ)
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
    return 0 if options.show_config else _say(_help(environ))


def _serve_http(where: str, options: Options, configuration: Configuration, environ: Mapping[str, str]) -> int:
    with _naming_the_extra("http"):
        from openai_responses_mcp.commands.serve_http import http_options, serve_http
    try:
        wanted = http_options(where, options.drain, options.tls_cert, options.tls_key)
    except ValueError as exc:
        raise BadCommandLine(exc.args[0]) from None
    return serve_http(wanted, configuration, environ, rehearses=options.rehearse)


def _examine(options: Options, environ: Mapping[str, str]) -> int:
    import importlib.util

    from openai_responses_mcp.commands.doctor.examining import examine

    configuration, problems = load_what_can_be_used(_flags(options), environ, partial(_said, environ=environ))

    def guarded_lines(folder: str) -> "Iterator[Line]":
        # Policies and stores can be checked only with the extra.
        if importlib.util.find_spec("sqlalchemy") is not None:
            from openai_responses_mcp.guard import doctor

            yield from doctor.guarded_lines(environ, folder, names_unreadable=False)

    return examine(configuration, environ, problems, guarded_lines)


def _flags(options: Options) -> Flags:
    debug = options.debug
    return Flags(options.config, options.model, debug=debug is not None, debug_file=debug or None)


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


def _help(environ: Mapping[str, str]) -> str:
    from openai_responses_mcp.commands.words import with_note

    return with_note(HELP, environ)


def _said(sentence: str, environ: Mapping[str, str]) -> str:
    from openai_responses_mcp.commands.words import speaking

    return speaking(environ)(sentence)


def _presentable(text: str, environ: Mapping[str, str]) -> str:
    """On one line, whatever the arguments hold. One of them may be a key, which is masked."""
    return one_line(_masked(text, environ))


def _masked(text: str, environ: Mapping[str, str]) -> str:
    from openai_responses_mcp.domain.masking import SecretMask, secrets_in

    return SecretMask(secrets_in(environ, key_variable="OPENAI_API_KEY", base_url=""))(text)


def _report_crash(kind: type[BaseException], error: BaseException, trace: "TracebackType | None") -> None:
    """The traceback of an uncaught exception, without secrets."""
    import traceback

    _write_stderr(_masked("".join(traceback.format_exception(error)), os.environ))


def _tell(line: str, paste: str = "") -> None:
    from openai_responses_mcp.commands.live import fitted

    _write_stderr(fitted(f"{PROGRAM}: {line}", sys.stderr, paste))


def _warn(line: str, environ: Mapping[str, str]) -> None:
    from openai_responses_mcp.commands.live import fitted, is_lively

    text = fitted(f"{PROGRAM}: {_WARNING} {line}", sys.stderr)
    loud = f"\x1b[1;33m{_WARNING}\x1b[0m"
    _write_stderr(text.replace(_WARNING, loud, 1) if is_lively(sys.stderr, environ) else text)


def _write_stderr(text: str) -> None:
    """Write to the descriptor directly. Nothing happens if it is closed."""
    with contextlib.suppress(OSError):
        os.write(2, text.encode("utf-8", "backslashreplace"))


def run_and_leave() -> NoReturn:
    """Run and exit at once, without waiting for threads that still import or read."""
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
    """A stream is None if its descriptor was closed at the start. What is written there is dropped."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 -- open until the end
