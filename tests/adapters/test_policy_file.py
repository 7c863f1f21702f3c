"""The policy in a file: messages for its problems, and how changes are picked up."""

import logging
import os
import re
from pathlib import Path
from typing import get_args

import pytest

from openai_responses_mcp.adapters.policy_file import (
    LinearPatterns,
    PolicyFile,
    parse_policy,
    read_policy,
)
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.policy.reading import TOP_KEYS
from openai_responses_mcp.gate.policy.rules import Condition, with_inner

ROOT = Path(__file__).parents[2]
LONG_AGO = 1_000_000_000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "policy.yaml"


def problems_in(text: str) -> tuple[str, ...]:
    return parse_policy("policy.yaml", text, LinearPatterns()).problems


def opened(file: Path, text: str | None = None) -> PolicyFile:
    if text is not None:
        file.write_text(text)
    return PolicyFile(file, LinearPatterns())


def test_every_problem_is_reported_with_file_line_and_key() -> None:
    text = """\
version: 1
profile: balancd
rules:
  - tools: [files/read_*]
    decide: allow
  - tools: [delete_file]
    decde: deny
    when:
      path: {match: x}
"""
    assert problems_in(text) == (
        "policy.yaml:2: profile is strict, balanced or fast (did you mean balanced?)",
        "policy.yaml:6: rule 2 needs decide or risk, one of the two",
        "policy.yaml:6: rule 2: tools[0] fits no tool: tools are called server/tool, function/name or skill/name; "
        "write */delete_file for the tool of any server",
        "policy.yaml:7: rule 2: decde is an unknown key (did you mean decide?)",
        "policy.yaml:9: rule 2: when.path.match is an unknown key (did you mean matches?)",
    )


def test_an_invalid_file_is_reported_with_the_line() -> None:
    cases: list[tuple[str, str]] = [
        ("", "policy.yaml:1: the file is empty; it needs at least version: 1"),
        ("version: 1\nversion: 1\n", "policy.yaml:2: version is there twice, first on line 1"),
        ("version: 1\nrules: [", "policy.yaml:2: not valid YAML: "),
        ("version: yes\n", "policy.yaml:1: version is 1, the only version there is"),
        ('version: 1\n"a\\eb": 1\n', "policy.yaml:2: a b is an unknown key"),
    ]
    for text, problem in cases:
        (found,) = problems_in(text)
        assert found.startswith(problem)


def test_the_example_has_every_key_and_no_problem() -> None:
    reading = read_policy(str(ROOT / "config" / "policy.yaml.example"), LinearPatterns())
    assert reading.problems == ()
    policy = reading.policy
    assert None not in (policy.profile, policy.scopes, policy.audit, policy.ask, policy.budget, policy.wait_seconds)
    conditions = [one for rule in policy.rules for when in rule.when for one in when.conditions]
    assert {type(one) for one in with_inner(conditions)} == set(get_args(Condition))
    example = (ROOT / "config" / "policy.yaml.example").read_text()
    assert [key for key in TOP_KEYS if not re.search(rf"^(# )?{key}:", example, re.MULTILINE)] == []
    assert {rule.decide for rule in policy.rules} == {"allow", "ask", "deny", None}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read"),
        (b"version: 2\nwait: -1\n", "1: version is 1"),
        (b"version: 2\nwait: -1\n", "2: wait is"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(file: Path, content: bytes | None, words: str) -> None:
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(AgentsError, match="AGENTS-E-POLICY-INVALID") as caught:
        opened(file)
    assert re.search(rf"{file}: ?{words}", caught.value.message)


@pytest.mark.parametrize("impossible", ["a\0b", "\ud800"])
def test_an_impossible_file_name_is_refused(impossible: str) -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-POLICY-INVALID"):
        PolicyFile(impossible, LinearPatterns())


GOOD = "version: 1\nprofile: strict\n"


@pytest.mark.parametrize("spoiled", ["version: 1\nprofile: lenient\n", None])
def test_a_file_that_becomes_invalid_leaves_the_last_good_policy_and_warns_once(
    file: Path, spoiled: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    source = opened(file, GOOD)
    if spoiled is None:
        file.unlink()
    else:
        file.write_text(spoiled)
    for _ in range(3):
        assert source.current().profile == "strict"
    (warning,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "AGENTS-E-POLICY-INVALID" in warning.message
    assert str(file) in warning.message
    assert "the last good policy stays in force" in warning.message


def test_a_file_that_becomes_invalid_again_warns_again(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = opened(file, GOOD)
    for text in ("version: [", GOOD, "version: ["):
        file.write_text(text)
        source.current()
    assert [record.levelno for record in caplog.records].count(logging.WARNING) == 2


def test_a_change_within_one_tick_of_the_clock_is_seen(file: Path) -> None:
    source = opened(file, "version: 1\nprofile: fast  #\n")
    before = file.stat()
    with file.open("r+") as same:
        same.write("version: 1\nprofile: strict\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    assert source.current().profile == "strict"


def test_a_replacement_file_with_an_old_date_is_seen(file: Path, tmp_path: Path) -> None:
    source = opened(file, "version: 1\nprofile: fast  #\n")
    other = tmp_path / "other.yaml"
    other.write_text(GOOD)
    os.utime(other, (LONG_AGO, LONG_AGO))
    other.replace(file)
    assert source.current().profile == "strict"


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("(a+)+", "a" * 50_000 + "!"), ("(a?){50}a{50}", "a" * 49)],
)
@pytest.mark.timeout(5)
def test_a_pattern_that_makes_other_engines_backtrack_takes_linear_time(pattern: str, text: str) -> None:
    assert not LinearPatterns().compile(pattern)(text)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"(a)\1", "backreferences are not supported"),
        ("(?=a)", "look-around, including look-ahead and look-behind, is not supported"),
        (r"\w{1000}{1000}", "Compiled regex exceeds size limit"),
    ],
)
def test_a_pattern_that_cannot_run_in_linear_time_is_refused_with_the_reason(pattern: str, words: str) -> None:
    with pytest.raises(ValueError, match="can be used") as caught:
        LinearPatterns().compile(pattern)
    assert words in str(caught.value)


def test_a_pattern_matches_half_a_surrogate_pair_as_one_character() -> None:
    assert LinearPatterns().compile("a.b")("a\ud800b")


def test_a_pattern_matches_the_whole_text_and_nothing_less() -> None:
    cases: list[tuple[str, str, bool]] = [
        ("a+", "aaa", True),
        ("a+", "aaa\n", False),
        ("a|b", "ab", False),
        ("(?i)get", "GET", True),
        (r"[\w.]+@example\.com", "me@example.com.evil", False),
    ]
    for pattern, text, is_match in cases:
        assert LinearPatterns().compile(pattern)(text) is is_match


def test_an_invalid_pattern_is_refused() -> None:
    for pattern in ("(", "a)|(?:b"):
        with pytest.raises(ValueError, match=r"^is not a pattern that can be used: \w"):
            LinearPatterns().compile(pattern)
