"""`openai-responses-mcp approvals serve`: a person decides on a page in the browser instead of in the terminal.

    approvals serve [--store URL] [--audit-head FILE] [--port N] [--open] [--json]
    approvals serve --http [HOST:]PORT [--config FILE] [--tls-cert FILE --tls-key FILE]    for a team, with tokens

The link on stdout opens the desk once, in one browser; for a team, it is where each person signs in. Exit 130 after Ctrl-C; 2: wrong usage, or a store or a port that
cannot be used.
"""

import argparse
import asyncio
import os
import sys
import threading
import webbrowser
from collections.abc import Callable, Sequence

from openai_responses_mcp.desk.opening import serve_desk, serve_team_desk
from openai_responses_mcp.desk.terminal.output import json_of
from openai_responses_mcp.desk.terminal.typed_values import CommandParser, words_here
from openai_responses_mcp.domain.extras import needs_extra
from openai_responses_mcp.domain.texts import visible
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.sql.own_files import store_to_wait_at, why_no_store

_INTERRUPTED = 130


def main(argv: Sequence[str], open_browser: Callable[[str], object] = webbrowser.open) -> int:
    arguments = _parser().parse_args(list(argv))
    try:
        store = store_to_wait_at(arguments.store, os.environ)
    except AgentsError as exc:
        return _complain(words_here().error(exc))
    if not store:
        return _complain(words_here().of(why_no_store()))
    is_json = arguments.json or not sys.stdout.isatty()

    def tell(link: str) -> None:
        is_for_team = arguments.http is not None
        sys.stdout.write(f"{json_of({'link': link})}\n" if is_json else _welcome(link, is_for_team=is_for_team))
        sys.stdout.flush()
        if arguments.open:
            # In a thread: the command of some browsers returns only when they are closed.
            threading.Thread(target=open_browser, args=(link,), daemon=True).start()

    try:
        if arguments.http is not None:
            tls = (arguments.tls_cert, arguments.tls_key)
            given = (store, arguments.audit_head, arguments.http, arguments.config, tls, os.environ)
            return asyncio.run(serve_team_desk(*given, on_listening=tell))
        asyncio.run(serve_desk(store, arguments.audit_head, port=arguments.port, on_listening=tell))
    except AgentsError as exc:
        return _complain(words_here().error(exc))
    except ModuleNotFoundError as exc:
        return _complain(words_here().of(needs_extra("guard", exc.name)))
    except KeyboardInterrupt:
        return _INTERRUPTED
    return 0


def _complain(message: str) -> int:
    sys.stderr.write(f"openai-responses-mcp: {visible(message)}\n")
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        "openai-responses-mcp approvals serve", description="Decide on a page in the browser, on this machine."
    )
    parser.add_argument(
        "--store", metavar="URL", help="the store of the runs (else AGENTS_STORE, else the guard's own)"
    )
    parser.add_argument(
        "--audit-head", metavar="FILE", help="where the head of the log is kept, if not beside the file"
    )
    parser.add_argument("--port", metavar="N", type=int, default=0, help="the port on 127.0.0.1, by default a free one")
    parser.add_argument("--http", metavar="[HOST:]PORT", help="for a team: each person signs in with a token")
    parser.add_argument("--config", metavar="FILE", help="with --http: the file whose http: section says who may")
    parser.add_argument("--tls-cert", metavar="FILE", help="with --http: a certificate, in PEM")
    parser.add_argument("--tls-key", metavar="FILE", help="with --http: its key")
    parser.add_argument("--open", action="store_true", help="open the link in the browser")
    parser.add_argument("--json", action="store_true", help="JSON instead of text")
    return parser


def _welcome(link: str, *, is_for_team: bool) -> str:
    words = words_here()
    return f"{words('desk is open')}\n\n  {link}\n\n{words('desk for a team' if is_for_team else 'desk for one')}\n"
