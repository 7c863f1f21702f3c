"""The desk as a page: an application on the server for 127.0.0.1, and the link that opens it."""

from collections.abc import Callable

from openai_responses_mcp.agents.adapters.web.application import application
from openai_responses_mcp.agents.adapters.web.loopback_server import LoopbackServer, listening_socket
from openai_responses_mcp.agents.desk.desk import Desk
from openai_responses_mcp.agents.desk.entrance import Entrance


async def serve(desk: Desk, entrance: Entrance, port: int, on_listening: Callable[[str], object]) -> None:
    """Until the process is told to end. Raises `AGENTS-E-RUNNER-CONFIG` for a port that cannot be used."""
    with listening_socket(port) as listening:
        taken: int = listening.getsockname()[1]
        link = f"http://127.0.0.1:{taken}/?secret={entrance.link_secret}"
        server = LoopbackServer(application(desk, entrance, taken), lambda: on_listening(link))
        await server.serve(sockets=[listening])
