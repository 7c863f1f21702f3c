"""The desk for a team: who signs in, whose name is in the record, and what is refused."""

import asyncio
import re
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from openai_responses_mcp.adapters.http.access import AllowedHosts, Callers
from openai_responses_mcp.desk.opening import desk_on
from openai_responses_mcp.desk.page.team import TeamSessions, team_application
from openai_responses_mcp.desk.terminal.command_line import main
from openai_responses_mcp.gate.sql.sql_stores import open_stores
from openai_responses_mcp.gate.stores import Stores
from tests.adapters.http.test_access import FakeIssuer
from tests.adapters.http.test_access import token as access_token
from tests.agents.fake_stores import fake_stores
from tests.agents.fakes import FakeClock
from tests.desk.page.asking import Asker
from tests.e2e.client import COMMAND, WAIT_SECONDS, environment

ORIGIN = "https://desk.example.com"
TOKENS = {"ann": "token-of-ann-1234567890", "bob": "token-of-bob-1234567890"}


@pytest.fixture
def stores(clock: FakeClock) -> Stores:
    return fake_stores(clock)


@pytest.fixture
async def browser(stores: Stores) -> AsyncIterator[httpx2.AsyncClient]:
    hosts = AllowedHosts("http://127.0.0.1:8123", f"{ORIGIN}/mcp")
    app = team_application(desk_on(stores), hosts, Callers(TOKENS, None), is_secure=True)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=ORIGIN) as client:
        yield client


async def sign_in(browser: httpx2.AsyncClient, token: str, origin: str = ORIGIN) -> httpx2.Response:
    return await browser.post("/", data={"token": token}, headers={"origin": origin})


async def sat_down(browser: httpx2.AsyncClient, name: str) -> tuple[str, str]:
    """The path of the desk, and the token of its page."""
    entered = await sign_in(browser, TOKENS[name])
    found = re.search(r"url=(/[\w-]+)/", entered.text)
    assert found
    page = re.search(r'name="page-token" content="([\w-]{43})"', (await browser.get(f"{found[1]}/")).text)
    assert page
    return found[1], page[1]


async def test_a_person_signs_in_and_their_name_is_in_the_record(browser: httpx2.AsyncClient, stores: Stores) -> None:
    asker = Asker(stores, "guard_1")
    first, second = await asker.ask(), await asker.ask()
    room, page_token = await sat_down(browser, "ann")
    assert (await browser.get(f"{room}/waiting")).json() == {"waiting": [first.approval_id, second.approval_id]}
    headers = {"origin": ORIGIN, "x-page-token": page_token}

    async def decide(**choice: Any) -> Any:
        reply = await browser.post(f"{room}/decisions", json={"decisions": [choice]}, headers=headers)
        assert reply.status_code == 200, reply.text
        return reply.json()["decided"][0]

    await decide(approval_id=first.approval_id, decision="deny")
    await decide(approval_id=second.approval_id, decision="approve", from_now_on={"always": True})
    (standing,) = (await browser.get(f"{room}/standing")).json()["standing"]
    # What is allowed at the desk holds for every caller.
    assert (await stores.standing.list_standing())[0].caller is None
    revoked = await browser.post(f"{room}/revocations", json={"standing_id": standing["standing_id"]}, headers=headers)
    assert revoked.status_code == 200
    found = [(log.event, log.who) for log in await stores.logs.query() if log.event in ("approval", "standing_ended")]
    assert found == [("approval", "ann"), ("approval", "ann"), ("standing_ended", "ann")]


async def test_a_token_of_the_issuer_signs_in_with_its_subject(stores: Stores) -> None:
    app = team_application(desk_on(stores), AllowedHosts("http://127.0.0.1:8123", ORIGIN), FakeIssuer().callers())
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=ORIGIN) as browser:
        assert (await sign_in(browser, access_token(aud="https://other.example"))).status_code == 401
        found = re.search(r"url=(/[\w-]+)/", (await sign_in(browser, access_token())).text)
        assert found
        assert 'name="signed-in-as" content="ann"' in (await browser.get(f"{found[1]}/")).text


async def test_only_a_token_that_counts_opens_the_desk(browser: httpx2.AsyncClient) -> None:
    form = await browser.get("/")
    assert (form.status_code, '<form class="signing-in" method="post"' in form.text) == (200, True)
    for token in ("", "wrong", "token-of-ann"):
        refused = await sign_in(browser, token)
        assert (refused.status_code, "set-cookie" in refused.headers) == (401, False)
    for origin in ("https://elsewhere.example", "http://desk.example.com", "null"):
        assert (await sign_in(browser, TOKENS["ann"], origin)).status_code == 403
    entered = await sign_in(browser, TOKENS["ann"])
    assert {"HttpOnly", "SameSite=strict", "Secure"} <= set(entered.headers["set-cookie"].split("; "))
    assert (await browser.get("/", headers={"host": "elsewhere.example"})).status_code == 403
    assert "form-action 'self'" in form.headers["content-security-policy"]


async def test_without_a_session_nothing_is_shown(browser: httpx2.AsyncClient) -> None:
    room, page_token = await sat_down(browser, "bob")
    browser.cookies.clear()
    assert (await browser.get(f"{room}/waiting")).status_code == 403
    for path in (f"{room}/", "/of-an-earlier-desk/"):
        led = await browser.get(path, headers={"accept": "text/html"})
        assert (led.status_code, led.headers["location"]) == (303, "/")
    headers = {"origin": ORIGIN, "x-page-token": page_token, "cookie": "desk=made-up"}
    assert (await browser.post(f"{room}/decisions", json={"decisions": []}, headers=headers)).status_code == 403


async def test_a_session_ends_with_its_token_and_with_the_day() -> None:
    tokens, now = {"ann": "one"}, [0.0]
    sessions = TeamSessions(Callers(tokens, None), lambda: now[0])
    session = await sessions.enter("one")
    assert session is not None
    assert await sessions.name_in(session) == "ann"
    now[0] = 12 * 3600.0
    assert await sessions.name_in(session) is None
    assert await sessions.enter("two") is None
    many = [await sessions.enter("one") for _ in range(1001)]
    assert await sessions.name_in(many[0] or "") is None
    assert await sessions.name_in(many[-1] or "") == "ann"


@pytest.fixture
def store(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'guard.db'}"
    asyncio.run(open_stores(url).approvals.list_pending())
    return url


def test_the_command_serves_until_it_is_ended(store: str, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("http: {tokens_env: TEAM}")
    environ = environment(tmp_path, TEAM="\n".join(f"{name}:{token}" for name, token in TOKENS.items()))
    command = [*COMMAND, "approvals", "serve", "--store", store, "--http", "0", "--config", str(config)]
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        link = next(found[1] for line in lines if (found := re.search(r'"link": "([^"]+)"', line)))
        with httpx2.Client(base_url=link, trust_env=False, timeout=WAIT_SECONDS) as browser:
            entered = browser.post("/", data={"token": TOKENS["bob"]}, headers={"origin": link.rstrip("/")})
        assert entered.status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_SECONDS) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("settings", "where", "problem"),
    [
        ("http: {}", "0", "needs to know who decides"),
        ("http: {tokens_env: TEAM}", "0", "http.tokens_env: TEAM"),
        ("http: {issuer: 'https://a.example', audience: b}", "0.0.0.0:0", "set http.public_url"),
        ("http: {issuer: 'https://a.example', audience: b}", "nowhere", "--http takes [HOST:]PORT"),
    ],
)
def test_a_desk_that_would_not_know_who_decides_is_refused(
    store: str, tmp_path: Path, settings: str, where: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(settings)
    assert main(["approvals", "serve", "--store", store, "--http", where, "--config", str(config)]) == 2
    assert problem in capsys.readouterr().err
