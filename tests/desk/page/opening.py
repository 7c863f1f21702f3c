"""The desk's application behind a client without a browser, and on a real port of this machine."""

import re
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from starlette.types import ASGIApp

from openai_responses_mcp.desk.opening import desk_on
from openai_responses_mcp.desk.page.access import Entrance
from openai_responses_mcp.desk.page.application import application
from openai_responses_mcp.gate.stores import Stores

PORT = 8123
ORIGIN = f"http://127.0.0.1:{PORT}"


class OpenedDesk:
    """Sends what a page in a browser would send, unless a test says otherwise."""

    def __init__(self, stores: Stores) -> None:
        self.entrance = Entrance()
        self.app: ASGIApp = application(desk_on(stores), self.entrance, PORT)
        self.client = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=self.app), base_url=ORIGIN)
        self.page_token = ""

    @property
    def room(self) -> str:
        return f"/{self.entrance.room}"

    async def enter(self, secret: str | None = None) -> httpx2.Response:
        return await self.client.get("/", params={"secret": secret or self.entrance.link_secret})

    async def sit_down(self) -> None:
        assert (await self.enter()).status_code == 200
        page = (await self.look("/")).text
        found = re.search(r'name="page-token" content="([\w-]{43})"', page)
        assert found
        self.page_token = found[1]

    async def look(self, path: str, **headers: str) -> httpx2.Response:
        return await self.client.get(self.room + path, headers=headers)

    async def change(self, path: str, body: Any, **headers: str | None) -> httpx2.Response:
        sent: dict[str, str | None] = {"origin": ORIGIN, "x-page-token": self.page_token}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        kept = {name: value for name, value in sent.items() if value is not None}
        return await self.client.post(self.room + path, json=body, headers=kept)


@asynccontextmanager
async def opened(stores: Stores) -> Any:
    desk = OpenedDesk(stores)
    async with desk.client:
        yield desk
