"""The command line of the guard."""

import subprocess
import sys
from pathlib import Path

import pytest

from openai_responses_mcp.guard.command_line import UsageError, main, parse
from openai_responses_mcp.guard.servers import GuardOptions
from tests.agents.fakes import WAIT_SECONDS


def test_the_start_loads_nothing_that_the_first_messages_do_not_need() -> None:
    """Packages, and parts of our own that are as slow: they are loaded after the first reply, or with the first call."""
    packages = "agents aiohttp argparse httpx2 mcp openai psycopg pydantic rich ruamel sqlalchemy starlette structlog"
    ours = "desk gate.policy gate.sql gate.schema gate.secrets guard.call_keeper guard.given_replies guard.opened_gate"
    late = [*packages.split(), *(f"openai_responses_mcp.{name}" for name in ours.split())]
    code = f"import sys, openai_responses_mcp.guard.command_line; print([one for one in {late} if one in sys.modules])"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_SECONDS * 4, check=True)
    assert done.stdout == "[]\n"


def test_everything_can_be_said() -> None:
    line = "--name files --policy p.yaml --profile=fast --store sqlite:///x.db --wait 7.5 --ask desk --observe -- npx server ~/notes"
    assert parse(line.split(), {}) == GuardOptions(
        command=("npx", "server", "~/notes"),
        name="files",
        policy="p.yaml",
        profile="fast",
        store="sqlite:///x.db",
        wait_seconds=7.5,
        ask="desk",
        observe=True,
    )


def test_only_the_command_is_needed() -> None:
    assert parse(["--", "/usr/bin/server", "--name", "its own"], {}) == GuardOptions(
        ("/usr/bin/server", "--name", "its own"), "server"
    )
    assert parse(["server", "--", "x"], {}).command == ("server", "--", "x")


def test_the_store_may_come_from_the_environment() -> None:
    environ = {"AGENTS_STORE": "sqlite:///env.db"}
    assert parse(["--", "server"], environ).store == "sqlite:///env.db"
    assert parse(["--store", "sqlite:///own.db", "--", "server"], environ).store == "sqlite:///own.db"


def test_a_url_takes_the_place_of_the_command() -> None:
    url = "https://mcp.example.com/mcp"
    headers = ["--header-env", "X-Key=KEY", "--header-env=Authorization=Bearer TOKEN"]
    options = parse(["--url", url, *headers], {})
    assert (options.command, options.url, options.name) == ((url,), url, "mcp.example.com")
    assert options.headers == (("X-Key", "", "KEY"), ("Authorization", "Bearer", "TOKEN"))
    assert parse(["--url=http://[::1]:80/mcp", "--name", "local"], {}).name == "local"


@pytest.mark.parametrize(
    "line",
    [
        "--url http://mcp.example.com/mcp",
        "--url https://user:password@mcp.example.com/mcp",
        "--url https://[mcp",
        "--url https://mcp.example.com/mcp -- server",
        "--url https://mcp.example.com/mcp --header-env X",
        "--url https://mcp.example.com/mcp --header-env Mcp-Session-Id=X",
        "--header-env X=Y -- server",
        "--",
        "--name -- server",
        "--observe=yes -- server",
        "--profile lax -- server",
        "--ask phone -- server",
        "--wait 0 -- server",
        "--wait soon -- server",
        "--name a/b -- server",
    ],
)
def test_an_invalid_command_line_is_refused(line: str) -> None:
    with pytest.raises(UsageError):
        parse(line.split(), {})


def test_wrong_usage_says_what_would_be_right() -> None:
    cases: list[tuple[str, str]] = [
        ("setpu", "unknown command setpu: did you mean setup?"),
        ("docter --start", "unknown command docter: did you mean doctor?"),
        ("--polciy x -- server", "unknown option --polciy: did you mean --policy?"),
        ("--http 0 --max-servers 0 -- server", "--max-servers is a whole number from 1 to 1000"),
        ("--max-servers 2 -- server", "--max-servers goes with --http"),
    ]
    for line, problem in cases:
        with pytest.raises(UsageError) as caught:
            parse(line.split(), {})
        assert str(caught.value) == problem


def test_a_program_that_sounds_like_a_command_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "setups").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert parse(["setups"], {}).command == ("setups",)
    assert parse(["--", "setpu"], {}).command == ("setpu",)


def test_wrong_usage_says_what_is_wrong_and_where_to_look(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--profile", "lax", "--", "server"], {}) == 2
    said = capsys.readouterr()
    assert said.err == (
        "openai-responses-mcp guard: --profile is one of strict, balanced, fast"
        " (see openai-responses-mcp guard --help)\n"
    )
    assert said.out == ""


def test_help_is_shown_without_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"], {}) == 0
    assert "-- COMMAND" in capsys.readouterr().out
