"""A real server of another project: llama.cpp's, with a tiny model of random numbers that the test makes.

Opt-in, with `make compat` (`pytest -m compat`): it needs `llama-cpp-python[server]` and `gguf`.
"""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from agents import ModelSettings

from openai_responses_mcp.agents import Agent, create_runner, get_provider, tool
from openai_responses_mcp.agents.providers.compat_model import CompatModel
from tests.agents.fakes import FakeJudge

pytestmark = [pytest.mark.compat, pytest.mark.timeout(180)]

# A process that loads a native library and a model; nothing of it is ours to make faster.
SLOW_START_SECONDS = 60.0
WAIT_SECONDS = 30.0

WIDTH, HEADS, LAYERS, CONTEXT = 32, 2, 1, 2048


def write_model(path: Path) -> None:
    """A llama of one layer whose weights mean nothing: what it says is noise, and how it says it is real."""
    gguf, np = import_module("gguf"), import_module("numpy")
    tokens = [b"<unk>", b"<s>", b"</s>", *(f"<0x{byte:02X}>".encode() for byte in range(256))]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL] + [gguf.TokenType.BYTE] * 256
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(WIDTH * 2)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    random = np.random.default_rng(7)

    def add(name: str, *shape: int) -> None:
        writer.add_tensor(name, random.normal(0, 0.05, shape).astype(np.float32))

    add("token_embd.weight", len(tokens), WIDTH)
    add("output.weight", len(tokens), WIDTH)
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, dtype=np.float32))
    for layer in range(LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"blk.{layer}.{name}.weight", WIDTH, WIDTH)
        add(f"blk.{layer}.ffn_gate.weight", WIDTH * 2, WIDTH)
        add(f"blk.{layer}.ffn_up.weight", WIDTH * 2, WIDTH)
        add(f"blk.{layer}.ffn_down.weight", WIDTH, WIDTH * 2)
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(WIDTH, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture
async def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[CompatModel]:
    """The model of a llama.cpp server, taken for LM Studio, which is built on it."""
    write_model(tmp_path / "tiny.gguf")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    command = ["-m", "llama_cpp.server", "--model", str(tmp_path / "tiny.gguf"), "--host", "127.0.0.1", "--port", str(port),
               "--model_alias", "tiny", "--n_ctx", str(CONTEXT), "--chat_format", "chatml"]  # fmt: skip
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    async with asyncio.timeout(SLOW_START_SECONDS):
        while b"Uvicorn running" not in (line := await process.stderr.readline()):
            assert line, "the server ended"
    monkeypatch.setenv("AGENTS_LMSTUDIO_BASE_URL", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("AGENTS_LMSTUDIO_MODEL", "tiny")
    reading = asyncio.create_task(process.stderr.read())
    yield get_provider("lmstudio").get_model()
    process.terminate()
    await asyncio.wait_for(process.wait(), WAIT_SECONDS)
    await reading


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def agent_on(model: CompatModel, **options: Any) -> Agent[Any]:
    settings = ModelSettings(max_tokens=16, temperature=0.0, extra_args={"seed": 1})
    return Agent(name="Noise", instructions="Say something.", model=model, model_settings=settings, **options)


async def test_a_real_server_lists_its_models(model: CompatModel) -> None:
    models = await asyncio.wait_for(get_provider("lmstudio").list_models(), WAIT_SECONDS)
    assert (list(models), models.source) == (["tiny"], "live")


async def test_a_real_server_answers_an_agent(model: CompatModel) -> None:
    runner = create_runner(safety_agent=FakeJudge())
    result = await asyncio.wait_for(runner.run(agent_on(model), "Hello"), WAIT_SECONDS)
    assert result.usage.output_tokens > 0


async def test_a_real_server_streams_to_an_agent(model: CompatModel) -> None:
    async def collect() -> list[Any]:
        return [event async for event in create_runner(safety_agent=FakeJudge()).run_stream(agent_on(model), "Hello")]

    events = await asyncio.wait_for(collect(), WAIT_SECONDS)
    assert events[-1].type == "final_output"


async def test_a_real_server_takes_tools(model: CompatModel) -> None:
    runner = create_runner(safety_agent=FakeJudge())
    result = await asyncio.wait_for(runner.run(agent_on(model, tools=[add]), "How much is 1 + 2?"), WAIT_SECONDS)
    assert result.usage.requests >= 1
