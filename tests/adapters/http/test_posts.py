import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses_mcp.adapters.http.posts import Refusal, read_post

REVISION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
META = {REVISION: "2026-07-28", CAPABILITIES: {}}
NEW = [("mcp-protocol-version", "2026-07-28")]


def body(method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


@pytest.mark.parametrize("name", ["mcp-protocol-version", "mcp-method", "mcp-name"])
def test_a_routing_header_that_comes_twice_is_refused(name: str) -> None:
    headers = [*NEW, ("mcp-method", "tools/call"), ("mcp-name", "answer")]
    again = next(pair for pair in headers if pair[0] == name)
    refusal = read_post([*headers, again], body("tools/call", name="answer", _meta=META))
    assert isinstance(refusal, Refusal)
    assert (refusal.status, refusal.code, json.loads(refusal.body)["id"]) == (400, -32020, 1)


@given(
    headers=st.lists(st.tuples(st.sampled_from(["mcp-protocol-version", "mcp-method", "mcp-name", "x"]), st.text())),
    content=st.binary()
    | st.recursive(st.none() | st.text(), lambda x: st.dictionaries(st.text(), x)).map(
        lambda value: json.dumps(value).encode()
    ),
)
def test_any_headers_and_content_are_a_post_or_a_400(headers: list[tuple[str, str]], content: bytes) -> None:
    found = read_post(headers, content)
    if isinstance(found, Refusal):
        assert found.status == 400
        json.loads(found.body)
