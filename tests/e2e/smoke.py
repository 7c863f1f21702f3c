"""Talks to the real server process over real pipes, as a client would, and says in a line each what came back.

Run by `make smoke`, with nothing but the standard library: initialize, tools/list and two questions, once with
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
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from itertools import accumulate
from pathlib import Path
from typing import IO, Any

LIVE = os.environ.get("LIVE") == "1"
SHOWS_MESSAGES = os.environ.get("V") == "1"
REPLY_SECONDS = 330 if LIVE else 30
EXIT_SECONDS = 30
LONGEST_TEXT_SHOWN = 300
LONGEST_LINE = 77
ROOT = Path(__file__).resolve().parents[2]
TOKYO = timezone(timedelta(hours=9))
TOOLS = ["answer", "answer_detailed", "answer_quick"]
# Variables that would change what the server does; LIVE=1 keeps those that say how to reach the API.
CONFIGURING = re.compile(r"OPENAI_|MODEL_|ANSWER_|SEARCH_|(MAX_CITATIONS|REQUERY_ATTEMPTS|DEBUG|MCP_LINE_MODE)$")
REACHING_THE_API = {"OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"}


class Mismatch(Exception):
    """What came is not what was expected."""


def show(text: str) -> None:
    """A message, for those who want to see them."""
    if SHOWS_MESSAGES:
        print(text)


def tell(step: str, outcome: str) -> None:
    """What came of a step, on one line."""
    line = " ".join(f"{step}: {outcome}".split())
    # A Japanese letter takes two columns.
    ends = accumulate(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in line)
    fits = sum(end <= LONGEST_LINE for end in ends)
    print(f"  {line}" if fits == len(line) else f"  {line[:fits]}…")


def expect(what: str, expected: object, came: object) -> None:
    if came != expected:
        raise Mismatch(f"{what}\n  expected: {expected!r}\n  came:     {shorten(came)!r}")


def parse_object(what: str, text: str | bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise Mismatch(f"{what}\n  expected: a JSON object\n  came:     {text[:LONGEST_TEXT_SHOWN]!r}")
    return parsed


def frame(framing: str, body: bytes) -> bytes:
    return body + b"\n" if framing == "line" else b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def read_message(stream: IO[bytes]) -> tuple[str, bytes] | None:
    """The next message and its framing, or None at the end. Bytes that are neither come back as "stray"."""
    first = stream.readline()
    if not first:
        return None
    if first.startswith(b"{"):
        return "line", first
    length = re.fullmatch(rb"Content-Length: (\d+)\r\n", first)
    if length is None:
        return "stray", first
    blank = stream.readline()
    if blank != b"\r\n":
        return "stray", first + blank
    return "framed", stream.read(int(length[1]))


class Client:
    """One conversation in one framing. Replies are read by a thread, so that every wait can be bounded."""

    def __init__(self, process: "subprocess.Popen[bytes]", framing: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self.framing = framing
        self.to_server = process.stdin
        self.from_server = process.stdout
        self.arrived: queue.Queue[tuple[str, bytes] | None] = queue.Queue()
        self.last_id = 0
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        while (message := read_message(self.from_server)) is not None:
            self.arrived.put(message)
        self.arrived.put(None)

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode()
        try:
            self.to_server.write(frame(self.framing, body))
            self.to_server.flush()
        except OSError as error:
            raise Mismatch(f"the server no longer takes input: {error}") from error

    def notify(self, method: str) -> None:
        show(f"-> {method}")
        self.send({"method": method})

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.last_id += 1
        show(f"-> {method} {json.dumps(params, ensure_ascii=False)}")
        self.send({"id": self.last_id, "method": method, "params": params})
        reply = self.receive(method)
        show("<- " + json.dumps(shorten(reply), ensure_ascii=False, indent=2))
        expect(f"id of the reply to {method}", self.last_id, reply.get("id"))
        if not isinstance(reply.get("result"), dict):
            raise Mismatch(f"reply to {method}\n  expected: a result\n  came:     {shorten(reply)}")
        result: dict[str, Any] = reply["result"]
        return result

    def ask(self, query: str) -> dict[str, Any]:
        result = self.call("tools/call", {"name": "answer", "arguments": {"query": query}})
        try:
            text = result["content"][0]["text"]
        except (LookupError, TypeError):
            raise Mismatch(f"tool result\n  expected: a text in content[0]\n  came:     {shorten(result)}") from None
        answer = parse_object("text of the tool result", text)
        show("   the answer in it: " + json.dumps(shorten(answer), ensure_ascii=False, indent=2))
        expect("fields of the answer", ["answer", "citations", "model", "used_search"], sorted(answer))
        sources = f"{len(answer['citations'])} sources" if answer["used_search"] else "no search"
        tell(query, f"{sources}; {answer['answer']}")
        return answer

    def research(self, query: str) -> tuple[dict[str, Any], list[str]]:
        """The result, and the progress messages before it."""
        arguments = {"name": "answer_detailed", "arguments": {"query": query}, "_meta": {"progressToken": "p"}}
        show(f"-> tools/call {json.dumps(arguments, ensure_ascii=False)}")
        self.last_id += 1
        self.send({"id": self.last_id, "method": "tools/call", "params": arguments})
        messages = []
        while "method" in (message := self.receive("tools/call")):
            messages.append(message["params"]["message"])
            show(f"<- {message['method']}: {messages[-1]}")
        show("<- " + json.dumps(shorten(message), ensure_ascii=False, indent=2))
        if not isinstance(message.get("result"), dict):
            raise Mismatch(f"reply to the research\n  expected: a result\n  came:     {shorten(message)}")
        return message["result"], messages

    def receive(self, awaited: str) -> dict[str, Any]:
        try:
            arrived = self.arrived.get(timeout=REPLY_SECONDS)
        except queue.Empty:
            raise Mismatch(f"no reply to {awaited} within {REPLY_SECONDS} seconds") from None
        if arrived is None:
            raise Mismatch(f"the server closed its output instead of replying to {awaited}")
        framing, body = arrived
        expect(f"framing of the reply to {awaited} ({body[:80]!r})", self.framing, framing)
        return parse_object(f"reply to {awaited}", body)

    def finish(self) -> None:
        """Close the server's input; it must end by itself, with code 0 and nothing more to say."""
        self.to_server.close()
        try:
            code = self.process.wait(timeout=EXIT_SECONDS)
            left_over = self.arrived.get(timeout=EXIT_SECONDS)
        except (subprocess.TimeoutExpired, queue.Empty):
            raise Mismatch(f"still running {EXIT_SECONDS} seconds after its input was closed") from None
        expect("exit code after the end of input", 0, code)
        expect("output after the last reply", None, left_over)
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


def environment(home: str) -> dict[str, str]:
    """Ours, without what would configure the server: its variables, and the files in the user's home."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if (LIVE and name in REACHING_THE_API) or not CONFIGURING.match(name.upper())
    }
    return {**kept, "HOME": home, "USERPROFILE": home, "APPDATA": home, "XDG_CONFIG_HOME": home}


@contextmanager
def server(**variables: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Asks the rehearsal or the real API, or what the variables say."""
    rehearses = [] if LIVE or variables else ["--rehearse"]
    command = [sys.executable, "-m", "openai_responses_mcp", "--stdio", *rehearses]
    with tempfile.TemporaryDirectory() as home:
        environ = environment(home) | variables
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


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
    with faulty_api() as base_url, server(OPENAI_BASE_URL=base_url, OPENAI_API_KEY="made-up") as process:
        client = Client(process, "line")
        result, messages = client.research(
            "Why? [rehearse: text=All of it.; cuts=after 3, in 9; get_status=503; retry_after=1]"
        )
        expect("answer of research whose connection broke", "All of it.", result["structuredContent"]["answer"])
        expect("a message that it waits to go on", True, any("to go on" in message for message in messages))
        waits = [message for message in messages if "to go on" in message]
        tell("answer_detailed", f"{result['structuredContent']['answer']} ({'; '.join(waits)})")
        client.finish()


def converse(client: Client) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "smoke", "version": "1"}}
    initialized = client.call("initialize", hello)
    expect("protocolVersion", "2025-06-18", initialized.get("protocolVersion"))
    tell("initialize", f"{initialized['serverInfo']['name']} {initialized['serverInfo']['version']}, 2025-06-18")
    client.notify("notifications/initialized")

    listed = client.call("tools/list", {})
    expect("names of the tools", TOOLS, [tool["name"] for tool in listed["tools"]])
    tell("tools/list", ", ".join(TOOLS))

    known = client.ask("HTTP 404 の意味は？")
    expect("used_search of a question that needs no search", False, known["used_search"])
    expect("citations of a question that needs no search", [], known["citations"])

    today = datetime.now(TOKYO).date().isoformat()
    current = client.ask(f"本日 {today} の東京の天気は？")
    expect("used_search of a question about today", True, current["used_search"])
    if not current["citations"]:
        raise Mismatch("citations of a question about today\n  expected: at least one\n  came:     none")
    if not re.search(r"\d{4}-\d{2}-\d{2}", current["answer"].partition("Sources:")[2]):
        raise Mismatch(
            f"end of the answer\n  expected: Sources: with an ISO date\n  came:     {current['answer'][-200:]!r}"
        )
    client.finish()


def main() -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):  # a Windows console may not know Japanese
        sys.stdout.reconfigure(encoding="utf-8")
    if LIVE and not os.environ.get("OPENAI_API_KEY"):
        print("LIVE=1 asks the real API and needs OPENAI_API_KEY.", file=sys.stderr)
        return 1
    try:
        for framing in ("framed", "line"):
            print("Content-Length framing" if framing == "framed" else "One line per message")
            with server() as process:
                converse(Client(process, framing))
        print("Research whose connection breaks")
        research_over_broken_connections()
    except Mismatch as mismatch:
        print(f"\nsmoke failed: {mismatch}")
        return 1
    origin = "from the real API" if LIVE else "from the rehearsal"
    print(f"smoke: both framings as expected, {origin}; research survived a broken connection")
    return 0


if __name__ == "__main__":
    sys.exit(main())
