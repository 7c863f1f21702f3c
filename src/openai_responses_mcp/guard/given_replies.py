"""Replies of the server as the client gets them, if the policy file changes them.

`hide_denied` removes tools from lists if a rule denies them whatever their arguments. `results` replaces secrets by
labels, and a result that is too long by an error. Every other reply passes as it came.
"""

import base64
import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from openai_responses_mcp.domain.jsonrpc import INTERNAL_ERROR, Reply, Request
from openai_responses_mcp.domain.masking import SHORTEST_SECRET, Found, joined, label_of, replaced
from openai_responses_mcp.gate.calls import ToolDescription
from openai_responses_mcp.gate.definitions import annotations_of
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.policy.ruling import PolicyRules
from openai_responses_mcp.gate.reasons import Reason
from openai_responses_mcp.gate.secrets.masking import Masking, Path, secret_fields
from openai_responses_mcp.guard import messages
from openai_responses_mcp.guard.messages import CALL, LIST, JsonObject, JsonValue, object_in
from openai_responses_mcp.guard.peers import tool_error

TASK_METHODS = frozenset({"tasks/result", "tasks/get"})

# Passed back to the server as they are. They are not shown, and a label in their place would break the call.
_OPAQUE = frozenset({"requestState", "taskId"})
_ENCODED = frozenset({"blob", "data"})


class Given(NamedTuple):
    """A reply as the client gets it. `reason` records a change."""

    reply: Reply
    reason: Reason | None = None


class GivenReplies:
    def __init__(self, rules: PolicyRules, server_name: str, masking: Masking, *, is_observing: bool) -> None:
        self._rules = rules
        self._server_name = server_name
        self._masking = masking
        self._is_observing = is_observing
        self._listed: dict[str, JsonObject] = {}
        self._was_hidden: frozenset[str] = frozenset()

    def given(self, request: Request, reply: Reply, definition: JsonObject) -> Given:
        """`definition` is that of the called tool; empty if unknown."""
        try:
            if request.method == LIST:
                return Given(self._listing(request, reply))
            if request.method == CALL or request.method in TASK_METHODS:
                return self._result(request, reply, definition)
        except (AgentsError, RecursionError) as exc:
            text = f"The guard withheld the result, because it could not be searched: {exc}"
            facts = {"code": getattr(exc, "code", "AGENTS-E-GATE-EVAL"), "message": text}
            return Given(_instead(request, reply, text), Reason("failure", "deny", facts))
        return Given(reply)

    # -----------------------------------------------------------------------------------------------------------------
    # Lists

    @property
    def hides_others(self) -> bool:
        """True if the client would get another list now than it got last; once for each change."""
        before, self._was_hidden = self._was_hidden, self._hidden()
        return before != self._was_hidden

    def _hidden(self) -> frozenset[str]:
        if self._is_observing or not self._rules.policy.hide_denied:
            return frozenset()
        tools = {
            name: ToolDescription(f"{self._server_name}/{name}", "mcp", annotations=annotations_of(entry))
            for name, entry in self._listed.items()
        }
        return frozenset(name for name, tool in tools.items() if self._rules.denies_always(tool))

    def _listing(self, request: Request, reply: Reply) -> Reply:
        result = object_in(reply.result)
        tools = result.get("tools")
        if not isinstance(tools, list):
            return reply
        if request.params.get("cursor") is None:
            self._listed = {}
        self._listed |= {name: tool for tool in tools if isinstance(name := object_in(tool).get("name"), str)}
        self._was_hidden = self._hidden()
        kept = [tool for tool in tools if object_in(tool).get("name") not in self._was_hidden]
        return reply if len(kept) == len(tools) else _with_result(reply, {**result, "tools": kept})

    # -----------------------------------------------------------------------------------------------------------------
    # Results

    def _result(self, request: Request, reply: Reply, definition: JsonObject) -> Given:
        limits = self._rules.policy.results
        limit = limits.max_bytes
        if limit is not None and len(reply.wire) > limit and (size := _size_of(reply)) > limit:
            text = f"The guard withheld the result: it has {size} bytes, and the limit is {limit}"
            return Given(_instead(request, reply, text), Reason("result", "deny", {"bytes": size, "limit": limit}))
        return self._without_secrets(request, reply, definition) if limits.secrets == "hide" else Given(reply)

    def _without_secrets(self, request: Request, reply: Reply, definition: JsonObject) -> Given:
        hiding = _Hiding(self._masking, request, reply, definition)
        hidden = hiding.value(reply.result if reply.error is None else reply.error)
        if not hiding.count:
            return Given(reply)
        reason = Reason("result", "allow", {"hidden": hiding.count})
        if reply.error is not None:
            content = {**reply.content, "error": hidden}
            return Given(reply._replace(error=hidden, content=content, wire=messages.encode(content)), reason)
        return Given(_with_result(reply, hidden), reason)


class _Hiding:
    """Replaces secrets by labels, and counts them.

    A field that the tool's own schemas name after a secret holds one, in the result and in the arguments of the call.
    """

    def __init__(self, masking: Masking, request: Request, reply: Reply, definition: JsonObject) -> None:
        self._find = masking.finder.find
        self.count = 0
        output = object_in(object_in(reply.result).get("structuredContent"))
        args = object_in(request.params.get("arguments"))
        in_output = secret_fields(object_in(definition.get("outputSchema")), output)
        in_args = secret_fields(object_in(definition.get("inputSchema")), args)
        self._known = {one.text: one.name for one in (*in_output, *in_args) if len(one.text) >= SHORTEST_SECRET}
        self._fields: dict[Path, str] = {("structuredContent", *one.path): one.name for one in in_output}

    def value(self, value: JsonValue, path: Path = ()) -> JsonValue:
        if isinstance(value, str):
            if path in self._fields:
                self.count += 1
                return label_of(self._fields[path], len(value))
            return self._encoded(value) if path and path[-1] in _ENCODED else self._text(value)
        if isinstance(value, list):
            return [self.value(inner, (*path, place)) for place, inner in enumerate(value)]
        if not isinstance(value, dict):
            return value
        hidden: JsonObject = {}
        for name, inner in value.items():
            if name in _OPAQUE and path in ((), ("task",)):
                hidden[name] = inner
                continue
            shown = self._labelled(name, self._find(name))
            while shown in hidden:
                shown += "'"
            hidden[shown] = self.value(inner, (*path, name))
        return hidden

    def _text(self, text: str) -> str:
        return self._labelled(text, joined([*self._find(text), *self._known_in(text)]))

    def _labelled(self, text: str, found: Sequence[Found]) -> str:
        self.count += len(found)
        return replaced(text, found)

    def _known_in(self, text: str) -> Iterator[Found]:
        """Also as JSON writes it: many servers repeat structured content as text."""
        for secret, name in self._known.items():
            for written in {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}:
                for match in re.finditer(re.escape(written), text):
                    yield Found(*match.span(), label_of(name, len(secret)))

    def _encoded(self, data: str) -> str:
        """A text file in base64 is decoded and searched. The base64 may have line ends."""
        try:
            text = base64.b64decode(data).decode()
        except ValueError:
            return self._text(data)
        hidden = self._text(text)
        return self._text(data) if hidden == text else base64.b64encode(hidden.encode()).decode()


def _size_of(reply: Reply) -> int:
    """As the shortest JSON in UTF-8, however the server has written it."""
    content = reply.result if reply.error is None else reply.error
    written = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return len(written.encode("utf-8", "surrogatepass"))


def _with_result(reply: Reply, result: JsonValue) -> Reply:
    content = {**reply.content, "result": result}
    return reply._replace(result=result, content=content, wire=messages.encode(content))


def _instead(request: Request, reply: Reply, text: str) -> Reply:
    """A result of the tool, so that the model can try something else; an error where a task is expected."""
    if "task" in request.params or request.method in (LIST, "tasks/get"):
        return messages.failed_reply(reply.id, INTERNAL_ERROR, text)
    result = tool_error(request.params, text)
    return Reply(reply.id, result, None, wire=messages.result_reply(reply.id, result))
