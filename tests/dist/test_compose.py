"""The compose file for a team: what it starts is what the server takes, and nothing of it is secret or loose."""

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from openai_responses_mcp.commands.serve_http import checked_tokens, http_options, http_settings
from openai_responses_mcp.commands.usage import parse
from openai_responses_mcp.gate.sql.database_urls import understood

DIST = Path(__file__).parents[2] / "config" / "dist"
ENVIRON = {
    "OPENAI_API_KEY": "sk-test",
    "TEAM_TOKENS": "ann:token-of-ann-1234567890",
    "TEAM_HOST": "answers.example.com",
    "POSTGRES_PASSWORD": "secret",
}


def filled_in(text: str) -> str:
    """As compose does it: every variable has to be set."""
    return re.sub(r"\$\{(\w+):\?\}", lambda found: ENVIRON[found[1]], text)


@pytest.fixture(scope="module")
def compose() -> Any:
    return YAML(typ="safe").load(filled_in((DIST / "compose.yaml").read_text("utf-8")))


def test_the_server_takes_its_command_and_its_settings(compose: Any, tmp_path: Path) -> None:
    replica = compose["services"]["answers-1"]
    options = parse(replica["command"])
    assert options.config == replica["configs"][0]["target"]
    config = tmp_path / "answers.yaml"
    config.write_text(compose["configs"][replica["configs"][0]["source"]]["content"])
    environ = {name: str(value) for name, value in replica["environment"].items()}
    settings = http_settings(str(config), environ)
    where = http_options(options.http or "", None, None, None)
    assert checked_tokens(where, settings, environ) == {"ann": "token-of-ann-1234567890"}
    assert settings.public_url == "https://answers.example.com/mcp"
    assert understood(environ["AGENTS_STORE"]).host == "database"


def test_no_secret_is_written_down() -> None:
    text = (DIST / "compose.yaml").read_text("utf-8")
    for name in ("OPENAI_API_KEY", "TEAM_TOKENS", "POSTGRES_PASSWORD"):
        assert re.findall(rf"{name}: (?!\$\{{{name}:\?\}})", text) == []


def test_the_proxy_sends_a_caller_to_the_same_replica_and_leaves_out_one_that_is_gone(compose: Any) -> None:
    text = (DIST / "Caddyfile").read_text("utf-8")
    lines = [line.strip() for line in text.splitlines() if not line.startswith("#")]
    assert "lb_policy header Authorization" in lines
    assert {"fail_duration 10s", "health_interval 5s", "health_uri /healthz"} < {*lines}
    # With -1 Caddy does not pass on that a client has closed its response, which cancels the call.
    assert not any(line.startswith("flush_interval") for line in lines)
    for name in ("answers-1", "answers-2"):
        assert f"{name}:8080" in text
        assert compose["services"][name]["command"][1].endswith(":8080")
