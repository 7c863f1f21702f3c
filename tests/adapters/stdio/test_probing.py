"""A server that is started, asked and ended. Each is a few lines of Python in a real process."""

import os
import sys
from pathlib import Path

import pytest

from openai_responses_mcp.adapters.stdio.probing import ProbeFailed, ServerSeen, look_at

SERVING = """
import json, sys
def send(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def take(): return json.loads(sys.stdin.readline())
hello = take()
assert hello["method"] == "initialize" and hello["params"]["protocolVersion"] == "2025-06-18"
"""
WELCOMING = (
    SERVING
    + """
send(id=hello["id"], result={"serverInfo": {"name": "files", "version": "1.2"}})
assert take()["method"] == "notifications/initialized"
listing = take()
"""
)
WAIT_SECONDS = 30


async def seen_of(code: str) -> ServerSeen:
    return await look_at([sys.executable, "-c", code], {}, within_seconds=WAIT_SECONDS)


async def reason_for(code: str) -> str:
    with pytest.raises(ProbeFailed) as failed:
        await seen_of(code)
    return str(failed.value)


async def test_the_name_and_all_pages_of_tools_are_seen() -> None:
    code = (
        WELCOMING
        + """
send(method="notifications/message", params={})
send(id="a", method="ping")
assert take() == {"jsonrpc": "2.0", "id": "a", "result": {}}
send(id="b", method="roots/list")
assert take()["error"]["code"] == -32601
send(id=listing["id"], result={"tools": [{"name": "read"}, 3, {"name": "write"}], "nextCursor": "more"})
listing = take()
assert listing["params"] == {"cursor": "more"}
send(id=listing["id"], result={"tools": [{"name": "list"}]})
sys.stdin.read()
"""
    )
    assert await seen_of(code) == ServerSeen("files", "1.2", ("read", "", "write", "list"))


async def test_pages_without_an_end_are_cut_off() -> None:
    code = (
        WELCOMING
        + """
while True:
    send(id=listing["id"], result={"tools": [{"name": "x"}] * 600, "nextCursor": "more"})
    listing = take()
"""
    )
    assert len((await seen_of(code)).tools) == 1000


async def test_results_of_a_wrong_shape_are_a_server_without_a_name_and_tools() -> None:
    code = SERVING + 'send(id=1, result=[])\ntake()\ntake()\nsend(id=2, result={"tools": 7})'
    assert await seen_of(code) == ServerSeen("", "", ())


async def test_a_command_that_is_not_there_is_named_as_such() -> None:
    with pytest.raises(ProbeFailed, match=r"^it cannot be started \(No such file or directory\)$"):
        await look_at(["/nowhere/at-all"], {}, within_seconds=WAIT_SECONDS)


async def test_a_server_that_ends_is_quoted() -> None:
    code = "import sys\nsys.stderr.write('warming up\\nno \\x1b[1mtoken\\n\\n')\nraise SystemExit(3)"
    assert await reason_for(code) == (
        "it ended with exit code 3 before it answered; its last line on stderr: no [1mtoken"
    )


async def test_a_server_that_ends_without_a_word_is_said_to_have_ended() -> None:
    assert await reason_for("raise SystemExit(0)") == "it ended with exit code 0 before it answered"


async def test_an_error_is_repeated() -> None:
    code = SERVING + 'send(id=1, error={"code": -32603, "message": "the policy cannot be read"})\nsys.stdin.read()'
    assert await reason_for(code) == "it answered initialize with an error: the policy cannot be read"


async def test_a_silent_server_is_waited_for_no_longer_than_allowed_and_leaves_nothing_behind(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with pytest.raises(ProbeFailed, match=r"^it did not answer initialize within 1 s$"):
        await look_at(["/bin/sh", "-c", f"echo $$ > '{pid}'; exec sleep 60"], os.environ, within_seconds=1)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
