"""Plays the model for coding clients: asks for one call of the tool `answer`, then repeats what came back.

Three APIs, as streams: Anthropic's Messages (Claude Code), OpenAI's Responses (Codex), Gemini's streamGenerateContent.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Message = dict[str, Any]
QUESTION = {"query": "What does HTTP 404 mean?"}
MARK = "This is a rehearsal answer"


def tool_in(value: Any) -> Message | None:
    """The declaration of the tool, wherever the request lists it; `namespace` is the list that it stands in, if named."""
    if isinstance(value, dict):
        name = value.get("name")
        if (
            isinstance(name, str)
            and name.endswith("answer")
            and {"input_schema", "parameters", "parametersJsonSchema"} & {*value}
        ):
            return {"name": name}
        found = next(filter(None, map(tool_in, value.values())), None)
        return {"namespace": name, **found} if found and isinstance(name, str) else found
    return next(filter(None, map(tool_in, value)), None) if isinstance(value, list) else None


def anthropic(asked: Message) -> Iterator[Message]:
    tool = tool_in(asked.get("tools"))
    begun = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked["model"], "content": []}
    usage = {"input_tokens": 1, "output_tokens": 1}
    yield {"type": "message_start", "message": {**begun, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    if tool is not None and MARK not in json.dumps(asked["messages"][1:]):
        block: Message = {"type": "tool_use", "id": "toolu_1", "name": tool["name"], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(QUESTION)}
        reason = "tool_use"
    else:
        block, delta, reason = {"type": "text", "text": ""}, {"type": "text_delta", "text": said(asked)}, "end_turn"
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}


def openai(asked: Message) -> Iterator[Message]:
    tool = tool_in(asked.get("tools"))
    if tool is not None and not any(one.get("type") == "function_call_output" for one in asked["input"]):
        item: Message = {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            **tool,
            "arguments": json.dumps(QUESTION),
        }
    else:
        text = {"type": "output_text", "text": said(asked), "annotations": []}
        item = {"type": "message", "id": "msg_1", "role": "assistant", "content": [text]}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    yield {"type": "response.created", "response": {"id": "resp_1"}}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": {"id": "resp_1", "output": [item], "usage": usage}}


def gemini(asked: Message) -> Iterator[Message]:
    tool = tool_in(asked.get("tools"))
    if tool is not None and "functionResponse" not in json.dumps(asked["contents"]):
        part: Message = {"functionCall": {"name": tool["name"], "args": QUESTION}}
    else:
        part = {"text": said(asked)}
    content = {"role": "model", "parts": [part]}
    yield {
        "candidates": [{"index": 0, "content": content, "finishReason": "STOP"}],
        "usageMetadata": {"totalTokenCount": 2},
    }


def said(asked: Message) -> str:
    """Proof that the tool's answer has reached the model."""
    return (
        "The tool has answered."
        if MARK in json.dumps([asked.get(name) for name in ("messages", "input", "contents")])
        else "ok"
    )


def event(content: Message) -> str:
    # Events of Gemini have no kind, and its client takes none.
    kind = f"event: {content['type']}\n" if "type" in content else ""
    return f"{kind}data: {json.dumps(content)}\n\n"


APIS = {"/messages": anthropic, "/responses": openai, ":streamGenerateContent": gemini}


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.partition("?")[0]
        api = next((found for end, found in APIS.items() if path.endswith(end)), None)
        if api is None:
            self.answer(200, "application/json", json.dumps({"totalTokens": 1, "input_tokens": 1}))
            return
        self.answer(200, "text/event-stream", "".join(map(event, api(asked))))

    def do_GET(self) -> None:
        self.answer(404, "application/json", "{}")

    do_HEAD = do_GET

    def answer(self, status: int, kind: str, text: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *arguments: Any) -> None: ...


@contextmanager
def model() -> Iterator[str]:
    """Its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
