"""Holds a conversation against the wire types of the package mcp-types, message by message, in both directions.

    python wire_types.py FOLDER        every recording that recorder.py has left there

A request belongs to the revision that its envelope names, else to the handshake's; what answers it, reports on it or
cancels it belongs to the same. Only a request that the server refused may be malformed. mcp-types has one set of types
for all handshake revisions, and one for 2026-07-28; both let unknown members pass, so a result must also come out of
them as it went in. Tasks are an extension that it leaves out: they are held against the extension's own types.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from jsonschema import ValidationError  # type: ignore[import-untyped]
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    UNSUPPORTED_PROTOCOL_VERSION,
    MissingRequiredClientCapabilityErrorData,
    UnsupportedProtocolVersionErrorData,
    methods,
)
from mcp_types.jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # Run as a script, the folder of this file stands there.

from tests.clients import task_types

Message = dict[str, Any]
Sender = Literal["client", "server"]
Conversation = list[tuple[Sender, Message]]

HANDSHAKE_REVISION = "2025-06-18"
TASKS_REVISION = "2026-07-28"
REVISION_KEY = "io.modelcontextprotocol/protocolVersion"
REFUSALS = {INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION}


class WireTypes:
    """Remembers the requests, to know the types of their results."""

    def __init__(self, refused: set[int | str | None]) -> None:
        self._refused = refused
        self._asked: dict[int | str, tuple[str, str]] = {}
        self._revision_of_token: dict[int | str, str] = {}

    def check(self, sender: Sender, message: Message) -> None:
        """Raises `KeyError`, `ValueError` or `ValidationError`."""
        match sender, jsonrpc_message_adapter.validate_python(message):
            case "client", JSONRPCRequest() as request:
                self._check_request(request)
            case "client", JSONRPCNotification() as notification:
                revision = self._revision_of_notification(notification.params or {})
                methods.validate_client_notification(notification.method, revision, notification.params)
            case "server", JSONRPCNotification(method=method, params=params):
                revision = self._revision_of_token[(params or {})["progressToken"]]
                methods.parse_server_notification(method, revision, params)
            case "server", JSONRPCResponse() as response:
                self._check_result(*self._asked.pop(response.id), response.result)
            case "server", JSONRPCError() as error:
                self._check_error(error)
            case _:
                raise ValueError(f"a {sender} does not send this")

    def _check_request(self, request: JSONRPCRequest) -> None:
        params = request.params or {}
        revision = params.get("_meta", {}).get(REVISION_KEY, HANDSHAKE_REVISION)
        self._asked[request.id] = request.method, revision
        if "progressToken" in params.get("_meta", {}):
            self._revision_of_token[params["_meta"]["progressToken"]] = revision
        if request.id in self._refused:
            return
        if revision == TASKS_REVISION and request.method in task_types.REQUESTS:
            task_types.validate_task_request(request.method, request.params)
        else:
            methods.validate_client_request(request.method, revision, request.params)

    def _revision_of_notification(self, params: Message) -> str:
        _, revision = self._asked.get(params.get("requestId", ""), ("", HANDSHAKE_REVISION))
        named: str = params.get("_meta", {}).get(REVISION_KEY, revision)
        return named

    def _check_result(self, method: str, revision: str, result: Message) -> None:
        if revision == TASKS_REVISION and (method in task_types.REQUESTS or result.get("resultType") == "task"):
            task_types.validate_task_result(method, result)
            if "result" not in result:
                return
            method, result = "tools/call", result["result"]
        methods.parse_server_result(method, revision, result)
        known = methods.serialize_server_result(method, revision, result)
        if known != result:
            raise ValueError(f"the types know only {known}")

    def _check_error(self, error: JSONRPCError) -> None:
        if error.id is not None:
            self._asked.pop(error.id)
        if error.error.code == UNSUPPORTED_PROTOCOL_VERSION:
            UnsupportedProtocolVersionErrorData.model_validate(error.error.data)
        if error.error.code == MISSING_REQUIRED_CLIENT_CAPABILITY:
            MissingRequiredClientCapabilityErrorData.model_validate(error.error.data)


def check(conversation: Conversation) -> None:
    """Raises an AssertionError that names the first message that does not fit."""
    errors = [message for _, message in conversation if "error" in message]
    types = WireTypes({error.get("id") for error in errors if error["error"]["code"] in REFUSALS})
    for sender, message in conversation:
        try:
            types.check(sender, message)
        except (KeyError, ValueError, ValidationError) as exc:
            raise AssertionError(f"from the {sender}: {json.dumps(message)[:1000]}: {exc!r}") from exc


def read_recording(path: Path) -> Conversation:
    records: Iterable[Message] = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [(record["from"], json.loads(record["line"])) for record in records if "from" in record]


def main(folder: str) -> None:
    recordings = [read_recording(path) for path in Path(folder).glob("*.jsonl")]
    if not any(recordings):
        raise SystemExit(f"no messages in {folder}")
    for conversation in recordings:
        check(conversation)


if __name__ == "__main__":
    main(*sys.argv[1:])
