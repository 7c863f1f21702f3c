"""Talks to the real server process over real pipes, as a client would, and says in a line each what came back.

Run by `make smoke`, with no more than the package needs: initialize, tools/list and two questions, once with
Content-Length framing and once line by line. The answers come from the built-in rehearsal; with LIVE=1 and
OPENAI_API_KEY they come from the real API. Then one research whose connection breaks twice, with the stand-in that plays
faults: a real API breaks no connection on request. V=1 shows the messages themselves. Exit 0 when everything was as expected, 1 at the first thing that was not.
"""

import io
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import unicodedata
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta, timezone
from itertools import accumulate
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.e2e.client import COMMAND, Message, Server, answer_in, environment, framed, line, request  # noqa: E402

LIVE = os.environ.get("LIVE") == "1"
SHOWS_MESSAGES = os.environ.get("V") == "1"
REPLY_SECONDS = 330 if LIVE else 30
LONGEST_TEXT_SHOWN = 300
LONGEST_LINE = 77
TOKYO = timezone(timedelta(hours=9))
TOOLS = ["answer", "answer_detailed", "answer_quick"]
REACHING_THE_API = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID")


class Mismatch(Exception):
    """What came is not what was expected."""


def show(text: str) -> None:
    """A message, for those who want to see them."""
    if SHOWS_MESSAGES:
        print(text)


def tell(step: str, outcome: str) -> None:
    """What came of a step, on one line."""
    said = " ".join(f"{step}: {outcome}".split())
    # A Japanese letter takes two columns.
    ends = accumulate(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in said)
    fits = sum(end <= LONGEST_LINE for end in ends)
    print(f"  {said}" if fits == len(said) else f"  {said[:fits]}…")


def expect(what: str, expected: object, came: object) -> None:
    if came != expected:
        raise Mismatch(f"{what}\n  expected: {expected!r}\n  came:     {shorten(came)!r}")


class Client:
    """One conversation in one framing, shown as it goes."""

    def __init__(self, server: Server, framing: str) -> None:
        self.server = server
        self.framing = framing
        self.last_id = 0

    def send(self, message: Message) -> None:
        show(f"-> {message['method']} {json.dumps(message.get('params', {}), ensure_ascii=False)}")
        self.server.send_bytes(line(message) if self.framing == "line" else framed(message))

    def receive(self, awaited: str) -> Message:
        try:
            message = self.server.receive(REPLY_SECONDS)
        except queue.Empty:
            raise Mismatch(f"no reply to {awaited} within {REPLY_SECONDS} seconds") from None
        expect(f"framing of the reply to {awaited}", self.framing, self.server.framings[-1])
        show("<- " + json.dumps(shorten(message), ensure_ascii=False, indent=2))
        return message

    def call(self, method: str, params: Message) -> tuple[Message, list[Message]]:
        """The result, and the notifications before it."""
        self.last_id += 1
        self.send(request(self.last_id, method, params))
        before = []
        while "method" in (reply := self.receive(method)):
            before.append(reply)
        expect(f"id of the reply to {method}", self.last_id, reply["id"])
        if "result" not in reply:
            raise Mismatch(f"reply to {method}\n  expected: a result\n  came:     {shorten(reply)}")
        return reply, before

    def ask(self, query: str) -> Message:
        reply, _ = self.call("tools/call", {"name": "answer", "arguments": {"query": query}})
        answer = answer_in(reply)
        expect("fields of the answer", ["answer", "citations", "model", "used_search"], sorted(answer))
        sources = f"{len(answer['citations'])} sources" if answer["used_search"] else "no search"
        tell(query, f"{sources}; {answer['answer']}")
        return answer

    def finish(self) -> None:
        """Close the server's input; it must end by itself, with code 0 and nothing more to say."""
        heard = len(self.server.received)
        expect("exit code after the end of input", 0, self.server.finish())
        expect("output after the last reply", [], self.server.received[heard:])
        tell("end of input", "exit 0")


def shorten(value: Any) -> Any:
    """The same value with long texts cut, for people to read."""
    if isinstance(value, str) and len(value) > LONGEST_TEXT_SHOWN:
        return f"{value[:LONGEST_TEXT_SHOWN]}… ({len(value)} characters)"
    if isinstance(value, list):
        return [shorten(item) for item in value]
    if isinstance(value, dict):
        return {key: shorten(item) for key, item in value.items()}
    return value


@contextmanager
def serving(framing: str, *options: str, **variables: str) -> Iterator[Client]:
    """A server without a key, unless the variables have one."""
    with tempfile.TemporaryDirectory() as home:
        environ = environment(Path(home), **{"OPENAI_API_KEY": "", **variables})
        with closing(Server([*COMMAND, "--stdio", *options], environ, stderr=sys.stderr.fileno())) as server:
            yield Client(server, framing)


@contextmanager
def faulty_api() -> Iterator[str]:
    """The address of the stand-in that plays faults."""
    command = [sys.executable, "-m", "tests.stand_in"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def research_over_broken_connections() -> None:
    query = "Why? [rehearse: text=All of it.; cuts=after 3, in 9; get_status=503; retry_after=1]"
    params = {"name": "answer_detailed", "arguments": {"query": query}, "_meta": {"progressToken": "p"}}
    with faulty_api() as base_url, serving("line", OPENAI_BASE_URL=base_url, OPENAI_API_KEY="made-up") as client:
        reply, progress = client.call("tools/call", params)
        answer = reply["result"]["structuredContent"]["answer"]
        expect("answer of research whose connection broke", "All of it.", answer)
        messages = [message["params"]["message"] for message in progress]
        waits = [message for message in messages if "to go on" in message]
        expect("a message that it waits to go on", True, bool(waits))
        tell("answer_detailed", f"{answer} ({'; '.join(waits)})")
        client.finish()


def converse(client: Client) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "smoke", "version": "1"}}
    initialized = client.call("initialize", hello)[0]["result"]
    expect("protocolVersion", "2025-06-18", initialized.get("protocolVersion"))
    tell("initialize", f"{initialized['serverInfo']['name']} {initialized['serverInfo']['version']}, 2025-06-18")
    client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    listed = client.call("tools/list", {})[0]["result"]
    expect("names of the tools", TOOLS, [tool["name"] for tool in listed["tools"]])
    tell("tools/list", ", ".join(TOOLS))

    known = client.ask("HTTP 404 の意味は？")
    expect("used_search of a question that needs no search", False, known["used_search"])
    expect("citations of a question that needs no search", [], known["citations"])

    today = datetime.now(TOKYO).date().isoformat()
    current = client.ask(f"本日 {today} の東京の天気は？")
    expect("used_search of a question about today", True, current["used_search"])
    expect("whether a question about today has citations", True, bool(current["citations"]))
    sources = current["answer"].partition("Sources:")[2]
    if not re.search(r"\d{4}-\d{2}-\d{2}", sources):
        raise Mismatch(f"end of the answer\n  expected: Sources: with an ISO date\n  came:     {sources!r}")
    client.finish()


def main() -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):  # a Windows console may not know Japanese
        sys.stdout.reconfigure(encoding="utf-8")
    if LIVE and not os.environ.get("OPENAI_API_KEY"):
        print("LIVE=1 asks the real API and needs OPENAI_API_KEY.", file=sys.stderr)
        return 1
    options = [] if LIVE else ["--rehearse"]
    variables = {name: os.environ[name] for name in REACHING_THE_API if LIVE and name in os.environ}
    try:
        for framing in ("framed", "line"):
            print("Content-Length framing" if framing == "framed" else "One line per message")
            with serving(framing, *options, **variables) as client:
                converse(client)
        print("Research whose connection breaks")
        research_over_broken_connections()
    except (Mismatch, AssertionError, LookupError, OSError, ValueError, subprocess.TimeoutExpired) as wrong:
        print(f"\nsmoke failed: {wrong if isinstance(wrong, Mismatch) else repr(wrong)}")
        return 1
    origin = "from the real API" if LIVE else "from the rehearsal"
    print(f"smoke: both framings as expected, {origin}; research survived a broken connection")
    return 0


if __name__ == "__main__":
    sys.exit(main())
