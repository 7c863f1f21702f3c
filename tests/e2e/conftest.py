"""Servers that are started for a test, ask the stand-in, and are gone after it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.client import COMMAND, Server, environment
from tests.stand_in.server import StandInThread

Start = Callable[..., Server]


@pytest.fixture
def start(rehearsal: StandInThread, tmp_path: Path) -> Iterator[Start]:
    """`start(*options, config=…, shell=…, stdout=…, stderr=…, **variables)`: a server with an empty home."""
    with ExitStack() as servers:

        def start(*options: str, config: str = "", shell: str = "", **others: Any) -> Server:
            if config:
                path = tmp_path / ".config" / "openai-responses-mcp" / "config.yaml"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(config, encoding="utf-8")
            pipes = {name: others.pop(name) for name in ("stdout", "stderr") if name in others}
            command = [*COMMAND, "--stdio", *options]
            if shell:
                command = ["sh", "-c", f'exec "$@" {shell}', "sh", *command]
            environ = environment(tmp_path, **{"OPENAI_BASE_URL": rehearsal.base_url, **others})
            return servers.enter_context(closing(Server(command, environ, **pipes)))

        yield start


@pytest.fixture
def server(start: Start) -> Server:
    """One that is set up as it comes."""
    return start()


@pytest.fixture(scope="module")
def warm_rehearsal() -> Iterator[StandInThread]:
    """The stand-in for all cases of a module."""
    with StandInThread(keep_requests=2000) as rehearsal:
        yield rehearsal
