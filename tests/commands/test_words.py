"""The answering side in a Japanese terminal. That the table has every sentence: tests/desk/terminal/test_for_people.py."""

import itertools
import json
from contextlib import suppress
from pathlib import Path

import httpx2
import openai
import pytest

from openai_responses_mcp.adapters.clocks import clock_in
from openai_responses_mcp.adapters.openai.errors import EXCEPTIONS, refusal
from openai_responses_mcp.cli import main
from openai_responses_mcp.commands.doctor.clients import CLIENTS
from openai_responses_mcp.commands.words import IN_JAPANESE, speaking
from openai_responses_mcp.domain.texts import Sentence, linked
from tests.e2e.client import environment, run
from tests.stand_in.server import StandInThread

JAPANESE = {"LANG": "ja_JP.UTF-8"}


def templates_in(text: object) -> set[str]:
    """Those of a sentence and of the sentences in it."""
    if not isinstance(text, Sentence):
        return set()
    return {text.template}.union(*map(templates_in, text.facts.values()))


def test_templates_that_are_chosen_from_tables_are_translated() -> None:
    failures = {text for *_, words in EXCEPTIONS for text in words if text}
    assert failures - set(IN_JAPANESE) == set()
    assert {client.how_to_name_key for client in CLIENTS} - set(IN_JAPANESE) == set()


def test_every_refusal_of_the_api_is_fully_translated() -> None:
    errors: list[dict[str, str]] = [{}, {"code": "insufficient_quota"}, {"param": "previous_response_id"}]
    for status, error in itertools.product((302, 400, 401, 403, 404, 413, 418, 429, 500), errors):
        reply = httpx2.Response(status, json={"error": error}, request=httpx2.Request("POST", "https://a.org"))
        refused = refusal(openai.APIStatusError("", response=reply, body=None), clock_in("Asia/Tokyo").now)
        assert templates_in(refused.sentence) - set(IN_JAPANESE) == set()
        assert str(refused) == refused.sentence
        assert speaking(JAPANESE)(refused.sentence).endswith(f"。API の説明: HTTP {status}")


def test_a_text_that_is_not_in_the_table_is_said_as_it_is() -> None:
    say = speaking(JAPANESE)
    assert say("plain") == "plain"
    assert say(Sentence("not {known}", known=Sentence("thinking"))) == "not 考えています"
    assert say(linked("{first} and {second}", ["a", "b", "c"])) == "a と b と c"
    assert linked("{first} and {second}", ["a", "b", "c"]) == "a and b and c"


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (
            ["--ask", "Why?"],
            1,
            "回答できませんでした: API キーがありません。環境変数 OPENAI_API_KEY を設定してください\n"
            "キーは https://platform.openai.com/api-keys で取得できます。"
            "キーなしで試すには: openai-responses-mcp --rehearse\n",
        ),
        (
            ["--doktor"],
            2,
            "openai-responses-mcp: 不明なオプションです: --doktor (--doctor のことですか?)"
            " (openai-responses-mcp --help を見てください)\n",
        ),
        (["a", "--recency", "soon"], 2, "openai-responses-mcp: --recency には 0 以上の数を指定してください\n"),
    ],
)
def test_a_failure_says_in_japanese_what_to_do(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], line: list[str], code: int, said: str
) -> None:
    assert main(line, {"HOME": str(tmp_path), **JAPANESE}) == code
    assert capfd.readouterr() == ("", said)


def test_problems_of_the_configuration_are_japanese(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        "request:\n  timeout_ms: 0\n  extra: {stream: false}\nserver:\n  tols: []\n  tools: []\n"
        "policy:\n  requery_attempts: 1\n  max_citations: [1]\n"
    )
    environ = {"HOME": str(tmp_path), "OPENAI_MAX_RETRIES": "many", **JAPANESE}
    assert main(["--config", str(file), "--show-config"], environ) == 2
    assert capfd.readouterr().err.replace(str(file), "F").replace("openai-responses-mcp: ", "").splitlines() == [
        "F:2: request.timeout_ms には 1 以上の整数を指定してください (指定: 0)",
        "F:5: 不明なキーです: server.tols (server.tools のことですか?)",
        "F:6: server.tools には名前が 1 つ以上あり重複のないリストを指定してください (指定: [])",
        "F:9: policy.max_citations には 1 から 10 までの整数を指定してください (指定: [1])",
        "F:3: request.extra.stream はサーバー自身が設定します。書かないでください",
        'OPENAI_MAX_RETRIES には 0 から 10 までの整数を指定してください (指定: "many")',
    ]
    file.write_text("a: &a 1\nb: *a\n")
    assert main(["--config", str(file), "--show-config"], environ) == 2
    assert "config.yaml:2: エイリアス *a は使えません。値をそのまま書いてください\n" in capfd.readouterr().err
    assert main(["--config", "none.yaml", "--show-config"], {"HOME": str(tmp_path), **JAPANESE}) == 0
    assert "WARNING: --config none.yaml: ファイルがないため、その設定は使われません\n" in capfd.readouterr().err
    assert main(["--http", "0.0.0.0:0"], {"HOME": str(tmp_path), **JAPANESE}) == 2
    assert capfd.readouterr().err.splitlines() == [
        "openai-responses-mcp: 0.0.0.0 は外部から接続できます。http.tokens_env または http.issuer を設定してください",
        "openai-responses-mcp: 0.0.0.0 は外部から接続できます。http.public_url を設定してください",
    ]


@pytest.mark.parametrize("words", [["--help"], ["guard", "--help"], ["approvals", "--help"]])
def test_help_in_a_japanese_terminal_leads_to_the_japanese_pages(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    with suppress(SystemExit):
        assert main(words) == 0
    assert capsys.readouterr().out.startswith("以下の説明は英語です。日本語の案内:\nhttps://")


def test_a_lost_conversation_is_named_by_its_option(
    rehearsal: StandInThread, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    environ = environment(tmp_path, OPENAI_BASE_URL=rehearsal.base_url, **JAPANESE)
    assert main(["--ask", "And?", "--continue", "resp_unknown"], environ) == 1
    said = capfd.readouterr().err
    assert said.startswith("回答できませんでした: --continue の応答を API が知りません。--continue なしで")


def test_the_doctor_is_japanese_and_begins_with_the_first_problem(
    tmp_path: Path, rehearsal: StandInThread, capfd: pytest.CaptureFixture[str]
) -> None:
    environ = {"HOME": str(tmp_path), "OPENAI_BASE_URL": rehearsal.base_url, "TZ": "Asia/Tokyo", **JAPANESE}
    assert main(["--doctor"], environ) == 1
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == "ok    設定: 既定値 (ファイルなし)。環境変数 OPENAI_BASE_URL"
    assert lines[1].startswith("FAIL  キー: API キーがありません。環境変数 OPENAI_API_KEY を設定してください。キーは ")
    assert lines[3].endswith(" のモデル: gpt-5.2 は確認していません。確認にはキーが必要です")
    assert "--    Codex: このマシンには見つかりません" in lines
    assert lines[-1].startswith("1 件の問題があります。警告 2 件。まずこれから: キー: API キーがありません")


def test_programs_get_the_same_words_in_every_language(tmp_path: Path) -> None:
    asked = {"name": "answer", "arguments": {"query": "Why?"}}
    lines = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}}},
        {"id": 2, "method": "tools/call", "params": asked},
        {"id": 3, "method": "tools/call", "params": {**asked, "arguments": {"query": "Why?", "recency_days": "x"}}},
    ]
    given = "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines)
    said = [
        run(environment(tmp_path, OPENAI_API_KEY="", LANG=language), "--stdio", input=given.encode())
        for language in ("C.UTF-8", "ja_JP.UTF-8")
    ]
    assert b"Missing API key: set OPENAI_API_KEY" in said[0].stdout
    assert b"recency_days must be a number, 0 or more" in said[0].stdout
    assert sorted(said[0].stdout.splitlines()) == sorted(said[1].stdout.splitlines())
    assert said[0].stderr == said[1].stderr
