"""A guarded server that is reached by a URL: its transport, and its end in place of the end of a process."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import unquote

from openai_responses_mcp.adapters.remote.credentials import Credentials, LoginFile, SavedLogin
from openai_responses_mcp.adapters.remote.exchange import Advice, Exchange
from openai_responses_mcp.adapters.remote.server import RemoteServer
from openai_responses_mcp.adapters.remote.wire import RemoteAddress, remote_address
from openai_responses_mcp.domain.masking import MASK
from openai_responses_mcp.gate.secrets.masking import Masking, is_secret_name
from openai_responses_mcp.gate.sql.own_files import own_folder
from openai_responses_mcp.guard.lifetime import ServerProcess
from openai_responses_mcp.guard.login import login_command
from openai_responses_mcp.guard.servers import HeaderVariable

_QUERY_VALUE = re.compile(r"(?<=[?&])([^=&]+)=[^&]+")


class RemoteEnd(ServerProcess):
    """A remote server does not end by itself: while it is gone, each request is answered with an error."""

    def __init__(self, transport: RemoteServer) -> None:
        self._transport = transport
        self._never: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def ended(self) -> int:
        return await self._never

    async def end(self) -> None:
        await self._transport.end()


def connect(
    url: str,
    headers: Sequence[HeaderVariable],
    environ: Mapping[str, str],
    tell: Callable[[str], object],
    longest_bytes: int,
) -> RemoteServer:
    """Inside the running event loop. Nothing is sent before the first message."""
    address = remote_address(url)
    fixed = {one.name.lower(): f"{one.scheme} {environ[one.variable]}".strip() for one in headers}
    file = None if "authorization" in fixed else LoginFile(own_folder(environ), url)
    variables = tuple(one.variable for one in headers) if file is None else ()
    advice = Advice(_shown_login(url, environ), variables)
    return RemoteServer(Exchange(address, Credentials(address, file, _renew, fixed), advice), tell, longest_bytes)


def _shown_login(url: str, environ: Mapping[str, str]) -> str:
    """The command that logs in. It is in errors, which the client and the log keep, so without secrets in the query."""
    hidden = _QUERY_VALUE.sub(
        lambda found: f"{found[1]}={MASK}" if is_secret_name(unquote(found[1])) else found[0], url
    )
    return Masking(environ).text(login_command(hidden))


async def _renew(address: RemoteAddress, file: LoginFile, login: SavedLogin) -> SavedLogin:
    # The official client takes long to import, and most starts do not need it.
    from openai_responses_mcp.adapters.remote.oauth import renew

    return await renew(address, file, login)
