"""What a start may not bring in: everything slow stands behind the first replies."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.fakes import WAIT_SECONDS

SLOW = (
    "openai",
    "httpx2",
    "pydantic",
    "structlog",
    "ruamel",
    "dependency_injector",
    "backoff",
    "importlib.metadata",
    "openai_responses_mcp.container",
)

START = """
import json, sys
from openai_responses_mcp import serving
from openai_responses_mcp.config import Flags, load
load(Flags(model="gpt-5"), {"OPENAI_API_TIMEOUT": "1000", "DEBUG": "1", "MAX_CITATIONS": "2", "HOME": sys.argv[1]})
print(json.dumps(sorted(sys.modules)))
"""


def test_nothing_slow_is_imported_before_the_first_reply(tmp_path: Path) -> None:
    # Without what measures coverage in the interpreters we start: it imports on its own account.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    command = [sys.executable, "-c", START, str(tmp_path)]
    ended = subprocess.run(command, env=environ, capture_output=True, timeout=WAIT_SECONDS * 4, check=True)
    modules = json.loads(ended.stdout)
    assert "openai_responses_mcp.serving" in modules
    assert [name for name in SLOW if name in modules] == []
