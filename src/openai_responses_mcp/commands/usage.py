"""The command line of the answering server: its options, the help, and how arguments become `Options`.

One table of options serves the parser, the help and the completions. Only `parse` loads argparse: clients start
`--stdio`, which does without it.
"""

import shlex
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import NamedTuple

from openai_responses_mcp import __version__
from openai_responses_mcp.domain.texts import Sentence
from openai_responses_mcp.server.tools import STYLES

PROGRAM = "openai-responses-mcp"


class Option(NamedTuple):
    """`value` is the placeholder after the flag, in brackets if optional; `choices` are the allowed values."""

    flag: str
    value: str
    words: str
    choices: tuple[str, ...] = ()

    @property
    def may_lack_value(self) -> bool:
        return self.value.startswith("[") and self.value.endswith("]")

    @property
    def spelled(self) -> str:
        return f"{self.flag} {self.value}".strip()


TOOLS = ("answer", "answer_detailed", "answer_quick")
SHELLS = ("bash", "zsh", "fish")
ASKED_AT = ("auto", "client", "desk")
PROFILES = ("strict", "balanced", "fast")

COMMANDS = (
    Option("--stdio", "", "serve an MCP client on stdin and stdout"),
    Option("--http", "[<host>:]<port>", "serve MCP clients over HTTP"),
    Option("--ask", '"<question>"', "answer one question; - reads it from stdin"),
    Option("--fetch", "<response id>", "show the answer of research that ran at the API"),
    Option("--doctor", "", "check configuration, key, API and client set-up"),
    Option("--show-config", "", "show the effective configuration (JSON, on stderr)"),
    Option("--init", "", "write a configuration file to start from"),
    Option("--completion", "<shell>", "print completions for bash, zsh or fish", SHELLS),
)
ASKING = (
    Option("--tool", "<name>", "answer (default), answer_detailed or answer_quick", TOOLS),
    Option("--detailed", "", "the same as --tool answer_detailed"),
    Option("--quick", "", "the same as --tool answer_quick"),
    Option("--continue", "[<id>]", "continue the last answer, or the given id"),
    Option("--domains", "<a,b>", "prefer these sites"),
    Option("--recency", "<days>", "how many days old sources may be"),
    Option("--style", "<style>", "summary, bullets or citations-only", STYLES),
    Option("--json", "", "print the structured result (also with --fetch)"),
)
GENERAL = (
    Option("--config", "<path>", "read this YAML file instead of the default one"),
    Option("--model", "<id>", "use this model for the answer profile"),
    Option("--debug", "[<path>]", "log what happens on stderr, and to this file"),
    Option("--rehearse", "", "no key: a stand-in answers; alone: a demo question"),
    Option("--drain", "<seconds>", "with --http: how long calls may take at the end"),
    Option("--tls-cert", "<path>", "with --http: a certificate, in PEM"),
    Option("--tls-key", "<path>", "with --http: its key"),
    Option("--help", "", "show this help (-h)"),
    Option("--version", "", "show the version (-v)"),
)

# The commands of `agents`, and the words that can follow each.
AGENTS: Mapping[str, tuple[str, ...]] = {
    "guard": (),
    "approvals": ("list", "show", "approve", "deny", "allow", "standing", "revoke", "watch", "serve"),
    "log": ("show", "verify", "archive", "accept-loss"),
    "policy": ("check", "test", "suggest"),
    "status": (),
    "doctor": (),
}
GUARDING = (
    Option("--name", "NAME", "its name in rules and log (default: from its command)"),
    Option("--policy", "FILE", "the rules: what runs, what asks, what is refused"),
    Option("--profile", "NAME", "tools without a rule: strict, balanced (default), fast", PROFILES),
    Option("--store", "URL", "requests and log (default: a SQLite file of your own)"),
    Option("--wait", "SECONDS", "how long a call waits for a person (default: 300)"),
    Option("--ask", "WHERE", "where a person is asked: auto (default), client, desk", ASKED_AT),
    Option("--url", "URL", "a remote server, in place of a command"),
    Option("--header-env", "NAME=VAR", "with --url: a header from a variable; repeatable"),
    Option("--observe", "", "every call passes; decisions are only recorded"),
    Option("--http", "[HOST:]PORT", "serve a team: a server process per session or caller"),
    Option("--config", "FILE", "with --http: the file whose http: section says who may"),
    Option("--max-servers", "N", "with --http: server processes at most (default: 32)"),
    Option("--drain", "SECONDS", "with --http: time for calls at the end (default: 25)"),
    Option("--tls-cert", "FILE", "with --http: a certificate, in PEM"),
    Option("--tls-key", "FILE", "with --http: its key"),
)


def table(options: tuple[Option, ...], width: int = 26) -> str:
    return "\n".join(f"  {option.spelled:<{width}}{option.words}" for option in options)


HELP = f"""\
{PROGRAM} {__version__}: answers questions for MCP clients, with sources,
through the OpenAI Responses API; and guards any other MCP server.

Usage: {PROGRAM} "<question>"     the same as --ask "<question>"
       {PROGRAM} <command> [options]
       {PROGRAM} guard ...        stand in front of an MCP server
       {PROGRAM} approvals ...    decide what waits
       {PROGRAM} policy ...       check, test or suggest rules
       {PROGRAM} log ...          read the log of calls
       {PROGRAM} status           what runs, waits and ran

Commands:
{table(COMMANDS)}

With --ask (text from a pipe or file is material to the question):
{table(ASKING)}

Options:
{table(GENERAL)}

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 incomplete.
More on these (the extra "guard"): {PROGRAM} guard --help
Set OPENAI_API_KEY in the environment, or try --rehearse without a key.
"""

# The command line, understood

OPTIONS = (*COMMANDS, *ASKING, *GENERAL)
KEYS_PAGE = "https://platform.openai.com/api-keys"
WITHOUT_A_KEY = Sentence(
    "Keys come from {page}. To try it without one: {program} --rehearse", page=KEYS_PAGE, program=PROGRAM
)
DEMO_QUESTION = "What does HTTP status 404 mean?"
COMMAND_WORDS = ("agents", "guard", "approvals", "log", "policy", "status")
_GUARD_VERBS = ("setup", "login")
_TOGETHER = (["--stdio", "--show-config"], ["--http", "--show-config"], ["--fetch", "--json"])
_SERVING = ("--drain", "--tls-cert", "--tls-key")
_SHORT = {"--help": "-h", "--version": "-v"}
_ID = "resp_"
_UNSAFE_IN_DOUBLE_QUOTES = frozenset('"$`\\!%')


class BadCommandLine(Exception):
    """The command line cannot be understood; the text says why, on one line. `paste` is the command that was meant."""

    def __init__(self, mistake: str, paste: str = "") -> None:
        super().__init__(mistake)
        self.paste = paste


class Options(SimpleNamespace):
    """The given options. None or False: not given; an empty text: given without its optional value."""

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
    domains: str | None = None
    recency: str | None = None
    style: str | None = None
    json: bool = False
    config: str | None = None
    model: str | None = None
    debug: str | None = None

    def given(self, options: Sequence[Option]) -> list[str]:
        return [one.flag for one in options if getattr(self, _field(one.flag)) not in (None, False)]


def parse(arguments: Sequence[str]) -> Options:
    """Raises `BadCommandLine`. Takes `--name value` and `--name=value`; the last one given counts."""
    import argparse

    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for option in OPTIONS:
        flags = [option.flag, *filter(None, [_SHORT.get(option.flag)])]
        if not option.value:
            parser.add_argument(*flags, dest=_field(option.flag), action="store_true")
        elif option.may_lack_value:
            parser.add_argument(*flags, dest=_field(option.flag), nargs="?", const="")
        else:
            parser.add_argument(*flags, dest=_field(option.flag))
    options = Options()
    try:
        _, rest = parser.parse_known_args(_with_ids_only(arguments), options)
    except argparse.ArgumentError as exc:
        flag = (exc.argument_name or "").partition("/")[0]
        takes_value = any(option.value for option in OPTIONS if option.flag == flag)
        raise _wrong("{option} needs a value" if takes_value else "{option} takes no value", option=flag) from exc
    _take_question(options, rest, arguments)
    _check(options)
    return options


def _field(flag: str) -> str:
    return "continues" if flag == "--continue" else flag.strip("-").replace("-", "_")


def _with_ids_only(arguments: Sequence[str]) -> list[str]:
    """`--continue` takes the word behind it only if that is an id; otherwise it is the question."""
    return [
        f"{word}=" if word == "--continue" and not after.startswith(_ID) else word
        for word, after in zip(arguments, [*arguments[1:], ""], strict=False)
    ]


def _take_question(options: Options, rest: Sequence[str], arguments: Sequence[str]) -> None:
    """The one argument that belongs to no option is the question."""
    for word in rest:
        if word.startswith("-") and word != "-":
            near = _nearest(word, [option.flag for option in OPTIONS])
            raise _wrong("unknown option {word}{near}", word=word, near=near)
    asked = [] if options.ask is None else [options.ask]
    if len(asked) + len(rest) > 1:
        others = _without(arguments, ["--ask", *asked, *rest])
        line = " ".join([PROGRAM, _quoted(" ".join([*asked, *rest])), *map(shlex.quote, others)])
        if near := _nearest(arguments[0], COMMAND_WORDS):
            says = "unknown command {word}{near} To ask a question, put the question in quotes:"
            raise BadCommandLine(Sentence(says, word=arguments[0], near=near), line)
        raise BadCommandLine(Sentence("put the question in quotes:"), line)
    for word in rest:
        if word in COMMAND_WORDS:
            raise _wrong("{word} is a command: write it first", word=word)
        meant = {option.flag.strip("-"): option.flag for option in OPTIONS}
        for area, verbs in {**AGENTS, "guard": _GUARD_VERBS}.items():
            meant |= {verb: f"{area} {verb}" for verb in verbs if verb not in meant}
        if word in meant:
            near = Sentence(": did you mean {near}?", near=meant[word])
            raise _wrong("unknown command {word}{near}", word=word, near=near)
        if near := _nearest(word, COMMAND_WORDS):
            raise BadCommandLine(
                Sentence("unknown command {word}{near} To ask a question:", word=word, near=near),
                f"{PROGRAM} --ask {_quoted(word)}",
            )
        options.ask = word


def _nearest(word: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word.partition("=")[0], known, n=1, cutoff=0.75)
    return Sentence(": did you mean {near}?", near=near[0]) if near else ""


def _wrong(template: str, /, **facts: object) -> BadCommandLine:
    """A mistake that the help explains."""
    mistake = Sentence(template, **facts)
    return BadCommandLine(Sentence("{mistake} (see {program} --help)", mistake=mistake, program=PROGRAM))


def _without(arguments: Sequence[str], taken: Sequence[str]) -> list[str]:
    left = list(arguments)
    for word in taken:
        if word in left:
            left.remove(word)
    return [word for word in left if not word.startswith("--ask=")]


def _quoted(question: str) -> str:
    """In double quotes, which every shell knows, unless a shell would expand something inside."""
    return shlex.quote(question) if _UNSAFE_IN_DOUBLE_QUOTES & {*question} else f'"{question}"'


def _check(options: Options) -> None:
    """Raises `BadCommandLine` for options that conflict."""
    if options.help or options.version:
        return
    commands, asking = options.given(COMMANDS), options.given(ASKING)
    if options.rehearse and not commands:
        options.ask = DEMO_QUESTION
        commands = ["--ask"]
    if len(commands) > 1 and sorted(commands) not in map(sorted, _TOGETHER):
        raise _wrong("{first} and {second} do not go together", first=commands[0], second=commands[1])
    if asking and commands != ["--ask"] and commands + asking not in _TOGETHER:
        raise _wrong("{option} goes with {others}", option=asking[0], others="--ask")
    serving = options.given([option for option in GENERAL if option.flag in _SERVING])
    if serving and options.http is None:
        raise _wrong("{option} goes with {others}", option=serving[0], others="--http")
    if options.rehearse and not {"--stdio", "--http", "--ask"} & {*commands}:
        raise _wrong("--rehearse goes with --stdio, --http or --ask")
    if options.ask is not None and not options.ask.strip():
        raise BadCommandLine(Sentence("--ask needs a question"))
    if options.fetch is not None and not options.fetch.strip():
        raise BadCommandLine(Sentence("--fetch needs the id of a response"))
    if options.continues and not options.continues.startswith(_ID):
        raise _wrong("--continue takes the id of an answer, which starts with {beginning}", beginning=_ID)
    for option in OPTIONS:
        found = getattr(options, _field(option.flag))
        if option.choices and found is not None and found not in option.choices:
            says, names = "{option} must be one of {names} (found {found})", ", ".join(option.choices)
            raise BadCommandLine(Sentence(says, option=option.flag, names=names, found=found))
