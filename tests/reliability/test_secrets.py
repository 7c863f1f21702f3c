"""Secrets are planted everywhere and looked for in everything that comes out, whole and in part.

The planted ones look like nothing in particular, so that only knowing them helps. Answers are not looked into: they belong
to the client, who may have put the secret into the question.
"""

import asyncio
import base64
import json
import os
import sys
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest

from openai_responses_mcp.adapters.log.structlog_logger import StructlogLogger
from openai_responses_mcp.domain.cancellation import CallsInFlight
from openai_responses_mcp.domain.errors import GatewayBroken
from openai_responses_mcp.domain.masking import SecretMask, secrets_in
from openai_responses_mcp.domain.models import ModelReply, ModelRequest, ProgressListener, StartListener
from openai_responses_mcp.domain.ports import LLMGateway, Received
from openai_responses_mcp.server.dispatch import Dispatcher
from tests.e2e.client import COMMAND, WAIT_SECONDS, Message, Server, call, cancellation, environment, request, run
from tests.fakes import FakeClock, FakeGateway, FakeTransport
from tests.server.wired import tool_call
from tests.stand_in.server import StandInThread

pytestmark = pytest.mark.slow

# Characters that URLs, base64 and JSON each write in their own way.
KEY = "Zq9+planted/Key=With~Odd.Chars_0123456789-XyZ"
PASSWORD = "pl4nted pass/w0rd?&" + "é+x"
TOKEN = "tok|pl4nted<of>another%service"
SECRETS = (KEY, PASSWORD, TOKEN)
SHORTEST_PART = 10


def forms_of(secret: str) -> set[str]:
    raw = secret.encode()
    encoded = {base64.b64encode(before + raw + after) for before in (b"", b"u:", b"me:") for after in (b"", b"!")}
    urlsafe = {base64.urlsafe_b64encode(b"u:" + raw), base64.urlsafe_b64encode(raw)}
    quoted = {quote(secret), quote(secret, safe=""), json.dumps(secret)[1:-1], repr(secret)[1:-1]}
    return {secret, *quoted, *(text.decode().rstrip("=") for text in encoded | urlsafe)}


def parts_of(secrets: Iterable[str]) -> set[str]:
    """Every piece long enough not to occur by chance."""
    forms = {form for secret in secrets for form in forms_of(secret)}
    # Without the first and last letters: in base64 they depend on the neighbours.
    return {form[at : at + SHORTEST_PART] for form in forms for at in range(4, len(form) - SHORTEST_PART - 4)}


PARTS = parts_of(SECRETS)


def leaks_in(text: str) -> list[str]:
    return sorted(part for part in PARTS if part in text)


def with_password(url: str) -> str:
    return url.replace("://", f"://me:{quote(PASSWORD, safe='')}@")


def planted(home: Path, base_url: str, **variables: str) -> dict[str, str]:
    """An environment with a key, somebody's token, and a password in the address of a proxy."""
    proxy = with_password("http://127.0.0.1:9")
    secrets = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": base_url, "OTHER_TOKEN": TOKEN, "FTP_PROXY": proxy}
    return environment(home, **{**secrets, "OPENAI_MAX_RETRIES": "1", **variables})


def marker(*pairs: str) -> str:
    return f"[rehearse: {'; '.join(pair.replace(';', chr(92) + ';') for pair in pairs)}]"


def questions() -> list[str]:
    forms = sorted({form for secret in SECRETS for form in forms_of(secret) if form.isascii() and form.isprintable()})
    return [
        *(f"Why? {marker('status=401', f'message=Incorrect API key provided: {form}.')}" for form in forms),
        *(f"Why? {marker('status=503', 'retry_after=0', f'code={form}')}" for form in forms[:4]),
        *(f"Why {form}? {marker('status=400', f'message=previous_response_id {form}')}" for form in forms[:4]),
        *(f"Why {form}? {marker(f'text=Because of {form}')}" for form in forms),
        f"Why? {marker('redirect=http://127.0.0.1:9/v1?key=' + quote(KEY, safe=''))}",
        f"Why? {marker('status=400', f'header: X-Key: {KEY}'.replace('header: ', 'header='))}",
        f"Why? {marker('outcome=failed')} {KEY}",
        f"Why? {marker('drop=reset')} {KEY}",
    ]


def cut_in_half() -> list[str]:
    """Errors whose texts are cut somewhere inside the key, wherever the cut is made."""
    lengths = range(150, 400, 7)
    return [f"Why? {marker('status=401', 'message=' + 'x ' * (length // 2) + KEY)}" for length in lengths]


@pytest.mark.parametrize("sdk_log", ["", "debug"], ids=["sdk quiet", "sdk debugging"])
def test_no_secret_is_in_any_error_log_line_or_debug_file(
    rehearsal: StandInThread, tmp_path: Path, sdk_log: str
) -> None:
    debug_file = tmp_path / "debug.log"
    environ = planted(tmp_path, rehearsal.base_url, OPENAI_LOG=sdk_log)
    with closing(Server([*COMMAND, "--stdio", "--debug", str(debug_file)], environ)) as server:
        replies = server.ask_all([*questions(), *cut_in_half()])
        streamed = [call(f"s{number}", text) for number, text in enumerate(questions()[::5])]
        for message in streamed:
            message["params"]["_meta"] = {"progressToken": message["id"]}
        server.send(*streamed)
        replies += server.replies_to([message["id"] for message in streamed])
        server.send(*oddities())
        server.result_of("ping")
        assert server.finish() == 0
    failures = [reply for reply in replies if "error" in reply]
    assert len(failures) > 50
    assert leaks_in(json.dumps(failures, ensure_ascii=False)) == []
    assert leaks_in(server.stderr) == []
    assert leaks_in(debug_file.read_text(encoding="utf-8")) == []
    assert "***" in server.stderr
    assert {request.headers["authorization"] for request in rehearsal.server.requests} == {f"Bearer {KEY}"}


def test_no_password_in_the_address_of_the_api_comes_out(rehearsal: StandInThread, tmp_path: Path) -> None:
    environ = planted(tmp_path, with_password(rehearsal.base_url), OPENAI_LOG="debug")
    with closing(Server([*COMMAND, "--stdio", "--debug", "--show-config"], environ)) as server:
        replies = server.ask_all(["Why?", f"Why? {marker('redirect=' + with_password('http://127.0.0.1:9'))}"])
        assert server.finish() == 0
    assert all("error" in reply for reply in replies)
    assert leaks_in(json.dumps(replies, ensure_ascii=False)) == []
    assert leaks_in(server.stderr) == []


def oddities() -> list[Message]:
    """Secrets where only a confused client would put them."""
    return [
        request(f"method {KEY}", KEY),
        request("tool", "tools/call", {"name": KEY, "arguments": {TOKEN: 1}}),
        call("argument", "Why?", **{KEY: TOKEN}),
        call("number", "Why?", recency_days=KEY),
        call("style", "Why?", style=PASSWORD),
        call("previous", f"Why? {marker('status=400')}", previous_response_id=KEY),
        {**cancellation(KEY), "params": {"requestId": "unknown", "reason": TOKEN}},
        request("revision", "tools/list", {"_meta": {"io.modelcontextprotocol/protocolVersion": KEY}}),
    ]


def printed_by(environ: dict[str, str], *options: str) -> str:
    """Both outputs of a command that ends by itself."""
    done = run(environ, *options, encoding="utf-8")
    return f"{done.stdout}{done.stderr}"


@pytest.mark.parametrize(
    "options",
    [
        ("--show-config", "--model", KEY),
        ("--show-config", "--debug", f"/tmp/{TOKEN}/log"),
        ("--doctor",),
        ("--ask", f"Why? [rehearse: status=401; message={KEY} {TOKEN}]"),
        ("--no-such-option", KEY),
        (f"--{KEY}",),
        ("--config", f"/no/such/{KEY}", "--show-config"),
    ],
    ids=lambda options: " ".join(options)[:24],
)
def test_no_secret_is_in_what_a_command_prints(
    rehearsal: StandInThread, tmp_path: Path, options: tuple[str, ...]
) -> None:
    printed = printed_by(
        planted(tmp_path, rehearsal.base_url, HTTPS_PROXY=with_password("http://127.0.0.1:9")), *options
    )
    assert printed
    assert leaks_in(printed) == []


@pytest.mark.parametrize(
    "text",
    [
        f"openai: {{api_key: '{KEY}'}}",
        f"openai: {{base_url: 'ftp://me:{quote(PASSWORD, safe='')}@example.com'}}",
        f"model_profiles: {{answer: {{reasoning_effort: '{TOKEN}'}}}}",
        f"'{KEY}': 1",
        f"server: ['{KEY}', '{TOKEN}']",
        f"server: '{KEY}",
        f"policy: {{system: {{source: file, path: '/{KEY}'}}}}",
    ],
    ids=["key", "url", "name", "as a key", "list", "unclosed", "path"],
)
def test_no_secret_is_in_a_complaint_about_the_configuration(tmp_path: Path, text: str) -> None:
    yaml = tmp_path / "config.yaml"
    yaml.write_text(text, encoding="utf-8")
    printed = printed_by(planted(tmp_path, "http://127.0.0.1:9/v1"), "--stdio", "--config", str(yaml))
    assert printed.startswith("openai-responses-mcp: ")
    assert leaks_in(printed) == []


@pytest.mark.parametrize("name", ["ANSWER_EFFORT", "OPENAI_BASE_URL"])
def test_no_secret_is_in_a_complaint_about_a_variable(tmp_path: Path, name: str) -> None:
    printed = printed_by(planted(tmp_path, "http://127.0.0.1:9/v1", **{name: f"ftp://{KEY}:{KEY}@h"}), "--stdio")
    assert name in printed
    assert leaks_in(printed) == []


@pytest.mark.parametrize("name", ["OTHER_TOKEN", "OPENAI_API_KEY"])
def test_a_variable_that_is_no_text_does_not_break_the_mask(
    rehearsal: StandInThread, tmp_path: Path, name: str
) -> None:
    value = os.fsdecode(b"http://me:planted-\xff\xfe-0123456789@host")
    environ = planted(tmp_path, rehearsal.base_url, **{name: value})
    with closing(Server([*COMMAND, "--stdio", "--debug"], environ)) as server:
        assert "error" in server.ask(f"Why? {marker('status=401', 'message=-0123456789@host is refused')}")
        assert server.finish() == 0
    assert "0123456789" not in server.stderr


class Crashing(FakeGateway):
    """Fails with an unexpected exception, with secrets in its text, cause and context."""

    async def respond(
        self,
        request: ModelRequest,
        on_progress: ProgressListener | None = None,
        on_started: StartListener | None = None,
    ) -> ModelReply:
        try:
            try:
                raise KeyError(PASSWORD)
            except KeyError:
                raise ValueError(f"GET https://api.example/?key={quote(KEY, safe='')}")  # noqa: B904 -- a context, no cause
        except ValueError as exc:
            error = RuntimeError(f"Authorization: Bearer {KEY}", {"token": TOKEN})
            error.add_note(f"basic {base64.b64encode(b'u:' + KEY.encode()).decode()}")
            raise error from exc


class Failing(FakeGateway):
    async def respond(
        self,
        request: ModelRequest,
        on_progress: ProgressListener | None = None,
        on_started: StartListener | None = None,
    ) -> ModelReply:
        raise GatewayBroken(f"{KEY} {TOKEN}", code=KEY, kind=TOKEN, name=PASSWORD, body=KEY)


@pytest.mark.parametrize("gateway", [Crashing(), Failing()], ids=["crashing", "failing"])
async def test_no_secret_of_an_exception_or_its_causes_comes_out(tmp_path: Path, gateway: LLMGateway) -> None:
    from openai_responses_mcp.server.calling import Caller
    from tests.server.wired import wired_caller

    environ = {"OPENAI_API_KEY": KEY, "MY_PASSWORD": PASSWORD, "OTHER_TOKEN": TOKEN}
    mask = SecretMask(secrets_in(environ, key_variable="OPENAI_API_KEY", base_url=""))
    clock, transport, debug_file = FakeClock(), FakeTransport(), tmp_path / "debug.log"
    stderr = os.open(tmp_path / "stderr", os.O_WRONLY | os.O_CREAT)
    logger = StructlogLogger(now=clock.now, mask=mask, is_debugging=True, debug_file=str(debug_file), stderr=stderr)
    caller = wired_caller(gateway, clock, logger, mask=mask)

    async def load() -> Caller:
        return caller

    dispatcher = Dispatcher(CallsInFlight(logger), logger, ("answer",), load, None)
    dispatcher.handle(Received(json.dumps(tool_call(1)).encode(), transport))
    async with asyncio.timeout(WAIT_SECONDS):
        await dispatcher.drain()
    logger.close(WAIT_SECONDS)
    os.close(stderr)
    assert [reply["id"] for reply in transport.replies()] == [1]
    for text in (transport.sent[0].decode(), debug_file.read_text(), (tmp_path / "stderr").read_text()):
        assert text
        assert leaks_in(text) == []


SABOTAGE = """
import os
key = os.environ["OPENAI_API_KEY"]
raise RuntimeError(f"cannot go on with {key}") from ValueError(key)
"""


@pytest.mark.parametrize("options", [("--stdio", "--debug"), ("--ask", "Why?"), ("--doctor",)])
def test_no_secret_is_in_the_traceback_of_a_crash(tmp_path: Path, options: tuple[str, ...]) -> None:
    """A broken installation: a package that we need fails while it is imported, and says with what."""
    (tmp_path / "structlog.py").write_text(SABOTAGE)
    (tmp_path / "aiohttp.py").write_text(SABOTAGE)
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    printed = printed_by(planted(tmp_path, "http://127.0.0.1:9/v1", PYTHONPATH=path), *options)
    assert "cannot go on with ***" in printed
    assert leaks_in(printed) == []
