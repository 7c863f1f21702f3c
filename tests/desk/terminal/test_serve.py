"""`approvals serve`, as a person starts and ends it."""

import asyncio
import json
import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import urlopen

import pytest

from openai_responses_mcp.desk.terminal.command_line import main
from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
from openai_responses_mcp.gate.sql.sql_stores import open_stores
from tests.fakes import SLOW_SECONDS


@pytest.fixture
def store(sqlite_url: str) -> str:
    asyncio.run(SqlDatabase(sqlite_url).open())
    return sqlite_url


@contextmanager
def started(*arguments: str, stdout: int = subprocess.PIPE) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "openai_responses_mcp", "agents", "approvals", "serve", *arguments]
    process = subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, text=True)
    try:
        with process:
            yield process
            process.send_signal(signal.SIGINT)
            assert process.wait(SLOW_SECONDS) == 130
            assert process.stderr is not None
            assert process.stderr.read() == ""
    finally:
        process.kill()


def link_of(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    text = ""
    while "}" not in text:
        text += process.stdout.readline() or "}"
    link: str = json.loads(text)["link"]
    return link


def test_the_link_leads_to_the_desk_until_ctrl_c(store: str) -> None:
    with started("--store", store) as process:
        link = link_of(process)
        assert link.startswith("http://127.0.0.1:")
        # Nobody is at the desk before the page is open.
        assert asyncio.run(open_stores(store).presence.renewed_since("", "desk")) == []
        with urlopen(link, timeout=SLOW_SECONDS) as answer:
            assert (answer.status, "desk" in answer.read().decode()) == (200, True)


def test_a_terminal_shows_what_the_link_is(store: str) -> None:
    ours, theirs = pty.openpty()
    with started("--store", store, stdout=theirs):
        shown = b""
        while b"Ctrl-C" not in shown:
            shown += os.read(ours, 1000)
    os.close(theirs)
    os.close(ours)
    assert b"/?secret=" in shown
    assert b"works once" in shown


def test_a_port_is_chosen_unless_it_is_taken(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["approvals", "serve", "--store", store, "--port", port]) == 2
    assert f"127.0.0.1:{port} cannot be used" in capsys.readouterr().err
    with started("--store", store, "--port", port) as process:
        assert link_of(process).startswith(f"http://127.0.0.1:{port}/?secret=")


@pytest.fixture
def _usual_interrupts() -> Iterator[None]:
    """As in a process of its own: here another test may have left a loop that still listens for signals."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_usual_interrupts")
def test_the_browser_is_opened_when_asked_for(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    opened: list[str] = []

    def open_and_end(link: str) -> None:
        opened.append(link)
        signal.raise_signal(signal.SIGINT)

    assert main(["approvals", "serve", "--store", store, "--open"], open_browser=open_and_end) == 130
    assert opened == [json.loads(capsys.readouterr().out)["link"]]
