"""`guard login` and `guard logout`, with an authorization server on loopback and a browser that is played."""

import asyncio
import os
import queue
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import pytest

from openai_responses_mcp.adapters.remote.credentials import LoginFile
from openai_responses_mcp.guard import remote
from openai_responses_mcp.guard.command_line import main as guard_main
from openai_responses_mcp.guard.remote import RemoteEnd, connect
from openai_responses_mcp.guard.servers import HeaderVariable
from tests.adapters.remote.authorization import Authorization, authorizing, browse
from tests.e2e.client import COMMAND, environment
from tests.fakes import SLOW_SECONDS

BROWSER = """
import sys, urllib.request
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sys.argv[1], timeout=30).read()
"""


class Terminal:
    """What the command says, line by line, and what is typed."""

    def __init__(self) -> None:
        self.lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        reading, self._typing = os.pipe()
        self._reading = os.fdopen(reading)
        self._before = sys.stdin, sys.stdout
        sys.stdin, sys.stdout = self._reading, cast(Any, self)

    def write(self, text: str) -> None:
        for line in text.splitlines():
            self.lines.put(line)

    def flush(self) -> None: ...

    def type(self, text: str) -> None:
        os.write(self._typing, f"{text}\n".encode())

    async def aclose(self) -> None:
        """A command that still waits gives up."""
        sys.stdin, sys.stdout = self._before
        self.type("http://127.0.0.1/callback?error=over")
        os.close(self._typing)
        self._reading.close()

    async def link(self) -> str:
        while True:
            line = await asyncio.to_thread(self.lines.get, timeout=SLOW_SECONDS)
            if "/authorize?" in line:
                return line.strip()

    def rest(self) -> str:
        said = []
        while not self.lines.empty():
            said.append(self.lines.get())
        return "\n".join(said)


def environ_in(folder: Path, **more: str) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(folder), "SSH_CONNECTION": "there", **more}


def file_of(folder: Path, authorization: Authorization) -> LoginFile:
    return LoginFile(str(folder / "openai-responses-mcp"), authorization.url)


async def start(authorization: Authorization, folder: Path, *words: str, **more: str) -> "asyncio.Task[int]":
    line = ["--url", authorization.url, *words]
    return asyncio.create_task(asyncio.to_thread(remote.log_in, line, environ_in(folder, **more)))


async def test_the_browser_is_opened_and_comes_back(tmp_path: Path) -> None:
    script = tmp_path / "browser.py"
    script.write_text(BROWSER)
    environ = environment(tmp_path, XDG_STATE_HOME=str(tmp_path), BROWSER=f"{sys.executable} {script} %s")
    async with authorizing() as authorization:
        command = [*COMMAND, "guard", "login", "--url", authorization.url]
        done = await asyncio.to_thread(
            subprocess.run, command, env=environ, capture_output=True, text=True, timeout=SLOW_SECONDS, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        token = file_of(tmp_path, authorization).read().access_token
        assert token in authorization.access
        assert f"Logged in at {authorization.base.removeprefix('http://')}." in done.stdout
        assert token not in done.stdout


async def test_over_ssh_the_address_that_the_browser_ends_up_at_is_pasted(tmp_path: Path) -> None:
    terminal = Terminal()
    async with authorizing() as authorization, aclosing(terminal):
        running = await start(authorization, tmp_path, "--client-id", "mine", "--client-secret-env", "MINE", MINE="s")
        link = await terminal.link()
        terminal.type("what?")
        terminal.type(await browse(link))
        assert await asyncio.wait_for(running, SLOW_SECONDS) == 0
        assert authorization.clients == []
        assert {"client_id": "mine", "client_secret": "s"}.items() <= authorization.grants[0].items()
        assert file_of(tmp_path, authorization).read().is_valid()


async def test_a_browser_that_comes_back_without_a_code_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal()
    async with authorizing() as authorization, aclosing(terminal):
        authorization.denies = True
        running = await start(authorization, tmp_path, "--no-browser")
        at = await browse(await terminal.link())
        port, _, path = at.removeprefix("http://127.0.0.1:").partition("/")
        for sent, answer in (
            (b"GET /else HTTP/1.1\r\n\r\n", b"404"),
            (b"\r\n\r\n", b"404"),
            (b"GET ", b""),
            (f"GET /{path} HTTP/1.1\r\n\r\n".encode(), b"Not logged in"),
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
            writer.write(sent)
            writer.write_eof()
            assert answer in await reader.read()
            writer.close()
        assert await asyncio.wait_for(running, SLOW_SECONDS) == 1
        assert "the login was refused: access_denied" in capsys.readouterr().err
        assert not file_of(tmp_path, authorization).path.exists()


async def test_a_server_that_asks_for_no_login_and_one_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal()
    async with authorizing() as authorization, aclosing(terminal):
        authorization.asks = False
        assert await (await start(authorization, tmp_path)) == 0
        assert "needs no login" in terminal.rest()
        assert not file_of(tmp_path, authorization).path.exists()
    assert await (await start(authorization, tmp_path)) == 1
    assert "ConnectError" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--url", "http://x.example/mcp"], "https://"),
        (["--url", "https://x.example/mcp", "--client-secret-env", "NONE"], "NONE is not set"),
    ],
)
def test_wrong_usage_says_what_is_wrong(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert guard_main(["login", *words], {}) == 2
    assert said in capsys.readouterr().err


def test_a_missing_extra_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert remote.log_in(["--url", "https://x.example/mcp"], {}, lambda _: None) == 2
    assert "[guard]" in capsys.readouterr().err


async def test_a_browser_that_does_not_come_back_is_not_waited_for_without_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal()
    async with authorizing() as authorization, aclosing(terminal):
        words = ["--url", authorization.url]
        work = asyncio.to_thread(remote.log_in, words, environ_in(tmp_path), seconds=0.01)
        assert await asyncio.wait_for(work, SLOW_SECONDS) == 1
        assert "did not come back within 0 seconds" in capsys.readouterr().err


async def test_a_port_that_is_in_use_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with authorizing() as authorization:
        port = authorization.base.rpartition(":")[2]
        assert await (await start(authorization, tmp_path, "--port", port)) == 1
        assert f"port {port} cannot be used" in capsys.readouterr().err


async def test_a_login_can_be_forgotten(tmp_path: Path) -> None:
    terminal = Terminal()
    async with authorizing() as authorization, aclosing(terminal):
        running = await start(authorization, tmp_path)
        terminal.type(await browse(await terminal.link()))
        assert await asyncio.wait_for(running, SLOW_SECONDS) == 0
        words = ["logout", "--url", authorization.url]
        terminal.rest()
        assert guard_main(words, environ_in(tmp_path)) == guard_main(words, environ_in(tmp_path)) == 0
        assert terminal.rest() == "The login is forgotten.\nThere is no login for this URL."


async def test_a_guard_renews_the_login_with_the_headers_that_are_its_own(tmp_path: Path) -> None:
    terminal = Terminal()
    async with authorizing() as authorization, aclosing(terminal):
        running = await start(authorization, tmp_path)
        terminal.type(await browse(await terminal.link()))
        assert await asyncio.wait_for(running, SLOW_SECONDS) == 0
        authorization.access.clear()
        environ = environ_in(tmp_path, KEY="k")
        transport = connect(authorization.url, [HeaderVariable("X-Key", "", "KEY")], environ, terminal.write, 1000)
        transport.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}')
        received = await asyncio.wait_for(transport.receive(), SLOW_SECONDS)
        assert received is not None
        assert b'"result"' in cast(bytes, received.body)
        assert len(authorization.grants) == 2
        await RemoteEnd(transport).end()
