"""Edges that mutants showed: each test here fails for a change of the code that no other test had noticed."""

import pytest

from openai_responses_mcp.adapters.stdio.framing import StdioFramer
from openai_responses_mcp.domain import jsonrpc as messages
from openai_responses_mcp.domain.ports import FramingFault
from openai_responses_mcp.server import jsonrpc
from tests.server.wired import Wired, request


@pytest.mark.parametrize(
    ("code", "number"),
    [
        (messages.PARSE_ERROR, -32700),
        (messages.INVALID_REQUEST, -32600),
        (messages.METHOD_NOT_FOUND, -32601),
        (messages.INVALID_PARAMS, -32602),
        (messages.INTERNAL_ERROR, -32603),
        (jsonrpc.ANSWER_FAILED, -32001),
        (jsonrpc.UNSUPPORTED_PROTOCOL_VERSION, -32022),
    ],
)
def test_the_codes_are_those_that_clients_know(code: int, number: int) -> None:
    assert code == number


@pytest.mark.parametrize(
    ("body", "reason"),
    [(b"[" * 100_000, "Parse error: nesting too deep"), (b'{"a": NaN}', "Parse error: NaN is not JSON")],
    ids=["nesting", "NaN"],
)
def test_what_is_no_json_is_told_in_words(body: bytes, reason: str) -> None:
    assert jsonrpc.decode(body) == messages.BadMessage(-32700, reason)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_what_json_cannot_say_is_never_sent(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        jsonrpc.encode({"result": number})


LIMIT = 64
PING = b'{"id":1}'
GOOD = b"Content-Length: 8\r\n\r\n" + PING
LONG_BLOCK = FramingFault("the header block is longer than 8192 bytes or 32 lines")


def outcomes_of(wire: bytes, *, ends: bool = False) -> list[bytes | FramingFault]:
    framer = StdioFramer(LIMIT)
    framer.receive(wire)
    if ends:
        framer.receive_end()
    return list(iter(framer.next_message, None))


def test_a_header_that_the_end_cuts_off_is_too_long_only_beyond_the_limit() -> None:
    assert outcomes_of(b"A: " + b"x" * (8192 - 3), ends=True) == []
    assert outcomes_of(b"A: " + b"x" * (8192 - 2), ends=True) == [LONG_BLOCK]


def test_a_line_is_too_long_as_soon_as_no_line_end_could_make_it_fit() -> None:
    assert outcomes_of(b"{" * (LIMIT + 1)) == []
    assert outcomes_of(b"{" * (LIMIT + 2)) == [FramingFault("the line is longer than 64 bytes")]


@pytest.mark.parametrize("length", [b"8X", b"X8", b"8:", b"8\t8"])
def test_nothing_but_blanks_may_stand_around_a_length(length: bytes) -> None:
    [fault, message] = outcomes_of(b"Content-Length: " + length + b"\r\n\r\n" + PING + b"\n")
    assert fault == FramingFault("Content-Length must be 1 to 12 digits")
    assert message == PING


@pytest.mark.parametrize("line", [b"[1, 2]", b"{}", b"[]"])
def test_a_whole_line_is_found_again_after_a_bad_header(line: bytes) -> None:
    assert outcomes_of(b"Content-Length: x\n\n" + line + b"\n")[1:] == [line]


@pytest.mark.parametrize("glue", [b"{", b'"', b"{}"])
def test_a_header_glued_to_the_first_letter_of_a_lost_body_is_found(glue: bytes) -> None:
    assert outcomes_of(b"A: 1\n\n" + glue + GOOD)[1:] == [PING]


@pytest.mark.parametrize(
    ("method", "params", "error"),
    [
        ("no/such/method", {}, {"code": -32601, "message": "Unknown method"}),
        ("tools/call", {"name": "no_such_tool"}, {"code": -32601, "message": "Unknown tool"}),
    ],
)
async def test_what_is_unknown_is_told_in_the_words_of_the_specification(
    method: str, params: dict[str, str], error: dict[str, object]
) -> None:
    assert (await Wired().reply_to(request(1, method, params)))["error"] == error
