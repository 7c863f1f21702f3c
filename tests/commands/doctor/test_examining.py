import io
import json
import shlex
import socket
from pathlib import Path
from typing import Any

import pytest

from openai_responses_mcp.cli import main
from openai_responses_mcp.commands.doctor.clients import own_command
from openai_responses_mcp.commands.doctor.examining import MAX_CLIENT_FILE_BYTES, examine
from openai_responses_mcp.commands.usage import WITHOUT_A_KEY
from openai_responses_mcp.config.loading import Flags, load
from tests.stand_in.http_wire import RecordedRequest, Reply
from tests.stand_in.server import StandInThread

KEY = "sk-proj-abcdefgh12345678"
CLIENT_NAMES = ("Claude Code", "Codex", "Claude Desktop", "Cursor", "VS Code", "Gemini CLI")
ENTRY = {"command": "uvx", "args": ["openai-responses-mcp", "--stdio"]}


# As quick as a server can be: it says its lines, whatever it is asked.
SERVER = """\
#!/bin/sh
read hello
echo '{"jsonrpc": "2.0", "id": 1, "result": {"serverInfo": {"name": "answers", "version": "1.0"}}}'
read initialized
read list
echo '{"jsonrpc": "2.0", "id": 2, "result": {"tools": [{"name": "answer"}, {"name": "iris"}]}}'
read end
"""
SEEN = "a client sees answers 1.0 with answer, iris"


class Patient:
    """A home folder, an environment, and what the doctor says of them."""

    def __init__(self, home: Path, base_url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self.environ = {
            "HOME": str(home),
            "PATH": str(home / "bin"),
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": base_url,
            "TZ": "Asia/Tokyo",
        }
        self.output = ""
        self._capsys = capsys

    def write(self, name: str, content: Any) -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
        return path

    def configure(self, text: str) -> None:
        self.write(".config/openai-responses-mcp/config.yaml", text)

    def examine(self, flags: Flags | None = None, **options: Any) -> tuple[int, dict[str, tuple[str, str]]]:
        """The exit code, and of each line what it is about -> its level and what it says."""
        code = examine(load(flags or Flags(), self.environ), self.environ, **options)
        self.output = self._capsys.readouterr().out
        *output, self.summary = self.output.splitlines()
        self.titles = [line[6:].partition(": ")[0] for line in output]
        lines = {}
        for line in output:
            what, _, detail = line[6:].partition(": ")
            for one in self._each(what):
                assert one not in lines
                lines[one] = (line[:6].strip(), detail)
        return code, lines

    def printed(self) -> str:
        return self._capsys.readouterr().out

    def _each(self, what: str) -> list[str]:
        """A line may be about several profiles."""
        kind, _, names = what.partition(" for ")
        return [f"{kind} for {name}" for name in names.split(", ")] if names else [what]


@pytest.fixture
def patient(
    tmp_path: Path,
    rehearsal: StandInThread,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Patient:
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "uvx").write_text(SERVER)
    (home / "bin" / "uvx").chmod(0o755)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    count_tokens(rehearsal, COUNTED)
    return Patient(home, rehearsal.base_url, capsys)


COUNTED = Reply(body=b'{"object": "response.input_tokens", "input_tokens": 11}')


def count_tokens(rehearsal: StandInThread, reply: Reply, **said_of_models: Any) -> None:
    """Answer as before, but a question whose tokens are to be counted with this reply."""
    usual = rehearsal.server.handler

    async def handler(request: RecordedRequest) -> Reply:
        if request.path == "/v1/responses/input_tokens":
            return reply
        if said_of_models and request.path.startswith("/v1/models/"):
            return Reply(body=json.dumps(said_of_models).encode())
        return await usual(request)

    rehearsal.server.handler = handler


def answer_with(rehearsal: StandInThread, reply: Reply) -> None:
    async def handler(_: RecordedRequest) -> Reply:
        return reply

    rehearsal.server.handler = handler


def api_error(status: int, **facts: str) -> Reply:
    return Reply(status, {"content-type": "application/json"}, json.dumps({"error": facts}).encode())


def test_nothing_is_wrong_with_a_key_and_an_api_that_answers(patient: Patient, rehearsal: StandInThread) -> None:
    code, lines = patient.examine()
    assert code == 0
    assert patient.titles == [
        "configuration",
        "key",
        "API",
        "model for answer, answer_detailed, answer_quick",
        "settings for answer, answer_detailed, answer_quick",
        "place of searches",
        *CLIENT_NAMES,
    ]
    assert patient.summary == "No problems found."
    assert lines["configuration"] == ("ok", "defaults, no file; variables OPENAI_BASE_URL")
    assert lines["key"] == ("ok", "set in OPENAI_API_KEY")
    assert lines["API"] == ("ok", f"{rehearsal.base_url} answers")
    assert lines["model for answer"] == ("ok", "gpt-5.2")
    assert lines["settings for answer"] == (
        "ok",
        "effort medium, verbosity medium; the API counted the tokens of such a question",
    )
    paths = sorted(request.path for request in rehearsal.server.requests)
    assert paths == ["/v1/models/gpt-5.2", "/v1/responses/input_tokens"]
    assert {request.headers["authorization"] for request in rehearsal.server.requests} == {f"Bearer {KEY}"}


def test_on_a_terminal_lines_wrap_at_words_and_what_is_pasted_stays_whole(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "50")
    (patient.home / "bin" / "codex").touch(mode=0o755)
    del patient.environ["OPENAI_API_KEY"]
    examine(load(Flags(), patient.environ), patient.environ)
    lines = patient.printed().splitlines()
    assert lines[2:5] == [
        "\x1b[1;31mFAIL  \x1b[0mkey: Missing API key: set OPENAI_API_KEY.",
        "      Keys come from",
        "      https://platform.openai.com/api-keys. To",
    ]
    pasted = next(line for line in lines if "codex mcp add" in line)
    assert pasted.startswith("      codex mcp add openai-responses ")
    assert pasted.endswith(" --stdio")
    assert "1 problem found. 2 warnings. Begin with this:" in lines
    patient.environ["NO_COLOR"] = "1"
    examine(load(Flags(), patient.environ), patient.environ)
    assert "\x1b" not in patient.printed()


# Configuration


def test_the_file_the_variables_and_the_flags_are_named(patient: Patient) -> None:
    path = patient.write("my.yaml", "policy: {max_citations: 2}")
    patient.environ["MODEL_QUICK"] = "gpt-5-mini"
    _, lines = patient.examine(Flags(config=str(path), model="gpt-5"))
    assert lines["configuration"] == (
        "ok",
        f"{path}; variables OPENAI_BASE_URL, MODEL_QUICK; flags --config, --model",
    )


def test_a_broken_file_fails_and_everything_else_is_checked_all_the_same(
    patient: Patient, capsys: pytest.CaptureFixture[str]
) -> None:
    patient.configure(
        "policy: {max_citations: 99, requery_attempts: 1}\nserver: {colour: red, tools: [answer, guess]}\n"
        "model_profiles: {answer_quick: {model: o3}}"
    )
    assert main(["--doctor"], patient.environ) == 1
    output = capsys.readouterr()
    lines = output.out.splitlines()
    assert output.err == ""
    assert [line[:21] for line in lines[:3]] == ["FAIL  configuration: "] * 3
    assert ":1: policy.max_citations must be" in lines[0]
    assert ":2: unknown key server.colour" in lines[2]
    assert ":2: server.tools[1] must be" in lines[1]
    assert lines[3] == "warn  configuration: the checks below ignore the invalid settings"
    assert lines[4] == "ok    key: set in OPENAI_API_KEY"
    assert lines[6:8] == ["ok    model for answer, answer_detailed: gpt-5.2", "ok    model for answer_quick: o3"]
    assert lines[-2].startswith("--    Gemini CLI: ")
    assert lines[-1] == f"3 problems found. 1 warning. Begin with this: {lines[0][6:]}"


# Key and API


def test_without_the_configured_key_the_way_to_the_api_is_checked_all_the_same(
    patient: Patient, rehearsal: StandInThread
) -> None:
    patient.configure("openai: {api_key_env: MY_KEY}")
    (patient.home / "bin" / "codex").touch(mode=0o755)
    patient.environ["MODEL_QUICK"] = "gpt-5-mini"
    code, lines = patient.examine()
    assert code == 1
    assert lines["key"] == ("FAIL", f"Missing API key: set MY_KEY. {WITHOUT_A_KEY}")
    assert "MY_KEY=YOUR_KEY" in lines["Codex"][1]
    assert lines["API"][0] == "ok"
    assert lines["model for answer"] == ("warn", "gpt-5.2 was not checked: that takes a key")
    assert lines["settings for answer"] == ("warn", "effort medium, verbosity medium; not checked: that takes a key")
    assert len(rehearsal.server.requests) == 1


def test_a_key_that_cannot_be_sent_fails_and_is_not_shown(patient: Patient) -> None:
    patient.environ["OPENAI_API_KEY"] = f"{KEY} and more"
    code, lines = patient.examine()
    assert code == 1
    assert lines["key"][0] == "FAIL"
    assert "Copy it again" in lines["key"][1]
    assert KEY not in patient.output


def test_a_refused_key_fails_and_is_not_shown(patient: Patient, rehearsal: StandInThread) -> None:
    answer_with(rehearsal, api_error(401, message=f"Incorrect API key provided: {KEY}"))
    code, lines = patient.examine()
    assert code == 1
    assert lines["API"][0] == "ok"
    assert lines["key"][0] == "FAIL"
    assert "The API key was refused (401)" in lines["key"][1]
    assert lines["model for answer"] == ("warn", "gpt-5.2 was not checked, because the key was refused")
    assert lines["settings for answer"][1].endswith("; not checked, because the key was refused")
    assert patient.output.count("The API key was refused") == 2  # where it is checked, and in the last line
    assert KEY not in patient.output


def test_a_key_without_the_right_to_a_model_is_the_matter_of_that_model(
    patient: Patient, rehearsal: StandInThread
) -> None:
    answer_with(rehearsal, api_error(403, message="Not for this project"))
    code, lines = patient.examine()
    assert (code, lines["key"][0], lines["API"][0], lines["model for answer"][0]) == (1, "ok", "ok", "FAIL")
    assert "the key was refused" in lines["model for answer"][1]
    assert "Not for this project" in lines["model for answer"][1]


def assert_not_reached(code: int, lines: dict[str, tuple[str, str]], words: str) -> None:
    assert code == 1
    assert lines["key"] == (
        "warn",
        "set in OPENAI_API_KEY; the key could not be verified",
    )
    assert lines["API"][0] == "FAIL"
    assert words in lines["API"][1]
    assert lines["model for answer"] == ("warn", "gpt-5.2 was not checked, because the API did not answer")
    assert lines["settings for answer"] == (
        "warn",
        "effort medium, verbosity medium; not checked, because the API did not answer",
    )


def test_an_api_that_cannot_be_reached_is_named_with_its_address(patient: Patient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    patient.environ["OPENAI_BASE_URL"] = f"http://user:{KEY}@127.0.0.1:{port}/v1"
    code, lines = patient.examine()
    assert_not_reached(code, lines, "No connection to the API could be opened")
    assert lines["API"][1].startswith(f"http://***@127.0.0.1:{port}/v1: ")


def test_an_api_that_says_nothing_is_waited_for_no_longer_than_allowed(patient: Patient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        patient.environ["OPENAI_BASE_URL"] = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        code, lines = patient.examine(longest_wait_seconds=0.05)
    assert_not_reached(code, lines, "No answer within 0.05 s.")


def test_a_redirect_is_no_answer(patient: Patient, rehearsal: StandInThread) -> None:
    answer_with(rehearsal, Reply(307, {"location": rehearsal.base_url}))
    code, lines = patient.examine()
    assert_not_reached(code, lines, "The API redirects (HTTP 307)")


# Models


def test_an_unknown_model_is_a_warning_where_there_may_be_no_list_of_models(patient: Patient) -> None:
    patient.environ["MODEL_QUICK"] = "no-such-model"
    code, lines = patient.examine()
    assert code == 0
    assert lines["model for answer"] == ("ok", "gpt-5.2")
    assert lines["model for answer_quick"] == (
        "warn",
        "the API does not know no-such-model (404): change MODEL_QUICK or model_profiles.answer_quick.model,"
        " or check openai.base_url; gateways without a list of models answer so for every one",
    )


def at_openai(patient: Patient, rehearsal: StandInThread, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in answers under the name of the API."""
    monkeypatch.setenv("http_proxy", rehearsal.base_url.removesuffix("/v1"))
    patient.environ["OPENAI_BASE_URL"] = "http://api.openai.com/v1"


def test_an_unknown_model_fails_at_openai_itself(
    patient: Patient, rehearsal: StandInThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_openai(patient, rehearsal, monkeypatch)
    code, lines = patient.examine(Flags(model="no-such-model"))
    unknown = "the API does not know no-such-model (404): change MODEL_ANSWER or model_profiles.answer.model"
    assert (code, lines["model for answer"]) == (1, ("FAIL", unknown))


def test_an_answer_profile_taken_away_fails_and_the_api_is_checked_all_the_same(
    patient: Patient, rehearsal: StandInThread
) -> None:
    patient.configure("model_profiles: {answer: null}")
    code, lines = patient.examine()
    assert code == 1
    assert lines["API"][0] == "ok"
    assert lines["model for answer"] == (
        "FAIL",
        "model_profiles.answer is required: set MODEL_ANSWER or model_profiles.answer.model",
    )
    assert lines["model for answer_quick"] == lines["model for answer"]
    assert len(rehearsal.server.requests) == 1


@pytest.mark.parametrize(("status", "level", "expected"), [(503, "warn", 0), (400, "FAIL", 1)])
def test_trouble_that_passes_is_a_warning(
    patient: Patient, rehearsal: StandInThread, status: int, level: str, expected: int
) -> None:
    answer_with(rehearsal, api_error(status, message="So it is"))
    code, lines = patient.examine()
    assert (code, lines["API"][0], lines["model for answer"][0]) == (expected, "ok", level)
    assert lines["model for answer"][1].endswith("The API says: So it is")


def test_a_model_with_an_announced_end_is_warned_of(patient: Patient, rehearsal: StandInThread) -> None:
    count_tokens(rehearsal, COUNTED, id="gpt-5.1", shutdown_date="2027-04-01")
    code, lines = patient.examine(Flags(model="gpt-5.1"))
    assert code == 0
    assert lines["model for answer"] == (
        "warn",
        "gpt-5.1 will be shut down on 2027-04-01: change MODEL_ANSWER or model_profiles.answer.model",
    )


# Settings


def test_the_settings_of_each_profile_are_tried_as_a_question_would_send_them(
    patient: Patient, rehearsal: StandInThread
) -> None:
    patient.configure(
        """
        request: {store: false, max_output_tokens: 9, extra: {service_tier: flex}}
        model_profiles:
          answer_detailed: {model: o3, reasoning_effort: high}
          answer_quick: {model: gpt-4.1}
        """
    )
    code, lines = patient.examine()
    assert code == 0
    assert lines["settings for answer_detailed"] == (
        "ok",
        "effort high; the API counted the tokens of such a question",
    )
    assert lines["settings for answer_quick"] == (
        "ok",
        "neither effort nor verbosity, which gpt-4.1 does not take; the API counted the tokens of such a question",
    )
    tried = {request.json["model"]: request.json for request in rehearsal.server.requests if request.method == "POST"}
    usual = {"model", "instructions", "input", "tools", "truncation"}
    assert {model: set(body) - usual for model, body in tried.items()} == {
        "gpt-5.2": {"reasoning", "text"},
        "o3": {"reasoning"},
        "gpt-4.1": set(),
    }
    assert tried["o3"]["reasoning"] == {"effort": "high"}


@pytest.mark.parametrize(
    ("status", "reason"),
    [(404, "not checked, because {} counts no tokens (404)"), (429, "not checked: The API is limiting")],
)
def test_settings_are_not_called_fine_where_no_tokens_were_counted(
    patient: Patient, rehearsal: StandInThread, status: int, reason: str
) -> None:
    count_tokens(rehearsal, api_error(status, message="No"))
    code, lines = patient.examine()
    assert (code, lines["key"][0], lines["model for answer"][0]) == (0, "ok", "ok")
    level, said = lines["settings for answer"]
    assert level == "warn"
    assert said.startswith(f"effort medium, verbosity medium; {reason.format(rehearsal.base_url)}")


REFUSAL = api_error(400, message="Unsupported value: 'xhigh'", param="reasoning.effort")


def test_refused_settings_fail_at_openai_and_are_a_warning_where_counting_may_be_another_matter(
    patient: Patient, rehearsal: StandInThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient.environ["ANSWER_EFFORT"] = "xhigh"
    count_tokens(rehearsal, REFUSAL)
    code, lines = patient.examine()
    level, detail = lines["settings for answer"]
    assert (code, level) == (0, "warn")
    assert detail.startswith("effort xhigh, verbosity medium; refused, so change model_profiles.answer: ")
    assert detail.endswith("Unsupported value: 'xhigh'")
    at_openai(patient, rehearsal, monkeypatch)
    code, lines = patient.examine()
    assert (code, lines["model for answer"][0], lines["settings for answer"]) == (1, "ok", ("FAIL", detail))


def test_the_settings_of_an_unknown_model_were_not_checked(patient: Patient, rehearsal: StandInThread) -> None:
    count_tokens(rehearsal, api_error(400, message="No such model"))
    _, lines = patient.examine(Flags(model="no-such-model"))
    assert lines["settings for answer"][1].startswith("neither effort nor verbosity, which no-such-model does not take")
    assert "; not checked: The API rejected this request" in lines["settings for answer"][1]


# The debug file


def test_a_debug_file_is_only_checked(patient: Patient) -> None:
    path = patient.home / "folder/to/make/debug.log"
    for place, level in ((path, "ok"), (patient.home / "bin", "FAIL"), (patient.home / "bin/uvx/debug.log", "FAIL")):
        patient.configure(f"server: {{debug_file: '{place}'}}")
        code, lines = patient.examine()
        assert (code, lines["debug file"][0]) == (int(level == "FAIL"), level)
    assert "choose another with --debug, DEBUG or server.debug_file" in lines["debug file"][1]
    assert not (patient.home / "folder").exists()


# Clients


def test_clients_that_are_not_set_up_are_no_failure_and_say_how(patient: Patient) -> None:
    (patient.home / "bin" / "codex").touch(mode=0o755)
    (patient.home / ".cursor").mkdir()
    code, lines = patient.examine()
    assert code == 0
    command = shlex.join(own_command(lambda name: None))
    assert lines["Codex"] == (
        "--",
        f"not set up; run: codex mcp add openai-responses --env OPENAI_API_KEY=YOUR_KEY -- {command} --stdio",
    )
    assert lines["Cursor"][1].startswith(f'not set up; put into {patient.home / ".cursor/mcp.json"}: {{"mcpServers"')
    assert "***" not in patient.output


def test_clients_that_are_set_up_are_found_at_home_and_in_the_working_folder(patient: Patient) -> None:
    claude = patient.write(".claude.json", {"mcpServers": {"asks": ENTRY}})
    shared = patient.write("../project/.mcp.json", {"mcpServers": {"shared": ENTRY}}).resolve()
    vs_code = patient.write("../project/.vscode/mcp.json", {"servers": {"asks": ENTRY}}).resolve()
    codex = patient.write(
        ".codex/config.toml",
        '[mcp_servers.asks]\ncommand = "uvx"\nargs = ["openai-responses-mcp", "--stdio"]\nenv_vars = ["OPENAI_API_KEY"]\n',
    )
    code, lines = patient.examine()
    assert code == 0
    assert lines["Claude Code"] == ("ok", f"asks in {claude}: {SEEN}; shared in {shared}")
    assert lines["Codex"] == ("ok", f"asks in {codex}: {SEEN}")
    assert lines["VS Code"] == ("ok", f"asks in {vs_code}")
    assert lines["Cursor"][0] == "--"


def test_an_entry_that_cannot_work_fails_and_what_is_well_is_left_out(patient: Patient) -> None:
    entries = {
        "good": ENTRY,
        "bad": ENTRY | {"command": "uvx-of-old"},
        "own": ENTRY | {"env": {"OPENAI_API_KEY": KEY}},
    }
    path = patient.write(".claude.json", {"mcpServers": entries})
    shared = {"open": ENTRY | {"env": {"OPENAI_API_KEY": KEY}}}
    project = patient.write("../project/.mcp.json", {"mcpServers": shared}).resolve()
    code, lines = patient.examine()
    level, text = lines["Claude Code"]
    assert (code, level) == (1, "FAIL")
    assert text.startswith(f"bad in {path}: the command 'uvx-of-old' cannot be found")
    assert f"open in {project}: env holds the key itself (OPENAI_API_KEY), and others may read" in text
    assert "good" not in text
    assert "own" not in text.replace("unknown", "")
    assert KEY not in patient.output


def test_client_files_that_cannot_be_read_are_warnings(patient: Patient) -> None:
    (patient.home / ".claude.json").mkdir()
    patient.write(".codex", "a file in the place of a folder")
    patient.write(".cursor/mcp.json", " " * (MAX_CLIENT_FILE_BYTES + 1))
    patient.write(".gemini/settings.json", "").write_bytes(b"\xff\xfe{}")
    (patient.home / ".config/Claude").mkdir(parents=True)
    loop = patient.home / ".config/Claude/claude_desktop_config.json"
    loop.symlink_to(loop)
    code, lines = patient.examine()
    assert code == 0
    assert [lines[name][0] for name in CLIENT_NAMES] == ["warn", "--", "warn", "warn", "--", "warn"]
    assert "is a directory, not a file" in lines["Claude Code"][1]
    assert "symbolic links" in lines["Claude Desktop"][1]
    assert "larger than 8 MiB" in lines["Cursor"][1]
    assert "not UTF-8" in lines["Gemini CLI"][1]


def test_a_name_with_strange_letters_stays_on_its_line(patient: Patient) -> None:
    patient.write(".claude.json", {"mcpServers": {"two\nlines \x1b[31m \ud800 質問": ENTRY}})
    _, lines = patient.examine()
    assert lines["Claude Code"][1].startswith("two lines  [31m \ufffd 質問 in ")


def test_a_working_folder_that_is_gone_is_no_obstacle(patient: Patient) -> None:
    patient.configure("server: {debug_file: debug.log}")
    Path.cwd().rmdir()
    code, lines = patient.examine()
    assert (code, lines["VS Code"][0]) == (0, "--")


def test_letters_that_the_terminal_does_not_know_are_spelled_out(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient.write(".claude.json", {"mcpServers": {"質問": ENTRY}})
    terminal = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(terminal, encoding="ascii"))
    assert examine(load(Flags(), patient.environ), patient.environ) == 0
    assert b"ok    Claude Code: \\u8cea\\u554f in " in terminal.getvalue()


def test_a_guard_alone_leaves_the_answers_to_be_set_up(patient: Patient) -> None:
    guard = {"command": "uvx", "args": ["openai-responses-mcp", "guard", "--", "uvx", "other-server"]}
    (patient.home / "bin" / "claude").touch(mode=0o755)
    patient.write(".claude.json", {"mcpServers": {"files": guard}})
    code, lines = patient.examine()
    assert (code, lines["Claude Code"][0]) == (0, "ok")
    assert lines["Claude Code, answers"][0] == "--"
    assert lines["Claude Code, answers"][1].startswith("not set up; run: claude mcp add openai-responses ")


@pytest.mark.parametrize(
    ("script", "level", "words"),
    [
        ("#!/bin/sh\necho 'no network' >&2\nexit 3\n", "FAIL", "exit code 3 before it answered; its last line on"),
        (SERVER.replace('{"name": "answer"}, {"name": "iris"}', ""), "warn", "it starts, but a client sees no tools"),
        ("#!/bin/sh\nexec sleep 60\n", "FAIL", "it did not answer initialize within 1 s"),
        ('#!/bin/sh\necho "bad key $OPENAI_API_KEY" >&2\n', "FAIL", "its last line on stderr: bad key ***"),
    ],
)
def test_an_entry_that_a_client_could_not_use_says_why(patient: Patient, script: str, level: str, words: str) -> None:
    (patient.home / "bin" / "uvx").write_text(script)
    patient.environ["PATH"] += ":/bin:/usr/bin"
    patient.write(".cursor/mcp.json", {"mcpServers": {"asks": ENTRY | {"env": {"OPENAI_API_KEY": "hidden-word-1"}}}})
    _, lines = patient.examine(longest_start_seconds=1 if "sleep" in script else 30)
    assert lines["Cursor"][0] == level
    assert words in lines["Cursor"][1]


def test_an_entry_gets_the_environment_that_its_client_gives_it(patient: Patient) -> None:
    (patient.home / "bin" / "uvx").write_text('#!/bin/sh\necho "$OPENAI_API_KEY:$OTHER:$EXTRA:$*" > "$HOME/got"\n')
    patient.environ |= {"OTHER": "other", "MY_KEY": "sk-in-the-environment", "PATH": f"{patient.environ['PATH']}:/bin"}
    references = {"EXTRA": "1", "OPENAI_API_KEY": "${env:MY_KEY}"}
    patient.write(".cursor/mcp.json", {"mcpServers": {"asks": ENTRY | {"env": references}}})
    patient.examine()
    assert (patient.home / "got").read_text() == "sk-in-the-environment:other:1:openai-responses-mcp --stdio\n"
    (patient.home / ".cursor/mcp.json").unlink()
    patient.write(
        ".codex/config.toml",
        '[mcp_servers.asks]\ncommand = "uvx"\nargs = ["openai-responses-mcp", "--stdio"]\nenv_vars = ["OPENAI_API_KEY"]\n',
    )
    patient.examine()
    assert (patient.home / "got").read_text() == f"{KEY}:::openai-responses-mcp --stdio\n"


def test_a_command_with_variables_of_the_client_is_not_started(patient: Patient) -> None:
    path = patient.write(
        ".cursor/mcp.json", {"mcpServers": {"asks": ENTRY | {"command": "${env:HOME}/openai-responses-mcp"}}}
    )
    _, lines = patient.examine()
    assert lines["Cursor"] == ("ok", f"asks in {path}")


# Today, and the place of searches


def test_a_machine_in_another_time_zone_is_said_to_have_another_day(patient: Patient) -> None:
    patient.environ["TZ"] = "Etc/GMT+12"
    _, lines = patient.examine()
    assert lines["today"][0] in ("ok", "warn")
    assert "Asia/Tokyo (search.timezone)" in lines["today"][1]
    assert "To change it, set search.timezone in " in lines["today"][1]


def test_without_a_location_searches_come_from_the_united_states(patient: Patient) -> None:
    _, lines = patient.examine()
    assert lines["place of searches"][0] == "--"
    assert lines["place of searches"][1].startswith(
        "the API searches as if from the United States; set search.user_loc"
    )
    patient.configure("search: {user_location: {}}")
    _, lines = patient.examine()
    assert "place of searches" not in lines


def test_policy_and_store_of_a_guarded_entry_are_checked_too(
    patient: Patient, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = patient.write("policy.yaml", "version: 1\nprofil: fast\n")
    (patient.home / "bin" / "openai-responses-mcp").touch(mode=0o755)
    words = ["guard", "--policy", str(policy), "--", "uvx", "other-server"]
    patient.write(".cursor/mcp.json", {"mcpServers": {"files": {"command": "openai-responses-mcp", "args": words}}})
    patient.write(".gemini/settings.json", "{;}")
    assert main(["--doctor"], patient.environ) == 1
    lines = capsys.readouterr().out.splitlines()
    (found,) = [line for line in lines if line.startswith("FAIL  Cursor, files in ")]
    assert f"{policy}:2" in found
    assert len([line for line in lines if "settings.json" in line]) == 1
    assert lines[-1].startswith("1 problem found. ")
