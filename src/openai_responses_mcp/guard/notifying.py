"""Notices of waiting questions to a chat, by a webhook that Slack, Mattermost and Discord's Slack form understand.

A notice never holds a call up and never fails one. The arguments of a call are not in it. The address is a secret:
everybody who has it can write to the chat.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from openai_responses_mcp.domain.texts import Language
from openai_responses_mcp.gate.approvals.models import HumanApprovalRequest
from openai_responses_mcp.gate.reasons import notice, shown

SECONDS_FOR_ONE_TRY = 5.0
MOST_AT_ONCE = 20
_SECONDS_BEFORE_SECOND_TRY = 1.0
_PLAIN = frozenset(" .,:;!?'\"()/_-+=%、。")

Post = Callable[[str, Mapping[str, str]], Awaitable[None]]


class Webhook:
    """`post` raises where the notice was not taken."""

    def __init__(
        self,
        address: str,
        server_name: str,
        tell: Callable[[str], object],
        language: Language = "en",
        post: Post | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._address = address
        self._server_name = server_name
        self._tell = tell
        self._language = language
        self._post = post or post_json
        self._sleep = sleep
        self._under_way: set[asyncio.Task[None]] = set()
        self._has_warned = False

    def tell(self, request: HumanApprovalRequest, expires_at: str) -> None:
        """Returns at once."""
        if len(self._under_way) >= MOST_AT_ONCE:
            self._warn("too many at once")
            return
        task = asyncio.create_task(self._send(self._body(request, expires_at)))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    def _body(self, request: HumanApprovalRequest, expires_at: str) -> dict[str, str]:
        why = shown(request.reasons, "needs_human", self._language, request.reason)
        command = f"openai-responses-mcp approvals show {request.approval_id.removeprefix('apr_')[:8]}"
        return {
            "text": notice(_plain(request.tool_name), _plain(why), command, self._language),
            "approval_id": request.approval_id,
            "server": self._server_name,
            "tool": request.tool_name.removeprefix(f"{self._server_name}/"),
            "why": why,
            "expires_at": expires_at,
        }

    async def _send(self, body: Mapping[str, str]) -> None:
        for attempt in (1, 2):
            try:
                async with asyncio.timeout(SECONDS_FOR_ONE_TRY):
                    await self._post(self._address, body)
            except Exception as exc:  # A notice that fails must not end anything, whatever is wrong with the address.
                if attempt == 2:
                    # Without its text, which may hold the address.
                    self._warn(str(exc) if isinstance(exc, NotTaken) else type(exc).__name__)
                else:
                    await self._sleep(_SECONDS_BEFORE_SECOND_TRY)
            else:
                return

    def _warn(self, problem: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            self._tell(f"a question could not be sent to the webhook ({problem}); this is said once")


class NotTaken(Exception):
    """The other side answered, and did not take it."""


async def post_json(address: str, body: Mapping[str, str]) -> None:
    """Redirects are not followed: they would give the notice, and the address, to somebody else."""
    # In a thread, because it is slow to import.
    await asyncio.to_thread(__import__, "aiohttp")
    import aiohttp

    async with (
        aiohttp.ClientSession() as session,
        session.post(address, json=body, allow_redirects=False, proxy=_proxy_for(address)) as answer,
    ):
        if not 200 <= answer.status < 300:  # pragma: no branch - coverage sees the session's exit instead
            raise NotTaken(f"it answered with status {answer.status}")


def is_address(address: str) -> bool:
    """Whether it is one that a notice can be sent to."""
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _proxy_for(address: str) -> str | None:
    parts = urlsplit(address)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)


def _plain(text: str) -> str:
    """Names come from the server. A chat would make links, calls to everybody and markup of some characters."""
    return "".join(one if one.isalnum() or one in _PLAIN else f"\\u{ord(one):04x}" for one in text)
