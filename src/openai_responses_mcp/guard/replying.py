"""What the guard itself says to the client about a call that it holds."""

from typing import TYPE_CHECKING, NamedTuple

from openai_responses_mcp.domain.jsonrpc import INVALID_PARAMS, Reply
from openai_responses_mcp.guard import messages
from openai_responses_mcp.guard.client_ways import has_envelope
from openai_responses_mcp.guard.messages import JsonObject
from openai_responses_mcp.guard.peers import Opened, Peer

if TYPE_CHECKING:
    from openai_responses_mcp.gate.reasons import Reason


class Replying:
    """Each call is answered once; a call that was cancelled meanwhile is not answered at all."""

    def __init__(self, server: Peer) -> None:
        self._server = server

    def result(self, opened: Opened, result: JsonObject) -> None:
        if self._server.close(opened.request.id) is opened:
            opened.channel.reply(messages.result_reply(opened.request.id, result))

    def error(self, opened: Opened, reason: str) -> None:
        if self._server.close(opened.request.id) is opened:
            opened.channel.reply(messages.error_reply(opened.request.id, INVALID_PARAMS, reason), INVALID_PARAMS)

    def refusal(self, opened: Opened, tool_name: str, reason: str, comment: str = "") -> None:
        """As the result of the tool, so that the model can go on another way."""
        text = f"The guard did not run {tool_name}: {reason}"
        if comment:
            text += f". The approver says: {comment}"
        if "task" in opened.request.params:
            # A client that asked for a task expects one, or an error.
            self.error(opened, text)
            return
        stamp = {"resultType": "complete"} if has_envelope(opened.request.params) else {}
        self.result(opened, {**stamp, "content": [{"type": "text", "text": text}], "isError": True})


class Given(NamedTuple):
    """A reply as the client is given it. `reason` is what the log has to know about a change."""

    reply: Reply
    reason: "Reason | None" = None


def with_note(reply: Reply, note: str) -> bytes:
    """The reply with a note for the model in front of what the tool says."""
    result = messages.object_in(reply.result)
    content = result.get("content")
    if not note or not isinstance(content, list):
        return reply.wire
    return messages.result_reply(reply.id, {**result, "content": [{"type": "text", "text": note}, *content]})
