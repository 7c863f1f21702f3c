import os
from collections.abc import Callable
from pathlib import Path

import pytest

from openai_responses_mcp.config.file import MAX_FILE_BYTES
from openai_responses_mcp.config.loading import (
    ConfigError,
    Configuration,
    Flags,
    default_paths,
    load,
)
from openai_responses_mcp.config.settings import Profile, Settings

Load = Callable[..., Configuration]
Problems = Callable[..., list[str]]

KEY = "sk-proj-abcdefgh12345678"

BLOCK_OF_V0_5 = """\
openai:
  api_key_env: OPENAI_API_KEY
  base_url: https://api.openai.com/v1

request: { timeout_ms: 120000, max_retries: 3 }

responses: { stream: false, json_mode: false }

model_profiles:
  answer:           # Required baseline profile
    model: gpt-5-mini
    reasoning_effort: medium
    verbosity: medium
    
  answer_detailed:  # Optional - for detailed analysis
    model: gpt-5
    reasoning_effort: high
    verbosity: high
    
  answer_quick:     # Optional - for fast responses
    model: gpt-5-nano
    reasoning_effort: minimal
    verbosity: low

policy:
  search_triggers: ["today","now","latest","breaking","price","cost","release","version","security","vulnerability","weather","exchange","news","EOL"]
  prefer_search_when_unsure: true
  max_citations: 3
  requery_attempts: 1
  require_dates_iso: true

search:
  defaults: { recency_days: 60, max_results: 5, domains: [] }

server: { transport: stdio, debug: false, debug_file: null, show_config_on_start: false }
"""  # noqa: W293 - word for word


# Which file


def test_the_folder_that_the_system_names_comes_first(tmp_path: Path) -> None:
    name, stated = os.path.join("openai-responses-mcp", "config.yaml"), str(tmp_path)
    at_home = os.path.join("H", ".config", name)
    assert default_paths({"HOME": "H", "APPDATA": "R"}, "win32") == (os.path.join("R", name), at_home)
    assert default_paths({"HOME": "H"}, "win32") == (at_home,)
    assert default_paths({"HOME": "H", "APPDATA": "R", "XDG_CONFIG_HOME": "relative"}, "linux") == (at_home,)
    assert default_paths({"HOME": "H", "XDG_CONFIG_HOME": stated}, "linux") == (os.path.join(stated, name), at_home)


def test_a_named_file_is_read_instead_of_the_default_one(configured: Load, home: Path) -> None:
    (home / "other.yaml").write_text("policy: {max_citations: 7}", encoding="utf-8")
    configuration = configured("policy: {max_citations: 9}", Flags(config="~/other.yaml"))
    assert configuration.settings.policy.max_citations == 7
    assert configuration.sources.yaml == str(home / "other.yaml")
    assert configuration.sources.cli == ("--config",)


@pytest.mark.parametrize("path", ["/no/such/file.yaml", ""])
def test_a_named_file_that_is_missing_is_skipped_with_a_warning(configured: Load, path: str) -> None:
    configuration = configured("policy: {max_citations: 9}", Flags(config=path))
    assert configuration.settings == Settings()
    assert configuration.sources.yaml is None
    assert configuration.warnings == (f"--config {path}: there is no such file, so the settings in it are not used",)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfea\x00", "config.yaml: is not UTF-8 text"),
        (b"#" * (MAX_FILE_BYTES + 1), "config.yaml: is larger than 1 MiB"),
        (b"- a", "config.yaml:1: the file must be a mapping of keys"),
        (b"a: 1\nb: [", "config.yaml:2: not valid YAML: expected the node content, but found '<stream end>'"),
        (b"a: &a [*a]", "config.yaml:1: the alias *a is not allowed: write its value out"),
        (b"a: 1\na: 2", "config.yaml:2: a is there twice, first on line 1"),
    ],
)
def test_a_file_that_cannot_be_used_is_a_problem(home: Path, file: Path, content: bytes, words: str) -> None:
    file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load(Flags(), {"HOME": str(home)})
    assert [line.replace(str(file), "config.yaml") for line in caught.value.problems] == [words]


# What is wrong in it


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("request:\n  max_retries: 11", "2: request.max_retries must be a whole number between 0 and 10 (found 11)"),
        ("request: {timeout_ms: '5'}", '1: request.timeout_ms must be a whole number of at least 1 (found "5")'),
        ("request: {timeout_ms: true}", "1: request.timeout_ms must be a whole number of at least 1 (found true)"),
        (
            "request: {extra: {top_p: [.nan]}}",
            "1: request.extra must be a mapping of keys without NaN and infinity (found a mapping)",
        ),
        (
            "request:\n  extra:\n    service_tier: flex\n    store: false",
            "4: request.extra.store is set by the server itself: use request.store",
        ),
        ("request: {timeout: 1}", "1: unknown key request.timeout (did you mean request.timeout_ms?)"),
        ("max_citations: 3", "1: unknown key max_citations (did you mean policy.max_citations?)"),
        ("policy: [a, [b]]", "1: policy must be a mapping of keys (found a list)"),
        (
            "search: {defaults: {recency_days: .inf}}",
            "1: search.defaults.recency_days must be a number of at least 0 (found Infinity)",
        ),
        (
            "search:\n  defaults:\n    domains:\n    - a\n    - ''",
            '5: search.defaults.domains[1] must be text that is not blank (found "")',
        ),
        (
            "server: {tools: [iris, iris]}",
            '1: server.tools must be a list with at least one name and none twice (found ["iris", "iris"])',
        ),
        (
            "server: {tools: [iris, ask]}",
            '1: server.tools[1] must be one of answer, answer_detailed, answer_quick, iris, answer_result (found "ask")',
        ),
        (
            "server: {hand_over_after_s: 4.9}",
            "1: server.hand_over_after_s must be a number of at least 5, or auto, or null (found 4.9)",
        ),
        ("server: {transport: http}", '1: server.transport must be stdio (found "http")'),
        ("policy: {system: {source: file}}", "1: policy.system.path is needed when policy.system.source is file"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(problems: Problems, text: str, line: str) -> None:
    assert problems(text) == [f"config.yaml:{line}"]


def test_all_problems_are_reported_together(problems: Problems) -> None:
    assert problems("a: 1\nrequest: {max_retries: 11}\nb: 1", Flags(model=""), MAX_CITATIONS="0") == [
        "config.yaml:1: unknown key a",
        "config.yaml:2: request.max_retries must be a whole number between 0 and 10 (found 11)",
        "config.yaml:3: unknown key b",
        'MAX_CITATIONS must be a whole number between 1 and 10 (found "0")',
        '--model must be text that is not blank (found "")',
    ]


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("OPENAI_MAX_RETRIES", "abc", 'must be a whole number between 0 and 10 (found "abc")'),
        ("SEARCH_MAX_RESULTS", "1\n2", 'must be a whole number between 1 and 10 (found "1\\n2")'),
        ("MAX_CITATIONS", "9" * 99, f'must be a whole number between 1 and 10 (found "{"9" * 59}...)'),
        (
            "OPENAI_BASE_URL",
            "https://me:hidden@:1",
            'must be text that is an http:// or https:// address with a host (found "https://***@:1")',
        ),
    ],
)
def test_a_wrong_variable_is_named(problems: Problems, name: str, text: str, line: str) -> None:
    assert problems("", **{name: text}) == [f"{name} {line}"]


def test_a_problem_is_one_line_whatever_is_in_it(problems: Problems) -> None:
    assert problems('"a\\nb\\e[31m\\u2028": 1') == ["config.yaml:1: unknown key a b [31m "]


def test_request_fields_that_the_server_does_not_set_can_be_added(configured: Load) -> None:
    text = "request: {extra: {service_tier: flex, max_tool_calls: 5, metadata: {team: a, not_sent: null}}}"
    assert configured(text).settings.request.extra == {
        "service_tier": "flex",
        "max_tool_calls": 5,
        "metadata": {"team": "a"},
    }


# API keys


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("openai: {api_key: any-other-text}", "openai.api_key"),
        ("secrets: [any-other-text]", "secrets[0]"),
        ("responses: {client-secret: any-other-text}", "responses.client-secret"),
        (f"search: {{defaults: {{domains: [a, {KEY}]}}}}", "search.defaults.domains[1]"),
        ("model_profiles: {answer: {model: the-key-in-use}}", "model_profiles.answer.model"),
    ],
)
def test_an_api_key_in_the_file_is_named_and_never_shown(problems: Problems, text: str, name: str) -> None:
    place = "config.yaml:1: "
    lines = problems(text, OPENAI_API_KEY="the-key-in-use")
    assert lines == [f"{place}{name} holds an API key, and keys come from the environment only: set OPENAI_API_KEY"]


@pytest.mark.parametrize("text", ["openai: {api_key: ''}", "openai: {api_key: 1}", "request: {max_tokens: 5}"])
def test_a_name_like_that_of_a_key_without_a_text_is_an_unknown_key(problems: Problems, text: str) -> None:
    assert problems(text)[0].startswith("config.yaml:1: unknown key ")


@pytest.mark.parametrize(
    ("text", "environ"),
    [
        (f"{KEY}: 1", {}),
        (f"request: {{omit: {{a: {KEY}}}}}", {}),
        (f"- {KEY}", {}),
        (f"*{KEY}", {}),
        ("", {"ANSWER_EFFORT": KEY}),
        ("", {"ANSWER_EFFORT": "the-key-in-use", "OPENAI_API_KEY": "the-key-in-use"}),
        ("openai: {api_key_env: MINE}\na: 1", {"ANSWER_EFFORT": "the-key-in-use", "MINE": "the-key-in-use"}),
    ],
)
def test_a_key_appears_in_no_problem(problems: Problems, text: str, environ: dict[str, str]) -> None:
    output = "\n".join(problems(text, **environ))
    assert KEY not in output
    assert "the-key-in-use" not in output


def test_ordinary_values_are_not_taken_for_keys(configured: Load) -> None:
    text = "server: {debug_file: /srv/me/desk-top-and-others/x.log}\nrequest: {max_output_tokens: 5}"
    assert configured(text, OPENAI_API_KEY="me").settings.request.max_output_tokens == 5


# Older files


def test_the_block_of_the_older_specification_loads_with_a_warning_for_each_dropped_key(
    configured: Load, file: Path
) -> None:
    configuration = configured(BLOCK_OF_V0_5)
    assert configuration.settings.request.timeout_ms == 120_000
    assert _answer(configuration).model == "gpt-5-mini"
    assert [line.replace(str(file), "config.yaml").split(" is no")[0] for line in configuration.warnings[:-1]] == [
        "config.yaml:7: responses",
        "config.yaml:26: policy.search_triggers",
        "config.yaml:27: policy.prefer_search_when_unsure",
        "config.yaml:29: policy.requery_attempts",
        "config.yaml:30: policy.require_dates_iso",
        "config.yaml:35: server.transport",
    ]
    assert "answer_quick.reasoning_effort" in configuration.warnings[-1]


def test_the_dropped_variable_is_warned_of(configured: Load) -> None:
    warning = "REQUERY_ATTEMPTS is no longer used (the model decides how often it searches)"
    assert configured("", REQUERY_ATTEMPTS="2").warnings == (warning,)
    assert configured("", REQUERY_ATTEMPTS="").warnings == ()


def _answer(configuration: Configuration) -> Profile:
    assert configuration.settings.model_profiles.answer is not None
    return configuration.settings.model_profiles.answer
