"""Replies in the form that the API gives them."""

from dataclasses import replace
from typing import Any

from openai_responses_mcp.rehearsal.wire import ApiError, encode_json
from tests.stand_in.http_wire import Reply

JSON_HEADERS = {"content-type": "application/json"}


def json_reply(value: Any) -> Reply:
    return Reply(headers=JSON_HEADERS, body=encode_json(value))


def error_reply(error: ApiError) -> Reply:
    return Reply(error.status, JSON_HEADERS, encode_json(error.body()))


def with_header(reply: Reply, name: str, value: str) -> Reply:
    return replace(reply, headers={**reply.headers, name: value})
