import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from openai_responses_mcp import __version__
from openai_responses_mcp.config.file import MAX_FILE_BYTES
from openai_responses_mcp.config.loading import (
    VARIABLES,
    Configuration,
    Flags,
    load,
    show,
)
from openai_responses_mcp.config.settings import ModelProfiles, Profile, Settings
from openai_responses_mcp.domain.policy import SYSTEM_POLICY, join_policy

Load = Callable[..., Configuration]
Problems = Callable[..., list[str]]

ROOT = Path(__file__).parent.parent.parent
KEY = "sk-proj-abcdefgh12345678"

PROFILES_OF_THE_EXAMPLE = ModelProfiles(
    answer=Profile("gpt-5.2", "medium", "medium"),
    answer_detailed=Profile("gpt-5.5", "high", "high", background=True),
    answer_quick=Profile("gpt-5.4-mini", "low", "low"),
)


# Where values come from


def test_without_anything_there_are_the_defaults(home: Path) -> None:
    configuration = load(Flags(), {"HOME": str(home)})
    assert configuration.settings == Settings()
    assert configuration.system_policy == SYSTEM_POLICY
    assert configuration.warnings == ()
    assert (configuration.sources.yaml, configuration.sources.env, configuration.sources.cli) == (None, (), ())


def test_flags_win_over_variables_over_the_file_over_the_defaults(configured: Load) -> None:
    text = "model_profiles: {answer: {model: from-file, verbosity: high}}"
    assert _answer(configured("")).model == "gpt-5.2"
    assert _answer(configured(text)) == Profile("from-file", "medium", "high")
    assert _answer(configured(text, MODEL_ANSWER="from-env")) == Profile("from-env", "medium", "high")
    assert _answer(configured(text, Flags(model="from-flag"), MODEL_ANSWER="from-env")).model == "from-flag"


def test_a_variable_sets_its_key_over_the_file_and_an_empty_one_does_not(configured: Load) -> None:
    texts = {
        "OPENAI_BASE_URL": "http://localhost:1/v1",
        "OPENAI_API_TIMEOUT": "1000",
        "OPENAI_MAX_RETRIES": " 0 ",
        "MODEL_ANSWER": "a",
        "ANSWER_EFFORT": "xhigh",
        "ANSWER_VERBOSITY": "low",
        "MODEL_DETAILED": "d",
        "MODEL_QUICK": "q",
        "MAX_CITATIONS": "10",
        "SEARCH_RECENCY_DAYS": "0.5",
        "SEARCH_MAX_RESULTS": "1",
    }
    configuration = configured("policy: {max_citations: 7}", **texts)
    settings = configuration.settings
    assert settings.model_profiles == ModelProfiles(
        Profile("a", "xhigh", "low"), Profile("d", "xhigh", "low", background=True), Profile("q", "xhigh", "low")
    )
    assert (settings.openai.base_url, settings.request.timeout_ms) == ("http://localhost:1/v1", 1000)
    assert (settings.request.max_retries, settings.policy.max_citations) == (0, 10)
    assert (settings.search.defaults.recency_days, settings.search.defaults.max_results) == (0.5, 1)
    assert set(configuration.sources.env) == set(texts) == set(VARIABLES)
    assert configured("", **dict.fromkeys(texts, " ")) == configured("")


def test_lists_replace_and_mappings_merge(configured: Load) -> None:
    settings = configured("server: {tools: [iris]}\nsearch: {defaults: {domains: [a.example, b.example]}}").settings
    assert settings.server.tools == ("iris",)
    assert settings.server.error_style == "jsonrpc"
    assert settings.search.defaults.domains == ("a.example", "b.example")
    assert settings.search.defaults.max_results == 5


@pytest.mark.parametrize("text", ["# nothing yet\n", "request:\nopenai:\n  base_url:\n", "\ufeff---\n"])
def test_a_key_without_a_value_is_absent(configured: Load, file: Path, text: str) -> None:
    configuration = configured(text)
    assert configuration.settings == Settings()
    assert configuration.sources.yaml == str(file)


# Profiles


def test_a_profile_takes_from_answer_what_it_does_not_say(configured: Load) -> None:
    text = "model_profiles: {answer: {verbosity: low}, answer_detailed: {reasoning_effort: high}, answer_quick: null}"
    profiles = configured(text, Flags(model="m"), ANSWER_EFFORT="none").settings.model_profiles
    assert profiles == ModelProfiles(Profile("m", "none", "low"), Profile("m", "high", "low", True), None)


@pytest.mark.parametrize(
    ("text", "in_background"),
    [
        ("", ("answer_detailed",)),
        ("model_profiles: {answer: {background: true}, answer_quick: {model: q}}", ("answer", "answer_detailed")),
        ("model_profiles: {answer_detailed: {background: false}}", ()),
        ("request: {store: false}", ()),
        ("request: {omit: [stream]}", ()),
    ],
)
def test_research_runs_in_the_background_unless_configured_otherwise(
    configured: Load, text: str, in_background: tuple[str, ...]
) -> None:
    assert configured(text).settings.tools_in_background == in_background


def test_answer_can_be_taken_away_and_a_variable_brings_it_back(configured: Load) -> None:
    text = "model_profiles: {answer: null, answer_quick: {model: q}}"
    assert configured(text).settings.model_profiles == ModelProfiles(None, None, Profile("q", "medium", "medium"))
    assert _answer(configured(text, MODEL_ANSWER="m")) == Profile("m", "medium", "medium")


@pytest.mark.parametrize(
    ("text", "environ", "names"),
    [
        ("model_profiles: {answer_quick: {reasoning_effort: minimal}}", {}, ["answer_quick"]),
        ("", {"ANSWER_EFFORT": "minimal"}, ["answer"]),
        ("model_profiles: {answer_quick: {model: m}}", {"ANSWER_EFFORT": "minimal"}, ["answer", "answer_quick"]),
    ],
)
def test_minimal_effort_is_warned_of(configured: Load, text: str, environ: dict[str, str], names: list[str]) -> None:
    assert list(configured(text, **environ).warnings) == [
        f"model_profiles.{name}.reasoning_effort: the API refuses minimal together with web search; "
        "set none or low instead"
        for name in names
    ]


# The debug log


@pytest.mark.parametrize(
    ("yaml", "variable", "flags", "outcome"),
    [
        ("", "", Flags(), (False, None)),
        ("{debug: true, debug_file: y}", "", Flags(), (True, "y")),
        ("{debug_file: y}", "1", Flags(), (True, "y")),
        ("{debug: true}", "OFF", Flags(), (False, None)),
        ("{debug_file: y}", "e", Flags(), (True, "e")),
        ("{debug_file: y}", "0", Flags(debug=True), (True, "y")),
        ("", "e", Flags(debug_file="f"), (True, "f")),
    ],
)
def test_debug_is_decided_once(
    configured: Load, yaml: str, variable: str, flags: Flags, outcome: tuple[bool, str | None]
) -> None:
    server = configured(f"server: {yaml}", flags, DEBUG=variable).settings.server
    assert (server.debug, server.debug_file) == outcome


@pytest.mark.parametrize("path", ["~/a.log", "~", "~nobody-of-this-name/a.log"])
def test_the_home_folder_in_a_path_is_the_one_of_the_environment(configured: Load, home: Path, path: str) -> None:
    expected = path.replace("~", str(home)) if "nobody" not in path else path
    assert configured("", DEBUG=path).settings.server.debug_file == expected


# The system policy


@pytest.mark.parametrize("merge", ["replace", "prepend", "append"])
def test_a_policy_file_joins_the_built_in_policy(configured: Load, home: Path, merge: str) -> None:
    (home / "policy.md").write_text("Be brief.\n", encoding="utf-8")
    configuration = configured(f"policy: {{system: {{source: file, path: ~/policy.md, merge: {merge}}}}}")
    assert configuration.system_policy == join_policy(SYSTEM_POLICY, "Be brief.\n", merge)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read (No such file or directory)"),
        (b"\xff", "is not UTF-8 text"),
        (b"x" * (MAX_FILE_BYTES + 1), "is larger than 1 MiB"),
    ],
)
def test_a_policy_file_that_cannot_be_read_is_a_problem(
    problems: Problems, home: Path, content: bytes | None, words: str
) -> None:
    if content is not None:
        (home / "policy.md").write_bytes(content)
    lines = problems("policy:\n  system:\n    source: file\n    path: ~/policy.md")
    assert lines == [f"config.yaml:4: policy.system.path: {home}/policy.md {words}"]


def test_a_policy_path_that_is_not_used_is_warned_of(configured: Load) -> None:
    configuration = configured("policy: {system: {path: ~/policy.md}}")
    assert configuration.system_policy == SYSTEM_POLICY
    assert configuration.warnings[0].endswith("policy.system.path is not read unless policy.system.source is file")


# Hand-over


@pytest.mark.parametrize(("text", "seconds"), [("", "auto"), ("hand_over_after_s: null", None)])
def test_null_switches_hand_over_off(configured: Load, text: str, seconds: float | str | None) -> None:
    assert configured(f"server: {{{text}}}").settings.server.hand_over_after_s == seconds


# The time zone


def test_the_instructions_speak_of_the_days_in_the_time_zone(configured: Load, home: Path) -> None:
    (home / "policy.md").write_text("In Asia/Tokyo it is always tea time.")
    own = "policy: {system: {source: file, path: ~/policy.md, merge: append}}"
    policy = configured(f"search: {{timezone: Europe/Berlin}}\n{own}").system_policy
    assert "mean days in Europe/Berlin." in policy
    assert policy.count("Asia/Tokyo") == 1


@pytest.mark.parametrize("name", ["Tokyo", "../etc/passwd", "a\\0b"])
def test_an_unknown_time_zone_is_refused(problems: Problems, name: str) -> None:
    [problem] = problems(f'search: {{timezone: "{name}"}}')
    wanted = "text that names a time zone, such as Europe/Berlin"
    assert problem.startswith(f"config.yaml:1: search.timezone must be {wanted} (found ")


# Showing it


def test_show_has_sources_and_settings(configured: Load, file: Path) -> None:
    flags = Flags(model="m", debug=True)
    text = "server: {tools: [answer]}\nrequest: {extra: {metadata: {a: [b]}}}"
    configuration = configured(text, flags, MODEL_ANSWER="n", MAX_CITATIONS="2", DEBUG="1")
    shown = show(configuration, {})
    assert shown["version"] == __version__
    assert shown["sources"] == {
        "defaults": True,
        "yaml": str(file),
        "env": ["MAX_CITATIONS"],
        "cli": ["--model", "--debug"],
    }
    assert shown["effective"]["server"]["tools"] == ["answer"]
    assert shown["effective"]["model_profiles"]["answer"]["model"] == "m"
    assert shown["effective"]["search"]["defaults"]["recency_days"] == 60
    assert shown["effective"]["search"]["live"] is True
    assert shown["effective"]["request"]["extra"] == {"metadata": {"a": ["b"]}}
    assert json.loads(json.dumps(shown)) == shown


def test_show_masks_what_is_secret(configured: Load) -> None:
    environ = {
        "OPENAI_BASE_URL": "https://me:hidden@gateway.example/v1",
        "MODEL_ANSWER": KEY,
        "MODEL_QUICK": "my-own-key",
    }
    shown = show(configured("request: {extra: {a: [my-own-key]}}", **environ), {"OPENAI_API_KEY": "my-own-key"})
    assert shown["effective"]["openai"]["base_url"] == "https://***@gateway.example/v1"
    assert KEY not in json.dumps(shown)
    assert "my-own-key" not in json.dumps(shown)


# What is shipped with it


def test_the_example_loads_and_shows_a_profile_for_each_tool() -> None:
    configuration = load(Flags(config=str(ROOT / "config" / "config.yaml.example")), {})
    assert configuration.warnings == ()
    assert configuration.settings == Settings(model_profiles=PROFILES_OF_THE_EXAMPLE)


def test_the_example_still_loads_when_everything_in_it_is_switched_on(configured: Load, home: Path) -> None:
    lines = (ROOT / "config" / "config.yaml.example").read_text(encoding="utf-8").splitlines()
    switched_on = [line.replace("  # ", "  ", 1) if line.startswith("  # ") else line for line in lines]
    policy = (ROOT / "config" / "policy.md.example").read_text(encoding="utf-8")
    (home / ".config" / "openai-responses-mcp" / "policy.md").write_text(policy, encoding="utf-8")
    configuration = configured("\n".join(switched_on))
    assert configuration.settings.request.omit == ("truncation", "include")
    assert configuration.settings.request.extra == {"service_tier": "flex"}
    assert configuration.system_policy == join_policy(SYSTEM_POLICY, policy, "append")


def test_defaults_and_plain_variables_import_nothing_heavy(home: Path) -> None:
    program = (
        "import sys\n"
        "from openai_responses_mcp.config.loading import Flags, load\n"
        "load(Flags(model='m', debug=True), {'HOME': sys.argv[1], 'MAX_CITATIONS': '2', 'SEARCH_RECENCY_DAYS': '1.5',"
        " 'ANSWER_EFFORT': 'low', 'OPENAI_BASE_URL': 'https://gateway.example/v1', 'DEBUG': '0'})\n"
        "print(*sys.modules)"
    )
    # -S: what installed packages import at the start of every interpreter is not ours to count.
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ran = subprocess.run(
        [sys.executable, "-S", "-c", program, str(home)], env=environ, capture_output=True, text=True, check=True
    )
    heavy = {
        "pydantic",
        "pydantic_core",
        "ruamel",
        "structlog",
        "openai",
        "argparse",
        "pathlib",
        "json",
        "urllib.parse",
    }
    assert heavy & set(ran.stdout.split()) == set()


def _answer(configuration: Configuration) -> Profile:
    assert configuration.settings.model_profiles.answer is not None
    return configuration.settings.model_profiles.answer
