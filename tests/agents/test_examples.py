"""The examples of the documentation, run as a reader would run them, on stand-ins for the models."""

import asyncio
import importlib.util
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from openai_responses_mcp.agents.skills.parsing import tool_name_for
from tests.agents.providers.stand_in import KEY, ChatStandIn, calls

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = DOCS / "examples"

# Processes that import an SDK first, on a busy machine.
SLOW_START_SECONDS = 60.0
TWO_SLOW_STARTS_SECONDS = 100.0


def example(name: str) -> Any:
    """The module, as it would be run; `main` is what a reader starts."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def run(name: str, *arguments: str) -> None:
    await asyncio.wait_for(example(name).main(*arguments), SLOW_START_SECONDS)


@pytest.fixture
async def ollama(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ChatStandIn]:
    """Ollama on loopback, and nothing else of the machine's own settings."""
    for name in list(os.environ):
        if name.startswith(("AGENTS_", "OPENAI_")):
            monkeypatch.delenv(name)
    async with ChatStandIn("ollama") as stand_in:
        stand_in.models = ["llama3.2"]
        monkeypatch.setenv("AGENTS_MODEL_PROVIDER", "ollama")
        monkeypatch.setenv("AGENTS_OLLAMA_BASE_URL", stand_in.base_url)
        monkeypatch.setenv("AGENTS_OLLAMA_MODEL", "llama3.2")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield stand_in


async def test_the_file_server_reads_alone_and_asks_before_it_writes(
    tmp_path: Path, ollama: ChatStandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("It rained.")
    monkeypatch.setattr("builtins.input", lambda prompt: "y")
    ollama.enqueue(
        calls("read_file", {"name": "notes.txt"}, "call_1"),
        calls("write_file", {"name": "summary.md", "text": "Rain."}, "call_2"),
        "The summary is written.",
    )
    await run("guarded_files", str(tmp_path), "Sum it up in summary.md")
    out = capsys.readouterr().out
    assert "It rained." in str(ollama.bodies[1]["messages"])
    assert "May mcp files/write_file run?" in out
    assert "The summary is written." in out
    assert (tmp_path / "summary.md").read_text() == "Rain."


async def test_the_japanese_skill_is_listed_and_used(ollama: ChatStandIn, capsys: pytest.CaptureFixture[str]) -> None:
    notes = "田中: 来週までに見積もりを出す。"
    ollama.enqueue(calls("skill_list", {}, "call_1"))
    ollama.enqueue(calls(tool_name_for("議事録"), {"input": notes}, "call_2"), "## 決定事項\nなし")
    await run("japanese_skill", notes)
    out = capsys.readouterr().out
    assert "議事録: 会議のメモから議事録を作る" in out
    assert "## 決定事項" in out
    assert "宿題には担当者と期限を付ける" in str(ollama.bodies[2]["messages"])


async def test_the_same_agent_runs_on_both_providers(
    ollama: ChatStandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ChatStandIn("openai") as openai:
        for stand_in in (ollama, openai):
            stand_in.enqueue(calls("kilometres", {"start": "Osaka", "end": "Tokyo"}), "It is 515 km.")
        monkeypatch.setenv("OPENAI_BASE_URL", openai.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        await run("two_providers", "How far is it?")
    assert capsys.readouterr().out.splitlines() == [
        "ollama (llama3.2): It is 515 km.",
        "openai (gpt-5.4-mini): It is 515 km.",
    ]


# ---------------------------------------------------------------------------------------------------------------------
# A worker and a person who decides, in two processes

STORE = "sqlite:///agents.db"


@asynccontextmanager
async def started(command: list[str], pipes: Any) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(*command, **pipes)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize("answer", ["y", "n"])
async def test_a_worker_goes_on_when_somebody_has_decided_in_another_process(
    tmp_path: Path, ollama: ChatStandIn, answer: str
) -> None:
    ollama.enqueue(calls("send_letter", {"to": "Sato", "text": "The parcel is late."}), "Sato knows.")
    environ = {**os.environ, "PYTHONPATH": str(Path(sys.modules["openai_responses_mcp"].__path__[0]).parent)}
    command = [sys.executable, str(EXAMPLES / "approval_worker.py"), STORE, "Tell Sato that the parcel is late"]
    pipes: Any = {"cwd": tmp_path, "env": environ, **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)}
    async with asyncio.timeout(TWO_SLOW_STARTS_SECONDS), started(command, pipes) as worker:
        assert worker.stdout is not None
        assert (await worker.stdout.readline()).startswith(b"waiting for a decision: ")
        assert not (tmp_path / "outbox.txt").exists()
        async with started([sys.executable, str(EXAMPLES / "approval_desk.py"), STORE], pipes) as decider:
            shown, problem = await decider.communicate(f"{answer}\n".encode())
        assert (decider.returncode, problem) == (0, b"")
        assert "The parcel is late." in shown.decode()
        out, err = await worker.communicate()
    if answer == "y":
        assert (worker.returncode, out.decode().strip(), err) == (0, "Sato knows.", b"")
        assert (tmp_path / "outbox.txt").read_text() == "Sato: The parcel is late.\n"
    else:
        assert (worker.returncode, err.decode().partition(":")[0]) == (1, "AGENTS-E-GATE-DENIED")
        assert not (tmp_path / "outbox.txt").exists()
