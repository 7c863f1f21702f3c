"""The API that every server is measured against: one process on loopback, the same bytes for everybody.

Unlike the rehearsal it reads nothing of a request but `[rehearse: delay=0.5]` and `[rehearse: size=100000]`, and its
answers are made once, so that a server is charged neither for what it asks nor for what the stand-in thinks about it.
Started as a module it writes its base URL as one line and ends with its stdin.
"""

import asyncio
import os
import re
import sys
from functools import cache

from openai_responses_mcp.rehearsal.answers import Situation
from openai_responses_mcp.rehearsal.response_objects import build_response
from openai_responses_mcp.rehearsal.stream_events import encode_json
from tests.stand_in.http_server import HttpServer
from tests.stand_in.http_wire import RecordedRequest, Reply
from tests.stand_in.markers import Directives
from tests.stand_in.odd_answers import write_odd_answer
from tests.stand_in.replies import JSON_HEADERS

QUESTION = "What is new in Python?"
SIGN = b"rehearsal answer"  # in every answer: a reply without it is an error, whatever its shape

_DELAY = re.compile(rb"delay=([0-9.]+)")
_SIZE = re.compile(rb"size=([0-9]+)")


def question(*, delay_seconds: float = 0.0, size_bytes: int = 0) -> str:
    marks = [f"delay={delay_seconds}"] * bool(delay_seconds) + [f"size={size_bytes}"] * bool(size_bytes)
    return f"{QUESTION} [rehearse: {'; '.join(marks)}]" if marks else QUESTION


async def answer(request: RecordedRequest) -> Reply:
    delay, size = _DELAY.search(request.body), _SIZE.search(request.body)
    if delay:
        await asyncio.sleep(float(delay[1]))
    return Reply(headers=JSON_HEADERS, body=_answer_bytes(int(size[1]) if size else None))


@cache
def _answer_bytes(size: int | None) -> bytes:
    answer = write_odd_answer(Situation(QUESTION, is_searching=True), Directives(size=size), [], [])
    return encode_json(build_response({"model": "o3"}, answer, QUESTION))


async def main() -> None:
    server = HttpServer(answer)
    sys.stdout.write(await server.start() + "\n")
    sys.stdout.flush()
    await asyncio.to_thread(os.read, 0, 1)
    await server.close()


if __name__ == "__main__":
    asyncio.run(main())
