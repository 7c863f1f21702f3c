"""What can be written on the command line, in words: the help, and what shells complete."""

from collections.abc import Mapping
from typing import NamedTuple

from openai_responses_mcp import __version__
from openai_responses_mcp.server.tools import STYLES

PROGRAM = "openai-responses-mcp"


class Option(NamedTuple):
    """`value` is what follows the flag, in brackets where it may be left out; `choices` are all it can be."""

    flag: str
    value: str
    words: str
    choices: tuple[str, ...] = ()

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
    Option("--fetch", "<response id>", "show the answer of research that went on at the API"),
    Option("--doctor", "", "check configuration, key, API and client set-up"),
    Option("--show-config", "", "show the effective configuration (JSON, on stderr)"),
    Option("--init", "", "write a configuration file to start from"),
    Option("--completion", "<shell>", "print completions for bash, zsh or fish", SHELLS),
)
ASKING = (
    Option("--tool", "<name>", "answer (default), answer_detailed or answer_quick", TOOLS),
    Option("--detailed", "", "the same as --tool answer_detailed"),
    Option("--quick", "", "the same as --tool answer_quick"),
    Option("--continue", "[<id>]", "go on with the last answer, or with that of this id"),
    Option("--domains", "<a,b>", "prefer these sites"),
    Option("--recency", "<days>", "how many days old sources may be"),
    Option("--style", "<style>", "summary, bullets or citations-only", STYLES),
    Option("--json", "", "print the structured result (also with --fetch)"),
)
GENERAL = (
    Option("--config", "<path>", "read this YAML file instead of the default one"),
    Option("--model", "<id>", "use this model for the answer profile"),
    Option("--debug", "[<path>]", "log what happens on stderr, and to this file"),
    Option("--rehearse", "", "no key: a stand-in answers"),
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
    "log": ("show", "verify", "accept-loss"),
    "policy": ("check", "test", "suggest"),
    "status": (),
    "doctor": (),
}
GUARDING = (
    Option("--name", "NAME", "what the server is called in rules and in the log (default: the command's name)"),
    Option("--policy", "FILE", "rules: which tools run alone, which ask a human, which are refused"),
    Option(
        "--profile",
        "NAME",
        "strict, balanced or fast, for tools without a rule (default: the file's, else balanced)",
        PROFILES,
    ),
    Option("--store", "URL", "where requests and the log are kept (default: a SQLite file of your own)"),
    Option("--wait", "SECONDS", "how long a call waits for a human (default: the file's, else 300)"),
    Option("--ask", "WHERE", "auto, client or desk: where a human is asked (default: the file's, else auto)", ASKED_AT),
    Option("--observe", "", "everything passes, nobody is asked; what would have been decided is recorded"),
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

Commands:
{table(COMMANDS)}

With --ask (text from a pipe or file is material to the question):
{table(ASKING)}

Options:
{table(GENERAL)}

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 incomplete.
More on these (the extra "guard"): {PROGRAM} guard --help
Set OPENAI_API_KEY in the environment. Try it without a key:
  {PROGRAM} "What is HTTP 404?" --rehearse
"""
