"""The desk over HTTP: who gets in, what is answered, and what is refused."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx2
import pytest
from starlette.types import Message

from openai_responses_mcp.desk.opening import desk_on
from openai_responses_mcp.desk.page.access import Entrance
from openai_responses_mcp.desk.page.application import FILES, application
from openai_responses_mcp.gate.errors import StoreUnavailable
from openai_responses_mcp.gate.stores import Stores
from tests.agents.fake_stores import FakeApprovalStore, fake_stores
from tests.agents.fakes import FakeClock
from tests.desk.page.asking import Asker
from tests.desk.page.opening import ORIGIN, PORT, OpenedDesk, opened


@pytest.fixture
def stores(clock: FakeClock) -> Stores:
    return fake_stores(clock)


@pytest.fixture
async def desk(stores: Stores) -> AsyncIterator[OpenedDesk]:
    async with opened(stores) as made:
        yield made


# ---------------------------------------------------------------------------------------------------------------------
# Getting in


async def test_the_link_gives_a_strict_cookie_once(desk: OpenedDesk) -> None:
    entered = await desk.enter()
    cookie = entered.headers["set-cookie"]
    assert cookie.startswith(f"desk_{PORT}=")
    assert {"HttpOnly", "SameSite=strict", f"Path={desk.room}/"} <= set(cookie.split("; "))
    assert f"url={desk.room}/" in entered.text
    assert (await desk.look("/")).status_code == 200
    again = await desk.enter()
    assert (again.status_code, "set-cookie" in again.headers) == (403, False)
    assert "has been used" in again.text
    assert (await desk.look("/")).status_code == 200


async def test_a_wrong_secret_does_not_open(desk: OpenedDesk) -> None:
    for secret in ("wrong", "é", desk.entrance.room, desk.entrance.page_token):
        assert (await desk.enter(secret)).status_code == 403
    assert desk.entrance.enter("\ud800") is None
    assert (await desk.client.get("/")).status_code == 403
    assert (await desk.client.head("/", params={"secret": desk.entrance.link_secret})).status_code == 403
    assert (await desk.enter()).status_code == 200


async def test_without_the_cookie_nothing_is_shown_or_changed(desk: OpenedDesk) -> None:
    paths = [
        "/",
        "/waiting",
        "/requests?ids=apr_1",
        "/log",
        "/log/verification",
        "/standing",
        *(f"/{n}" for n in FILES),
    ]
    assert (await desk.look("/waiting", cookie=f"desk_{PORT}=")).status_code == 403
    await desk.sit_down()
    desk.client.cookies.clear()
    for path in paths:
        assert (await desk.look(path)).status_code == 403
    for guess in ("guess", desk.entrance.link_secret, desk.entrance.page_token, desk.entrance.room):
        assert (await desk.look("/waiting", cookie=f"desk_{PORT}={guess}")).status_code == 403
    assert (await desk.change("/decisions", {})).status_code == 403


# ---------------------------------------------------------------------------------------------------------------------
# Where a request comes from


@pytest.mark.parametrize("host", ["localhost:8123", "127.0.0.1:8124", "127.0.0.1:8123.evil.example", ""])
async def test_another_name_is_refused(desk: OpenedDesk, host: str) -> None:
    await desk.sit_down()
    assert (await desk.look("/waiting", host=host)).status_code == 403
    assert (await desk.client.get("/", headers={"host": host})).status_code == 403


async def test_the_usual_port_is_left_out_of_the_name(stores: Stores) -> None:
    app = application(desk_on(stores), Entrance(), 80)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://127.0.0.1") as client:
        assert "link" in (await client.get("/")).text
        assert "no other name" in (await client.get("/", headers={"host": "127.0.0.1:8123"})).text


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:8123"])
async def test_another_origin_is_refused(desk: OpenedDesk, origin: str) -> None:
    await desk.sit_down()
    assert (await desk.look("/waiting", origin=origin)).status_code == 403
    assert (await desk.change("/decisions", {}, origin=origin)).status_code == 403
    assert (await desk.change("/decisions", {}, origin=None)).status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_requests_from_pages_of_other_sites_are_refused(desk: OpenedDesk, site: str) -> None:
    await desk.sit_down()
    loads = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"}
    assert (await desk.look("/desk.js", **loads)).status_code == 403
    frames = {"sec-fetch-site": site, "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}
    assert (await desk.look("/", **frames)).status_code == 403


async def test_the_link_may_be_followed_from_anywhere(desk: OpenedDesk) -> None:
    follows = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    entered = await desk.client.get("/", params={"secret": desk.entrance.link_secret}, headers=follows)
    assert entered.status_code == 200


# ---------------------------------------------------------------------------------------------------------------------
# Changes


async def test_a_form_or_a_request_without_the_page_token_cannot_change_anything(
    desk: OpenedDesk, stores: Stores
) -> None:
    await desk.sit_down()
    body = {"decisions": [{"approval_id": (await Asker(stores).ask()).approval_id, "decision": "approve"}]}
    for token in (None, "", "guess"):
        assert (await desk.change("/decisions", body, x_page_token=token)).status_code == 403
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert (await desk.change("/decisions", body, content_type=kind)).status_code == 415
    assert len((await desk.look("/waiting")).json()["waiting"]) == 1


async def test_a_change_that_cannot_be_read_is_refused_with_a_reason(desk: OpenedDesk) -> None:
    await desk.sit_down()
    headers = {"origin": ORIGIN, "x-page-token": desk.page_token, "content-type": "application/json"}
    for body in ("", "{", b"\xff", '{"decisions": [], "decisions": []}', '{"decisions": NaN}'):
        refused = await desk.client.post(f"{desk.room}/decisions", content=body, headers=headers)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "AGENTS-E-APPROVAL-INVALID")


# ---------------------------------------------------------------------------------------------------------------------
# What is answered


async def test_the_same_answer_is_not_sent_again(desk: OpenedDesk, stores: Stores) -> None:
    await desk.sit_down()
    first = await desk.look("/waiting")
    known = {"if-none-match": first.headers["etag"]}
    assert (await desk.look("/waiting", **known)).status_code == 304
    request = await Asker(stores).ask()
    assert (await desk.look("/waiting", **known)).json() == {"waiting": [request.approval_id]}


async def test_markup_in_arguments_stays_a_text_of_json(desk: OpenedDesk, stores: Stores) -> None:
    await desk.sit_down()
    hostile = "</script><img src=x onerror=alert(1)>\ud800"
    request = await Asker(stores).ask({"text": hostile}, name="<b>x</b>")
    shown = await desk.look(f"/requests?ids={request.approval_id}")
    assert shown.headers["content-type"] == "application/json"
    assert shown.json()["requests"][0]["tool_name"] == "<b>x</b>"
    assert "</script><img src=x onerror=alert(1)>\\ud800" in shown.json()["requests"][0]["arguments"]


async def test_the_log_is_shown_and_verified(desk: OpenedDesk, stores: Stores) -> None:
    await desk.sit_down()
    await Asker(stores).ask()
    record = (await desk.look("/log")).json()["calls"][0]["records"][0]
    assert (record["event"], record["says"]) == ("approval_requested", {"en": "a person is asked", "ja": "人に確認"})
    assert (await desk.look("/log?before=1")).json()["calls"] == []
    for odd in ("x", "-1", "1e9", "²", "9" * 30):
        assert len((await desk.look(f"/log?before={odd}")).json()["calls"]) == 1
    assert (await desk.look("/log/verification")).json()["is_intact"] is True


async def test_the_files_of_the_page_are_served_as_what_they_are_and_no_others(desk: OpenedDesk) -> None:
    await desk.sit_down()
    for path in ("/%2e%2e/%2e%2e/pyproject.toml", "/page.html", "/..%2fapplication.py", "/desk.js/", "/desk.js%00"):
        assert (await desk.look(path)).status_code in (307, 403, 404)
    for name, kind in FILES.items():
        served = await desk.look(f"/{name}")
        assert (served.status_code, served.headers["content-type"]) == (200, kind)


async def test_every_reply_is_locked_down(desk: OpenedDesk) -> None:
    await desk.sit_down()
    replies = [
        await desk.look("/"),
        await desk.look("/desk.js"),
        await desk.look("/waiting"),
        await desk.look("/nowhere"),
        await desk.look("/waiting", host="evil.example"),
        await desk.enter(),
    ]
    for reply in replies:
        policy = dict(part.strip().partition(" ")[::2] for part in reply.headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert policy["frame-ancestors"] == "'none'"
        assert set(policy.values()) <= {"'none'", "'self'", "'script'"}
        assert reply.headers["cache-control"] == "no-store"
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in reply.headers


async def test_a_body_that_ends_in_the_middle_is_not_taken_for_whole(desk: OpenedDesk, stores: Stores) -> None:
    await desk.sit_down()
    approval_id = (await Asker(stores).ask()).approval_id
    whole = json.dumps({"decisions": [{"approval_id": approval_id, "decision": "approve"}]}).encode()
    parts: list[Message] = [{"type": "http.request", "body": whole, "more_body": True}, {"type": "http.disconnect"}]
    sent: list[Message] = []
    cookie = "; ".join(f"{name}={value}" for name, value in desk.client.cookies.items())
    headers = {"host": f"127.0.0.1:{PORT}", "origin": ORIGIN, "x-page-token": desk.page_token, "cookie": cookie}

    async def receive() -> Message:
        return parts.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": f"{desk.room}/decisions", "headers": raw, "query_string": b""}
    await desk.app(scope, receive, send)
    assert sent[0]["status"] == 400
    assert (await desk.look("/waiting")).json() == {"waiting": [approval_id]}


class BrokenStore(FakeApprovalStore):
    async def latest_moment(self, now: str) -> str:
        raise StoreUnavailable("The store cannot be used: locked")


class BuggyStore(FakeApprovalStore):
    async def latest_moment(self, now: str) -> str:
        raise ZeroDivisionError("sk-0123456789abcdef")


async def test_a_store_that_fails_is_reported(clock: FakeClock) -> None:
    stores = replace(fake_stores(clock), approvals=BrokenStore())
    async with opened(stores) as desk:
        await desk.sit_down()
        failed = await desk.look("/waiting")
        assert (failed.status_code, failed.json()["error"]["message"]) == (503, "The store cannot be used: locked")


async def test_our_own_error_is_logged_and_not_shown(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    stores = replace(fake_stores(clock), approvals=BuggyStore())
    async with opened(stores) as desk:
        await desk.sit_down()
        with pytest.raises(ZeroDivisionError):
            await desk.look("/waiting")
    assert "the desk failed at waiting" in caplog.text
