"""What is imported when: the server never pays for this half, and the extra's absence is named."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.agents.fakes import WAIT_SECONDS

HEAVY = ("agents", "mcp", "sqlalchemy", "psycopg", "starlette", "uvicorn")


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=WAIT_SECONDS * 4, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    modules = "agents.composition, openai_responses_mcp.agents.runner, openai_responses_mcp.desk.terminal.command_line"
    code = f"import sys, openai_responses_mcp.{modules}; print([name for name in {HEAVY!r} if name in sys.modules])"
    assert run(code) == "[]"


def test_the_terminal_does_not_need_the_sdk() -> None:
    code = (
        "import sys; from openai_responses_mcp.agents.composition import open_desk_parts; open_desk_parts('sqlite://');"
        "print('agents' in sys.modules)"
    )
    assert run(code) == "False"


def test_without_the_extra_the_command_that_installs_it_is_named() -> None:
    names = ["create_runner", "run", "configure", "Agent", "function_tool", "ModelSafetyAgent"]
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('agents', 'sqlalchemy')))\n"
        f"import openai_responses_mcp.agents as guarded\nfor name in {names}:\n"
        "    try:\n        getattr(guarded, name)\n    except ImportError as exc:\n        print(exc)"
    )
    shown = run(code).splitlines()
    assert len(shown) == len(names)
    assert all('pip install "openai-responses-mcp[agents] @ git+https://github.com/' in line for line in shown)


@pytest.mark.parametrize(("name", "place"), [("Agent", "agents.py"), ("SafetyAgent", "agents/__init__.py")])
def test_a_script_or_package_that_hides_the_sdk_is_named_and_not_run_twice(
    tmp_path: Path, name: str, place: str
) -> None:
    script, hides = tmp_path / "agents.py", tmp_path / place
    if hides != script:
        script = tmp_path / "main.py"
        hides.parent.mkdir()
        hides.write_text("print('imported')")
    script.write_text(f"print('started')\nfrom openai_responses_mcp.agents import {name}\n")
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=WAIT_SECONDS * 4, cwd=tmp_path
    )
    assert done.stdout == "started\n"
    assert f"{hides} hides the OpenAI Agents SDK, which is called agents too; rename it" in done.stderr


def test_another_missing_package_is_not_taken_for_the_extra() -> None:
    code = (
        "import sys; sys.modules['openai_responses_mcp.agents.runs.models'] = None\n"
        "try:\n    from openai_responses_mcp.agents import create_runner\n"
        "except ImportError as exc:\n    print(exc)"
    )
    assert "pip install" not in run(code)


def test_types_need_no_extra() -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('agents', 'sqlalchemy')))\n"
        "from openai_responses_mcp.agents import AgentsError, GateDecision, RunOptions, SafetyAgent; print('fine')"
    )
    assert run(code) == "fine"
