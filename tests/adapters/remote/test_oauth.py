"""Logging in at a remote server, the stored login, and its renewal by another process."""

import asyncio
import stat
import time
from dataclasses import replace
from pathlib import Path

import pytest

from openai_responses_mcp.adapters.remote import oauth
from openai_responses_mcp.adapters.remote.credentials import Credentials, LoginFile, SavedLogin
from openai_responses_mcp.adapters.remote.exchange import Advice, Exchange
from openai_responses_mcp.adapters.remote.server import RemoteServer
from openai_responses_mcp.adapters.remote.wire import RemoteFault, remote_address
from tests.adapters.remote.authorization import Authorization, authorizing, browse, query_of
from tests.adapters.remote.stand_in import ENVELOPE, Scene, StandIn, request
from tests.fakes import WAIT_SECONDS

REDIRECT = "http://127.0.0.1:1/callback"


async def logged_in(
    authorization: Authorization, folder: Path, client: SavedLogin | None = None, state: str = ""
) -> tuple[LoginFile, bool]:
    file = LoginFile(str(folder), authorization.url)
    at: list[str] = []

    async def open_page(link: str) -> None:
        at.append(await browse(link))

    async def callback() -> dict[str, str]:
        said = query_of(at[0])
        return {**said, "state": state or said["state"]}

    address = remote_address(authorization.url)
    known = client or SavedLogin()
    return file, await asyncio.wait_for(oauth.log_in(address, file, known, REDIRECT, open_page, callback), WAIT_SECONDS)


def stored(authorization: Authorization, file: LoginFile) -> Credentials:
    return Credentials(remote_address(authorization.url), file, oauth.renew)


async def test_a_stored_login_is_private_and_has_all_that_a_renewal_needs(tmp_path: Path) -> None:
    async with authorizing() as authorization:
        file, was_asked = await logged_in(authorization, tmp_path)
        assert was_asked
        login = file.read()
        assert login.access_token in authorization.access
        assert login.expires_at == pytest.approx(time.time() + 3600, abs=60)
        assert login.authorization_server["token_endpoint"] == f"{authorization.base}/token"
        assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700
        assert authorization.calls[-2:] == ["POST", "DELETE"]
        assert authorization.clients[0]["redirect_uris"] == [REDIRECT]


async def test_a_login_that_fails_says_why(tmp_path: Path) -> None:
    async with authorizing() as authorization:
        with pytest.raises(RemoteFault, match="State parameter mismatch"):
            await logged_in(authorization, tmp_path, state="another")
        authorization.token_status = 400
        with pytest.raises(RemoteFault, match=r"Token exchange failed \(400\)"):
            await logged_in(authorization, tmp_path)
        authorization.issuer = "http://203.0.113.1"
        with pytest.raises(RemoteFault, match=r"the connection to 203\.0\.113\.1 would not be encrypted"):
            await logged_in(authorization, tmp_path)
        authorization.base += "/nowhere"
        with pytest.raises(RemoteFault, match="status 404: check the URL"):
            await logged_in(authorization, tmp_path)
    with pytest.raises(RemoteFault, match="ConnectError"):
        await logged_in(authorization, tmp_path)


async def test_another_process_renews_an_expired_login_once_without_a_browser(tmp_path: Path) -> None:
    async with authorizing() as authorization:
        file, _ = await logged_in(authorization, tmp_path)
        old = file.read()
        file.write(replace(old, expires_at=time.time() + 5))
        processes = [stored(authorization, file) for _ in range(3)]
        given = await asyncio.wait_for(asyncio.gather(*(one.headers() for one in processes)), WAIT_SECONDS)
        new = file.read()
        assert new.access_token != old.access_token
        assert [dict(one) for one in given] == [{"authorization": f"Bearer {new.access_token}"}] * 3
        assert [grant["grant_type"] for grant in authorization.grants] == ["authorization_code", "refresh_token"]
        assert authorization.grants[1]["resource"] == authorization.url


async def test_a_token_refused_before_it_expires_is_renewed(tmp_path: Path) -> None:
    async with authorizing() as authorization:
        file, _ = await logged_in(authorization, tmp_path)
        authorization.access.clear()
        exchange = Exchange(remote_address(authorization.url), stored(authorization, file), Advice("guard login"))
        scene = Scene(StandIn(), exchange.address, RemoteServer(exchange, print, 1000), [])
        scene.send(request(1, _meta=ENVELOPE))
        assert (await scene.next())["id"] == 1
        authorization.access.clear()
        authorization.refresh.clear()
        scene.send(request(2, _meta=ENVELOPE))
        assert "(401): log in with: guard login" in await scene.error()
        tried = len(authorization.grants)
        scene.send(request(3, _meta=ENVELOPE))
        assert "log in with" in await scene.error()
        # A refused refresh token is not used again, and a new login takes effect at once.
        assert len(authorization.grants) == tried
        await logged_in(authorization, tmp_path)
        scene.send(request(4, _meta=ENVELOPE))
        assert (await scene.next())["id"] == 4
        await scene.transport.end()


async def test_a_login_survives_a_failing_authorization_server(tmp_path: Path) -> None:
    async with authorizing() as authorization:
        file, _ = await logged_in(authorization, tmp_path)
        file.write(replace(file.read(), expires_at=1.0))
        authorization.token_status = 503
        with pytest.raises(RemoteFault, match=r"cannot be renewed now \(503\)"):
            await stored(authorization, file).headers()
        authorization.token_status = 200
        assert await stored(authorization, file).headers()
    file.write(replace(file.read(), expires_at=1.0))
    with pytest.raises(RemoteFault, match="ConnectError"):
        await stored(authorization, file).headers()


@pytest.mark.parametrize("content", ["", "[]", '{"tokens": 1}'])
async def test_an_unreadable_file_counts_as_no_login(tmp_path: Path, content: str) -> None:
    file = LoginFile(str(tmp_path), "http://127.0.0.1:1/mcp")
    login = Credentials(remote_address("http://127.0.0.1:1/mcp"), file, oauth.renew)
    assert await login.headers() == {}
    file.write(SavedLogin())
    file.path.write_text(content)
    assert await login.headers() == {}
    assert await login.renewed({}) == {}


async def test_a_login_with_invalid_parts_is_not_used(tmp_path: Path) -> None:
    file = LoginFile(str(tmp_path), "http://127.0.0.1:1/mcp")
    file.write(SavedLogin({"access_token": "a", "refresh_token": "r"}, 1.0, {"client_id": "c"}, {"issuer": 5}))
    login = Credentials(remote_address("http://127.0.0.1:1/mcp"), file, oauth.renew)
    assert await login.headers() == {}
