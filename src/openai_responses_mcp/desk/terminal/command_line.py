"""`openai-responses-mcp approvals|log|status …`: a person at a terminal decides, reads the log, sees what runs.

    approvals list [--run RUN] [--all]
    approvals show ID
    approvals approve ID [--comment TEXT] [--arguments JSON|@FILE]
    approvals deny ID [--comment TEXT] [--tell-model]
    approvals allow ID --for 8h|--session|--always [--same-arguments|--reads] [--comment TEXT]
    approvals standing | revoke ID [--comment TEXT]
    approvals watch
    approvals serve [--port N] [--open]
    approvals serve --http [HOST:]PORT [--config FILE] [--tls-cert FILE --tls-key FILE] [--open]
    log [--run RUN] [--since TIME] [--records]
    log show CALL | verify [ARCHIVE] | accept-loss --reason TEXT
    log archive --before DATE FILE
    status

`agents approvals` and `agents log` are the same. The store is the one that `--store` or AGENTS_STORE names, else the
guard's own. Exit 0: done; 1: refused, or the log is not intact; 2: wrong usage, or a store or a port that cannot be
used; 130: Ctrl-C.

`serve` prints a link that opens the desk once, in one browser; for a team, it is where each person signs in.
"""

import argparse
import asyncio
import os
import sys
import threading
import webbrowser
from collections.abc import Callable, Coroutine, Mapping, Sequence
from importlib.util import find_spec

from openai_responses_mcp.desk.opening import open_desk_parts, serve_desk, serve_team_desk
from openai_responses_mcp.desk.terminal import approvals, log, policy, watch
from openai_responses_mcp.desk.terminal.console import PROGRAM, Console, complain, json_of, words_here
from openai_responses_mcp.desk.terminal.parsing import CommandParser, duration, json_arguments, moment, port_number
from openai_responses_mcp.domain.extras import needs_extra
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.sql.own_files import store_from, store_to_wait_at, why_no_store

_USAGE_CODES = ("AGENTS-E-RUNNER-CONFIG", "AGENTS-E-LOG-STORE")
_INTERRUPTED = 130
_LOOKING = ("list", "standing", "log", "status")

Command = Callable[[Console, argparse.Namespace], Coroutine[object, None, int]]

_COMMANDS: Mapping[str, Command] = {
    "list": approvals.show_list,
    "show": approvals.show_one,
    "approve": approvals.decide,
    "deny": approvals.decide,
    "allow": approvals.allow,
    "standing": approvals.show_standing,
    "revoke": approvals.revoke,
    "watch": watch.watch,
    "log": log.show_log,
    "log show": log.show_call,
    "log verify": log.verify,
    "log archive": log.archive,
    "log accept-loss": log.accept_loss,
    "status": log.show_status,
}


def main(argv: Sequence[str], open_browser: Callable[[str], object] = webbrowser.open) -> int:
    if list(argv[:1]) == ["policy"]:
        return policy.main(argv[1:])
    arguments = _parser().parse_args(list(argv))
    is_waiting = arguments.command in ("watch", "serve")
    try:
        store = (store_to_wait_at if is_waiting else store_from)(arguments.store, os.environ)
        if not store:
            return _without_store(arguments)
        if arguments.command == "serve":
            return _serve(store, arguments, open_browser)
        arguments.shown_store = store.partition("@")[2] or store
        console = Console(open_desk_parts(store, arguments.audit_head), is_json=bool(arguments.json))
        return asyncio.run(_run(console, arguments))
    except AgentsError as exc:
        return complain(words_here().error(exc), 2 if exc.code in _USAGE_CODES else 1)
    except ModuleNotFoundError as exc:
        return complain(needs_extra("guard", exc.name))
    except KeyboardInterrupt:
        if arguments.command != "serve":
            sys.stdout.write("\n")
        return _INTERRUPTED


def _without_store(arguments: argparse.Namespace) -> int:
    """Before the guard has run there is nothing to show, which is no error."""
    is_looking = arguments.command in _LOOKING and not getattr(arguments, "verify", False)
    if not is_looking or not find_spec("sqlalchemy"):
        return complain(why_no_store())
    none_yet = words_here()("There is no store yet; the first guarded call makes one.")
    sys.stdout.write("[]\n" if arguments.json else f"{none_yet}\n")
    return 0


async def _run(console: Console, arguments: argparse.Namespace) -> int:
    if hasattr(arguments, "approval_id"):
        is_show = arguments.command == "show"
        arguments.approval_id = await approvals.full_id(console, arguments.approval_id, prefers_waiting=is_show)
    return await _COMMANDS[arguments.command](console, arguments)


def _serve(store: str, arguments: argparse.Namespace, open_browser: Callable[[str], object]) -> int:
    is_for_team, words = arguments.http is not None, words_here()

    def show(link: str) -> None:
        about = words("The link works once, on this machine. Ctrl-C closes the desk.")
        if is_for_team:
            about = words("Each person signs in with a token. Ctrl-C closes the desk.")
        for_people = f"{words('The desk is open:')}\n\n  {link}\n\n{about}\n"
        is_json = arguments.json or not sys.stdout.isatty()
        sys.stdout.write(f"{json_of({'link': link})}\n" if is_json else for_people)
        sys.stdout.flush()
        if arguments.open:
            # In a thread: some browsers return only when they are closed.
            threading.Thread(target=open_browser, args=(link,), daemon=True).start()

    if is_for_team:
        tls = (arguments.tls_cert, arguments.tls_key)
        given = (store, arguments.audit_head, arguments.http, arguments.config, tls, os.environ)
        return asyncio.run(serve_team_desk(*given, on_listening=show))
    asyncio.run(serve_desk(store, arguments.audit_head, port=arguments.port, on_listening=show))
    return 0


def _shared(default: str | None = None) -> CommandParser:
    """Options of every command. A subcommand has no defaults: they would replace values given before it."""
    shared = CommandParser(add_help=False, argument_default=default)
    shared.add_argument("--store", metavar="URL", help="the store (else AGENTS_STORE, else the guard's own)")
    shared.add_argument(
        "--audit-head", metavar="FILE", help="where the head of the log is kept, if not beside the file"
    )
    shared.add_argument("--json", action="store_const", const=True, help="JSON for programs")
    return shared


def _parser() -> CommandParser:
    shared = _shared()
    parser = CommandParser(PROGRAM, description="Approvals, the log, and what runs now.", allow_abbrev=False)
    areas = parser.add_subparsers(dest="area", required=True, metavar="COMMAND")
    # Only for their help: `cli` starts these.
    areas.add_parser("guard", help="stand in front of an MCP server: no tool of it runs unchecked")
    _add_approvals(
        areas.add_parser("approvals", help="list, show, approve, deny, allow; watch here or on a page"), shared
    )
    _add_log(areas.add_parser("log", parents=[shared], help="what was called, who decided, what came of it"))
    areas.add_parser("policy", help="check a policy file, try it on the log, or have one suggested")
    areas.add_parser("status", parents=[shared], help="what runs, what waits, who is at the desk").set_defaults(
        command="status"
    )
    areas.add_parser("doctor", help="check provider, store, MCP servers and skills")
    return parser


def _add_approvals(area: CommandParser, shared: CommandParser) -> None:
    verbs = area.add_subparsers(dest="command", required=True, metavar="COMMAND")
    listing = verbs.add_parser("list", parents=[shared], help="what waits for a person")
    listing.add_argument("--run", metavar="RUN", help="of one run, or of one session of the guard")
    listing.add_argument("--all", action="store_true", help="each request on its own line")
    verbs.add_parser("show", parents=[shared], help="one request, with all its arguments").add_argument(
        "approval_id", metavar="ID"
    )
    approve = verbs.add_parser("approve", parents=[shared], help="let it run")
    approve.add_argument("--arguments", metavar="JSON|@FILE", type=json_arguments, help="instead of the call's own")
    deny = verbs.add_parser("deny", parents=[shared], help="do not let it run")
    deny.add_argument("--tell-model", action="store_true", help="tell the model, and let an agent's run go on")
    allow = verbs.add_parser("allow", parents=[shared], help="approve it, and the like of it from now on")
    terms = allow.add_mutually_exclusive_group(required=True)
    terms.add_argument("--for", dest="for_seconds", metavar="TIME", type=duration, help="such as 30m, 8h or 7d")
    terms.add_argument("--session", action="store_true", help="as long as its run, or the guard that asks, goes on")
    terms.add_argument("--always", action="store_true", help="until it is revoked")
    covering = allow.add_mutually_exclusive_group()
    covering.add_argument("--same-arguments", action="store_true", help="only with exactly these arguments")
    covering.add_argument(
        "--reads", action="store_true", help="every tool of this server that claims to read only, as it is listed now"
    )
    for verb in (approve, deny, allow):
        verb.add_argument("approval_id", metavar="ID", help="an id, or the beginning of one")
        verb.add_argument("--comment", metavar="TEXT", help="kept in the log")
    verbs.add_parser("standing", parents=[shared], help="what is allowed from now on")
    revoke = verbs.add_parser("revoke", parents=[shared], help="end a standing approval")
    revoke.add_argument("standing_id", metavar="ID", help="its id, or that of the request it was made from")
    revoke.add_argument("--comment", metavar="TEXT", help="kept in the log")
    verbs.add_parser("watch", parents=[shared], help="decide with single keys as requests come")
    serve = verbs.add_parser("serve", parents=[shared], help="decide on a page in the browser, on this machine")
    serve.add_argument(
        "--port", metavar="N", type=port_number, default=0, help="the port on 127.0.0.1, by default a free one"
    )
    serve.add_argument("--http", metavar="[HOST:]PORT", help="for a team: each person signs in with a token")
    serve.add_argument("--config", metavar="FILE", help="with --http: the file whose http: section says who may")
    serve.add_argument("--tls-cert", metavar="FILE", help="with --http: a certificate, in PEM")
    serve.add_argument("--tls-key", metavar="FILE", help="with --http: its key")
    serve.add_argument("--open", action="store_true", help="open the link in the browser")


def _add_log(log: CommandParser) -> None:
    log.add_argument("--run", metavar="RUN", help="of one run, or of one session of the guard")
    log.add_argument("--since", metavar="TIME", help="such as 2026-11-16T09:00:00+09:00")
    log.add_argument("--records", action="store_true", help="every record instead of one line a call")
    log.add_argument("--verify", action="store_true", help="the same as `log verify`")
    log.set_defaults(command="log")
    inherited = [_shared(argparse.SUPPRESS)]
    verbs = log.add_subparsers(dest="verb", metavar="COMMAND")
    show = verbs.add_parser("show", parents=inherited, help="all records of one call")
    show.add_argument("call", metavar="CALL", help="its number, from the first column of `log`")
    show.set_defaults(command="log show")
    verify = verbs.add_parser("verify", parents=inherited, help="check that nothing was changed, removed or inserted")
    verify.add_argument(
        "file", metavar="ARCHIVE", nargs="?", help="a file that `log archive` wrote, instead of the log"
    )
    verify.set_defaults(command="log verify")
    archive = verbs.add_parser("archive", parents=inherited, help="move old records into a file; both can be checked")
    archive.add_argument("--before", metavar="DATE", required=True, type=moment, help="such as 2026-11-01, local time")
    archive.add_argument("file", metavar="FILE", help="a new file")
    archive.set_defaults(command="log archive")
    accepting = verbs.add_parser(
        "accept-loss", parents=inherited, help="accept the log in its present state; that is a record too"
    )
    accepting.add_argument("--reason", metavar="TEXT", required=True, help="why; kept in the log")
    accepting.set_defaults(command="log accept-loss")
