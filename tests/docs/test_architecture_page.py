"""The page about architecture has the layers that import-linter keeps, and the way that a question takes."""

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import httpx2
from dependency_injector import providers
from openai import AsyncOpenAI

from openai_responses_mcp.config.telemetry import TelemetryChoice
from openai_responses_mcp.container import Container
from openai_responses_mcp.server.clients import Client
from openai_responses_mcp.server.eras import HANDSHAKE
from openai_responses_mcp.server.jsonrpc import Request
from openai_responses_mcp.server.tools import TOOLS
from tests.docs.markdown import blocks
from tests.docs.site import DOCS, ROOT, read
from tests.test_container import given

PAGE = read(DOCS / "architecture.md")
CONTRACTS: list[dict[str, Any]] = tomllib.loads(read(ROOT / "pyproject.toml"))["tool"]["importlinter"]["contracts"]

Layers = list[set[str]]


def layers_of(container: str) -> Layers:
    (contract,) = [one for one in CONTRACTS if one.get("containers") == [container]]
    return [_names(layer.strip("()")) for layer in contract["layers"]]


def shown_below(heading: str) -> list[str]:
    return blocks(PAGE.partition(f"\n{heading}\n")[2])[0].text.splitlines()


def first_column(lines: list[str]) -> Layers:
    return [_names(re.split(r" {2,}", line)[0]) for line in lines]


def _names(layer: str) -> set[str]:
    return {name.strip() for name in layer.split("|")}


def test_the_layers_of_the_package_are_those_of_the_page() -> None:
    assert first_column(shown_below("### Who may import whom")) == layers_of("openai_responses_mcp")


def test_the_layers_of_the_guarded_half_are_those_of_the_page() -> None:
    assert first_column(shown_below("### Who may import whom, inside")) == layers_of("openai_responses_mcp.agents")


def test_the_layers_of_its_adapters_are_those_of_the_page() -> None:
    (line,) = [one for one in shown_below("### Who may import whom, inside") if one.startswith("adapters ")]
    shown = [_names(layer) for layer in line.removeprefix("adapters").split(">")]
    assert shown == layers_of("openai_responses_mcp.agents.adapters")


def test_every_package_of_the_guarded_half_is_in_its_picture() -> None:
    picture = blocks(PAGE.partition("\n## The guarded agents\n")[2])[0].text
    folders = {path.parent.name for path in (ROOT / "src" / "openai_responses_mcp" / "agents").glob("*/__init__.py")}
    assert {name for name in folders if f"{name}/" not in picture} == set()


async def test_a_question_takes_the_way_that_the_page_shows() -> None:
    way: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        way.extend(own_files_on_the_stack())
        return httpx2.Response(200, json={"output": []})

    container = Container(**given(telemetry_choice=TelemetryChoice()))
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    with container.client.override(providers.Object(AsyncOpenAI(api_key="made-up", http_client=http))):
        question = Request(1, "tools/call", {"arguments": {"query": "Why?"}})
        await container.tool_caller().call(TOOLS["answer"], question, Client(HANDSHAKE), lambda message: None)
        await container.openai_gateway().close()
    shown = re.search(r"on the stack when it leaves:(.*?), then the SDK", PAGE, re.DOTALL)
    assert shown is not None
    assert way == re.findall(r"`([^`]+)`", shown[1])


def own_files_on_the_stack() -> list[str]:
    """Of the server, from the outermost on, each once."""
    package, files = ROOT / "src" / "openai_responses_mcp", []
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(package):
            files.append(path.relative_to(package).as_posix())
    return list(dict.fromkeys(reversed(files)))
