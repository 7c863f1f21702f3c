import asyncio
import gc
import json
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.stand_in.http_server import HttpServer
from tests.stand_in.http_wire import RecordedRequest, Reply
from tests.stand_in.server import StandIn

GET = b"GET /v1/models/gpt-5 HTTP/1.1\r\nauthorization: Bearer made-up\r\n\r\n"


async def connect(base_url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address = urlsplit(base_url)
    return await asyncio.open_connection(address.hostname, address.port)


async def read_to_end(reader: asyncio.StreamReader) -> bytes:
    return await asyncio.wait_for(reader.read(), 5)


async def test_requests_on_one_connection_are_answered_in_order(base_url: str) -> None:
    reader, writer = await connect(base_url)
    writer.write(GET + GET.replace(b"gpt-5", b"o3") + GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    answer = await read_to_end(reader)
    writer.close()
    assert answer.count(b"HTTP/1.1 200 OK") == 3
    assert answer.index(b'"gpt-5"') < answer.index(b'"o3"') < answer.rindex(b'"gpt-5"')


async def test_a_client_that_sends_far_ahead_is_answered_in_full(base_url: str) -> None:
    reader, writer = await connect(base_url)
    body = json.dumps({"model": "gpt-5", "input": "[rehearse: delay=0.05]" + "x" * 100_000}).encode()
    head = b"POST /v1/responses HTTP/1.1\r\nauthorization: Bearer k\r\ncontent-length: %d\r\n\r\n" % len(body)
    writer.write((head + body) * 4 + GET.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
    answer = await read_to_end(reader)
    writer.close()
    assert answer.count(b"HTTP/1.1 200 OK") == 5


async def test_garbage_gets_an_error_in_the_format_of_the_api(base_url: str) -> None:
    reader, writer = await connect(base_url)
    writer.write(b"\x00\x01 garbage")
    head, _, body = (await read_to_end(reader)).partition(b"\r\n\r\n")
    writer.close()
    assert head.startswith(b"HTTP/1.1 400 Bad Request")
    assert set(json.loads(body)["error"]) == {"message", "type", "param", "code"}


async def test_bytes_after_garbage_are_passed_over(base_url: str, server: StandIn) -> None:
    reader, writer = await connect(base_url)
    writer.write(b"garbage" + GET)
    assert (await read_to_end(reader)).count(b"HTTP/1.1") == 1
    writer.close()
    assert server.received == 0


async def test_a_head_request_gets_no_body(client: httpx2.AsyncClient) -> None:
    reply = await client.head("/models")
    assert (reply.status_code, reply.content) == (405, b"")
    assert (await client.get("/models")).status_code == 200


async def test_a_client_that_leaves_is_noticed_and_counted(server: StandIn, base_url: str) -> None:
    reader, writer = await connect(base_url)
    body = json.dumps({"model": "gpt-5", "input": "[rehearse: delay=60]"}).encode()
    head = b"POST /v1/responses HTTP/1.1\r\nauthorization: Bearer k\r\ncontent-length: %d\r\n\r\n" % len(body)
    writer.write(head + body)
    await server.wait_for_requests()
    assert (server.open_connections, server.aborted) == (1, 0)
    writer.close()
    await server.wait_for_disconnect()
    await server.wait_for_abort()
    assert (server.open_connections, server.aborted) == (0, 1)
    assert await read_to_end(reader) == b""


async def test_an_idle_client_that_leaves_is_no_abort(server: StandIn, base_url: str) -> None:
    _, writer = await connect(base_url)
    await server.wait_until(lambda: server.open_connections == 1)
    writer.close()
    await server.wait_for_disconnect()
    assert server.aborted == 0


async def test_a_wait_in_vain_ends_with_a_timeout(server: StandIn, base_url: str) -> None:
    with pytest.raises(TimeoutError):
        await server.wait_until(lambda: False, timeout_seconds=0.01)
    _, writer = await connect(base_url)
    await server.wait_until(lambda: server.open_connections == 1)
    writer.close()


async def test_closing_the_server_ends_answers_under_way(server: StandIn, client: httpx2.AsyncClient) -> None:
    body = {"model": "gpt-5", "input": "[rehearse: delay=60]"}
    call = asyncio.create_task(client.post("/responses", json=body))
    await server.wait_for_requests()
    await server.close()
    await server.close()
    with pytest.raises(httpx2.RemoteProtocolError):
        await asyncio.wait_for(call, 5)
    assert server.aborted == 0


async def test_a_handler_that_breaks_costs_only_its_connection() -> None:
    problems: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context.get("exception")))

    async def broken(request: RecordedRequest) -> Reply:
        raise ArithmeticError(request.path)

    server = HttpServer(broken)
    reader, writer = await connect(await server.start())
    writer.write(GET)
    assert await read_to_end(reader) == b""
    writer.close()
    await server.close()
    # The loop is told of the problem when the task that nobody awaits is thrown away.
    gc.collect()
    assert [type(problem) for problem in problems] == [ArithmeticError]


async def test_only_the_latest_requests_are_kept() -> None:
    server = StandIn(keep_requests=2)
    base_url = await server.start()
    async with httpx2.AsyncClient(base_url=base_url, trust_env=False) as client:
        for number in range(3):
            await client.post(f"/{number}", json={"number": number}, headers={"X-Number": str(number)})
    await server.close()
    assert [(request.path, request.json["number"], request.headers["x-number"]) for request in server.requests] == [
        ("/v1/1", 1, "1"),
        ("/v1/2", 2, "2"),
    ]


async def test_hundreds_of_requests_in_flight_are_all_answered(server: StandIn, base_url: str) -> None:
    limits = httpx2.Limits(max_connections=200)
    headers = {"authorization": "Bearer made-up"}
    async with httpx2.AsyncClient(limits=limits, headers=headers, timeout=5, trust_env=False) as client:
        body = {"model": "gpt-5", "input": "[rehearse: delay=0.1]"}
        replies = await asyncio.gather(*(client.post(base_url + "/responses", json=body) for _ in range(200)))
    assert {reply.status_code for reply in replies} == {200}
    assert len({reply.json()["id"] for reply in replies}) == 200
