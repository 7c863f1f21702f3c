import pytest

from tests.stand_in.http_wire import MAX_BODY_BYTES, MAX_HEAD_BYTES, BadRequest, RequestReader

GET = b"GET /v1/models?limit=1 HTTP/1.1\r\nHost: here\r\n\r\n"
POST = b'POST /v1/responses HTTP/1.1\r\nContent-Length: 7\r\n\r\n{"a":1}'
PROXIED = b"GET http://elsewhere:80/v1/models HTTP/1.1\r\n\r\n"


def read_all(*pieces: bytes) -> list[tuple[str, str, bytes]]:
    reader, found = RequestReader(), []
    for piece in pieces:
        reader.receive(piece)
        while request := reader.maybe_next_request():
            found.append((request.method, request.path, request.body))
    return found


CASES = [
    (GET, [("GET", "/v1/models", b"")]),
    (POST, [("POST", "/v1/responses", b'{"a":1}')]),
    (PROXIED, [("GET", "/v1/models", b"")]),
    (POST + GET, [("POST", "/v1/responses", b'{"a":1}'), ("GET", "/v1/models", b"")]),
    (POST[:-1], []),
]


@pytest.mark.parametrize(("wire", "expected"), CASES)
def test_requests_are_read_whole_and_byte_by_byte(wire: bytes, expected: list[tuple[str, str, bytes]]) -> None:
    assert read_all(wire) == expected
    assert read_all(*(wire[i : i + 1] for i in range(len(wire)))) == expected


@pytest.mark.parametrize(
    ("wire", "status"),
    [
        (b"\x16\x03\x01\x02", 400),
        (b"NONSENSE\r\n\r\n", 400),
        (b"GET / HTTP/1.0\r\n\r\n", 505),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nspace : x\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1), 413),
        (b"POST / HTTP/1.1\r\ncontent-length: " + b"9" * 5000 + b"\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", 411),
        (b"GET / HTTP/1.1\r\nx: " + b"y" * MAX_HEAD_BYTES, 431),
        (b"GET / HTTP/1.1\r\nx: " + b"y" * MAX_HEAD_BYTES + b"\r\n\r\n", 431),
    ],
)
def test_what_is_no_request_is_refused(wire: bytes, status: int) -> None:
    with pytest.raises(BadRequest) as refusal:
        read_all(wire)
    assert refusal.value.status == status
