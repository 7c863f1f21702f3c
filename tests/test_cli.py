"""The command line: how it is parsed, and the commands that serve no client."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from openai_responses_mcp import __version__
from openai_responses_mcp.cli import main
from openai_responses_mcp.commands.usage import DEMO_QUESTION, HELP, OPTIONS, BadCommandLine, Options, parse
from openai_responses_mcp.rehearsal import answers
from tests.e2e.client import COMMAND, KEY, WAIT_SECONDS, environment

PREFIX = "openai-responses-mcp: "


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """As much of an environment as is read in this process: a home without a configuration."""
    return {"HOME": str(tmp_path), "APPDATA": str(tmp_path)}


def test_a_command_line_is_parsed() -> None:
    cases: list[tuple[list[str], Options]] = [
        (["--stdio"], Options(stdio=True)),
        (["-h"], Options(help=True)),
        (["--ask", "Why?", "--rehearse"], Options(ask="Why?", rehearse=True)),
        (["--ask", "-1 + 1?"], Options(ask="-1 + 1?")),
        (["-"], Options(ask="-")),
        (["--rehearse", "Why so?", "--quick"], Options(ask="Why so?", rehearse=True, quick=True)),
        (["--continue", "resp_1", "Why?"], Options(ask="Why?", continues="resp_1")),
        (["--continue", "Why?"], Options(ask="Why?", continues="")),
        (
            ["--ask", "-", "--tool", "answer", "--domains=a,b", "--recency", "7", "--style", "bullets", "--json"],
            Options(ask="-", tool="answer", domains="a,b", recency="7", style="bullets", json=True),
        ),
        (["--rehearse"], Options(rehearse=True, ask=DEMO_QUESTION)),
        (["--config=a=b.yaml"], Options(config="a=b.yaml")),
        (["--model=o3", "--model", "o4"], Options(model="o4")),
        (["--debug", "a.log"], Options(debug="a.log")),
        (["--debug", "--stdio"], Options(debug="", stdio=True)),
    ]
    for line, options in cases:
        assert parse(line) == options


def test_abbreviations_and_unknown_options_are_refused() -> None:
    for argument in ("--std", "--Stdio", "--"):
        with pytest.raises(BadCommandLine, match="unknown option"):
            parse([argument])


@pytest.mark.parametrize("line", [["--config"], ["--model", "--stdio"]])
def test_an_option_without_its_value_is_refused(line: list[str]) -> None:
    with pytest.raises(BadCommandLine, match="needs a value"):
        parse(line)


@pytest.mark.parametrize("line", [[], ["-h", "--stdio"], ["--model", "o3"]])
def test_help_is_shown_when_asked_for_and_when_there_is_nothing_to_do(
    line: list[str], environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line, environ) == 0
    assert capsys.readouterr() == (HELP, "")


def test_the_demo_question_is_the_one_that_the_stand_in_knows() -> None:
    assert DEMO_QUESTION == answers.DEMO_QUESTION


def test_help_names_every_option_in_one_screen() -> None:
    assert all(f"  {option.spelled} " in HELP for option in OPTIONS)
    assert "(-h)" in HELP
    assert "(-v)" in HELP
    commands = ("guard", "approvals", "policy", "log", "status")
    assert all(f"openai-responses-mcp {name} " in HELP for name in commands)
    assert max(map(len, HELP.splitlines())) <= 80
    assert len(HELP.splitlines()) <= 45


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (["--stdio", "now"], "--stdio and --ask do not go together (see openai-responses-mcp --help)"),
        (["--quick", "guard"], "guard is a command: write it first (see openai-responses-mcp --help)"),
        (["--ask", "a", "--fetch", "b"], "--ask and --fetch do not go together (see openai-responses-mcp --help)"),
        (
            ["--quick", "--ask", "What", "is", "--domains", "a b", "this"],
            """put the question in quotes: openai-responses-mcp "What is this" --quick --domains 'a b'""",
        ),
        (["--rehears"], "unknown option --rehears: did you mean --rehearse? (see openai-responses-mcp --help)"),
        (["setup"], "unknown command setup: did you mean guard setup? (see openai-responses-mcp --help)"),
        (
            ["approvls"],
            'unknown command approvls: did you mean approvals? To ask a question: openai-responses-mcp --ask "approvls"',
        ),
        (
            ["approvls", "list"],
            "unknown command approvls: did you mean approvals? To ask a question, put the question in quotes:"
            ' openai-responses-mcp "approvls list"',
        ),
        (["--stdio=1"], "--stdio takes no value (see openai-responses-mcp --help)"),
        ([""], "--ask needs a question"),
        (["--json", "--stdio"], "--json goes with --ask (see openai-responses-mcp --help)"),
        (
            ["a", "--continue=b"],
            "--continue takes the id of an answer, which starts with resp_ (see openai-responses-mcp --help)",
        ),
        (["a", "--continue"], "there is no earlier answer to continue; name one: --continue resp_..."),
        (["a", "--quick", "--detailed"], "choose one tool (found answer_detailed and answer_quick)"),
        (["a", "--quick", "--domains", "b"], "answer_quick does not take --domains"),
        (["a", "--style", "loud"], "--style must be one of summary, bullets, citations-only (found loud)"),
        (["--two\nlines"], "unknown option --two lines (see openai-responses-mcp --help)"),
        ([f"--api-key={KEY}"], "unknown option --api-key=*** (see openai-responses-mcp --help)"),
        (
            ["--rehearse", "--show-config"],
            "--rehearse goes with --stdio, --http or --ask (see openai-responses-mcp --help)",
        ),
        (["--stdio", "--model="], '--model must be text that is not blank (found "")'),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_two(
    line: list[str], problem: str, environ: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(line, environ) == 2
    assert capfd.readouterr() == ("", f"{PREFIX}{problem}\n")


def test_the_configuration_is_shown_as_json_on_stderr(
    environ: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    environ |= {"OPENAI_API_KEY": KEY, "MODEL_ANSWER": "gpt-5-mini", "DEBUG": "0"}
    assert main(["--show-config", "--debug", "~/debug.log"], environ) == 0
    output = capfd.readouterr()
    shown = json.loads(output.err)
    assert output.out == ""
    assert shown["version"] == __version__
    assert shown["sources"] == {"defaults": True, "yaml": None, "env": ["MODEL_ANSWER"], "cli": ["--debug"]}
    assert shown["effective"]["model_profiles"]["answer"]["model"] == "gpt-5-mini"
    assert shown["effective"]["server"]["debug"] is True
    assert shown["effective"]["server"]["debug_file"] == f"{environ['HOME']}/debug.log"
    assert KEY not in output.err


def test_a_warning_comes_first_and_stands_out_on_a_terminal(
    environ: dict[str, str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["--show-config", "--config", "/no/such/file.yaml"], environ) == 0
    warning, _, shown = capfd.readouterr().err.partition("\n")
    said = "--config /no/such/file.yaml: there is no such file, so the settings in it are not used"
    assert warning == f"{PREFIX}WARNING: {said}"
    assert json.loads(shown)["sources"]["cli"] == ["--config"]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["--show-config", "--config", "/no/such/file.yaml"], environ) == 0
    assert capfd.readouterr().err.startswith(f"{PREFIX}\x1b[1;33mWARNING:\x1b[0m --config /no")


@pytest.mark.parametrize(
    ("options", "code", "output"), [(["--version"], 0, f"{__version__}\n"), (["--nonsense"], 2, "")]
)
def test_the_process_ends_with_the_code_of_its_command(
    tmp_path: Path, options: list[str], code: int, output: str
) -> None:
    done = subprocess.run(
        [*COMMAND, *options], capture_output=True, env=environment(tmp_path), encoding="utf-8", timeout=WAIT_SECONDS
    )
    assert (done.returncode, done.stdout) == (code, output)
    assert len(done.stderr.splitlines()) == (1 if code else 0)


@pytest.mark.parametrize("line", [["guard"], ["agents", "guard"], ["guard", "--help"]])
def test_the_guard_has_a_command_of_its_own(
    line: list[str], environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line, environ) == 0
    assert capsys.readouterr().out.startswith("Usage: openai-responses-mcp guard")


@pytest.mark.parametrize("name", ["approvals", "policy", "log"])
@pytest.mark.parametrize("before", [[], ["agents"]])
def test_commands_of_the_desk_stand_at_the_top_and_below_agents(
    before: list[str], name: str, environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([*before, name, "--help"], environ)
    assert capsys.readouterr().out.startswith(f"usage: openai-responses-mcp {name}")
