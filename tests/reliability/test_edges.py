"""Edges that mutants showed: each test here fails for a change of the code that no other test had noticed."""

import base64
import json

import pytest

from openai_responses_mcp.adapters.stdio.framing import StdioFramer
from openai_responses_mcp.domain import jsonrpc as messages
from openai_responses_mcp.domain.citations import with_sources
from openai_responses_mcp.domain.masking import MASK, SecretMask, secrets_in
from openai_responses_mcp.domain.models import Citation
from openai_responses_mcp.domain.ports import FramingFault
from openai_responses_mcp.server import jsonrpc
from tests.server.wired import Wired, request

TODAY = "2026-11-16"
CITED = [Citation("https://a.example", "2026-01-02")]


@pytest.mark.parametrize("name", ["MY_CREDENTIAL", "MY_CREDENTIALS", "a_passwd", "Some_Token", "THE_SECRET_ONE"])
def test_a_variable_that_is_named_like_a_secret_is_one(name: str) -> None:
    assert secrets_in({name: "0123456789"}, key_variable="K", base_url="") == ["0123456789"]


@pytest.mark.parametrize("name", ["SERVICE_URL", "DATABASE_URL", "https_proxy"])
def test_the_password_in_an_address_is_a_secret(name: str) -> None:
    found = secrets_in({name: "https://me:p%40ssword1@host"}, key_variable="K", base_url="")
    assert found == ["p%40ssword1", "p@ssword1"]


@pytest.mark.parametrize("is_ascii", [True, False])
def test_a_secret_written_as_json_is_masked_from_its_first_to_its_last_letter(is_ascii: bool) -> None:
    secret = 'pässwort"0123456789ü'
    assert SecretMask([secret])(json.dumps(secret, ensure_ascii=is_ascii)) == f'"{MASK}"'


@pytest.mark.parametrize("secret", ["it's\x01of-0123456789'", 'the"\x01of-0123456789"', "both'\"\x01of-0123456789'\""])
def test_a_secret_written_by_repr_is_masked_from_its_first_to_its_last_letter(secret: str) -> None:
    assert SecretMask([secret])(repr(secret))[1:-1] == MASK


def test_a_secret_that_has_no_utf_8_is_no_reason_to_fail() -> None:
    assert SecretMask(["key\udcff-0123456789"])("a key\udcff-0123456789 here") == f"a {MASK} here"


@pytest.mark.parametrize("before", [b"", b"u", b"me"])
@pytest.mark.parametrize("after", [b"", b"!", b"!!"])
def test_hardly_a_letter_of_a_secret_in_base64_stays(before: bytes, after: bytes) -> None:
    secret = "planted-0123456789-abcdefgh"
    encoded = base64.b64encode(before + secret.encode() + after).decode()
    masked = SecretMask([secret])(encoded)
    # What stays belongs to the neighbours as well, and what it holds of the secret is at most one letter on each side.
    assert MASK in masked
    assert len(encoded) - len(masked) + len(MASK) >= len(secret) * 8 // 6 - 1


def test_words_after_a_heading_without_items_are_kept() -> None:
    text = with_sources("The answer.\nSources:\nsee above\nand below", CITED, today=TODAY)
    assert text == "The answer.\nsee above\nand below\n\nSources:\n- https://a.example (2026-01-02)"


def test_an_answer_keeps_its_first_letter() -> None:
    assert with_sources("X is a letter.", CITED, today=TODAY).startswith("X is a letter.\n\nSources:\n")


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
