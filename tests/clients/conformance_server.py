"""A server with what the official conformance suite looks for, on stdin and stdout, in both eras. The standard library alone."""

import json
import sys
import threading
from typing import Any

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
REVISION_KEY = "io.modelcontextprotocol/protocolVersion"
FORM = {"type": "object", "properties": {"username": {"type": "string"}, "email": {"type": "string"}}}

_writing = threading.Lock()
_answers: dict[str, Any] = {}
_answered = threading.Condition()


def send(**message: Any) -> None:
    with _writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def ask(number: str, method: str, params: dict[str, Any]) -> Any:
    """A request to the client, and what it answers."""
    send(id=number, method=method, params=params)
    with _answered:
        _answered.wait_for(lambda: number in _answers, timeout=30)
        return _answers.pop(number, {})


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def image() -> dict[str, Any]:
    return {"type": "image", "data": PIXEL, "mimeType": "image/png"}


def resource(uri: str, said: str = "This is an embedded resource content.") -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": "text/plain", "text": said}}


CONTENTS: dict[str, list[dict[str, Any]]] = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [image()],
    "test_audio_content": [{"type": "audio", "data": SOUND, "mimeType": "audio/wav"}],
    "test_embedded_resource": [resource("test://embedded-resource")],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        image(),
        resource("test://mixed-content-resource", '{"test":"data","value":123}'),
    ],
}
TALKING = (
    "test_tool_with_logging",
    "test_tool_with_progress",
    "test_sampling",
    "test_elicitation",
    "test_error_handling",
)
ASKING = ("test_input_required_result_elicitation", "test_input_required_result_request_state")
SCHEMAS: dict[str, dict[str, Any]] = {
    "json_schema_2020_12_tool": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}
        },
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
        "additionalProperties": False,
    },
    "test_headers": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
    "test_sampling": {"type": "object", "properties": {"prompt": {"type": "string"}}},
    "test_elicitation": {"type": "object", "properties": {"message": {"type": "string"}}},
}
PROMPTS = (
    "test_simple_prompt",
    "test_prompt_with_arguments",
    "test_prompt_with_embedded_resource",
    "test_prompt_with_image",
)
RESOURCES: dict[str, dict[str, Any]] = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PIXEL},
    "test://watched-resource": {"mimeType": "text/plain", "text": "watched"},
}


def tools() -> list[dict[str, Any]]:
    names = (*CONTENTS, *TALKING, *ASKING, "json_schema_2020_12_tool", "test_headers")
    return [{"name": name, "description": name, "inputSchema": SCHEMAS.get(name, {"type": "object"})} for name in names]


def called(params: dict[str, Any], is_modern: bool) -> dict[str, Any]:
    name, args = params["name"], params.get("arguments") or {}
    if name in CONTENTS:
        return {"content": CONTENTS[name]}
    if name == "test_error_handling":
        return {"content": [text("This tool intentionally returns an error for testing")], "isError": True}
    if name == "test_tool_with_logging":
        for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            send(method="notifications/message", params={"level": "info", "data": said})
    if name == "test_tool_with_progress":
        token = (params.get("_meta") or {}).get("progressToken")
        for done in (0, 50, 100):
            send(method="notifications/progress", params={"progressToken": token, "progress": done, "total": 100})
    if name in ("test_sampling", "test_elicitation") and not is_modern:
        return asked_aside(name, args)
    if name in ASKING:
        return asked_in_the_reply(params)
    if name not in {tool["name"] for tool in tools()}:
        raise KeyError(name)
    return {"content": [text(f"{name} is done")]}


def asked_aside(name: str, args: dict[str, Any]) -> dict[str, Any]:
    if name == "test_sampling":
        said = {"messages": [{"role": "user", "content": text(args.get("prompt", ""))}], "maxTokens": 100}
        return {"content": [text(f"LLM response: {json.dumps(ask('s-1', 'sampling/createMessage', said))}")]}
    form = {"message": args.get("message", ""), "requestedSchema": FORM}
    return {"content": [text(f"User response: {json.dumps(ask('e-1', 'elicitation/create', form))}")]}


def asked_in_the_reply(params: dict[str, Any]) -> dict[str, Any]:
    if params.get("inputResponses"):
        return {"content": [text(f"state-ok Hello {json.dumps(params['inputResponses'])}")]}
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    form = {"mode": "form", "message": "What is your name?", "requestedSchema": schema}
    asked = {"user_name": {"method": "elicitation/create", "params": form}}
    return {"resultType": "input_required", "inputRequests": asked, "requestState": "opaque"}


def prompt(params: dict[str, Any]) -> dict[str, Any]:
    name, args = params["name"], params.get("arguments") or {}
    content = text("This is a simple prompt for testing.")
    if name == "test_prompt_with_arguments":
        content = text(f"Prompt with arguments: arg1='{args.get('arg1')}', arg2='{args.get('arg2')}'")
    elif name == "test_prompt_with_embedded_resource":
        content = resource(args.get("resourceUri", "test://example-resource"), "Embedded resource content for testing.")
    elif name == "test_prompt_with_image":
        content = image()
    return {"messages": [{"role": "user", "content": content}]}


def described_prompts() -> list[dict[str, Any]]:
    needed = {"test_prompt_with_arguments": ("arg1", "arg2"), "test_prompt_with_embedded_resource": ("resourceUri",)}
    return [
        {
            "name": name,
            "description": name,
            "arguments": [{"name": one, "description": one, "required": True} for one in needed.get(name, ())],
        }
        for name in PROMPTS
    ]


def read(uri: str) -> dict[str, Any]:
    if uri.startswith("test://template/"):
        number = uri.split("/")[3]
        data = json.dumps({"id": number, "templateTest": True, "data": f"Data for ID: {number}"})
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": data}]}
    return {"contents": [{"uri": uri, **RESOURCES[uri]}]}


def result_for(request: dict[str, Any], is_modern: bool) -> dict[str, Any]:
    params = request.get("params") or {}
    template = {"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"}
    capabilities = {"tools": {}, "logging": {}, "completions": {}, "prompts": {}, "resources": {"subscribe": True}}
    about = {"capabilities": capabilities, "serverInfo": {"name": "conformance", "version": "1"}}
    plain: dict[str, Any] = {
        "initialize": {"protocolVersion": params.get("protocolVersion"), **about},
        "server/discover": {"supportedVersions": ["2026-07-28"], **about},
        "tools/list": {"tools": tools()},
        "resources/list": {"resources": [{"uri": uri, "name": uri} for uri in RESOURCES]},
        "resources/templates/list": {"resourceTemplates": [template]},
        "prompts/list": {"prompts": described_prompts()},
        "completion/complete": {"completion": {"values": ["paris", "park"], "total": 2, "hasMore": False}},
    }
    empty: dict[str, Any] = {"ping": {}, "logging/setLevel": {}, "resources/subscribe": {}, "resources/unsubscribe": {}}
    found = {**empty, **plain}
    if request["method"] in found:
        return dict(found[request["method"]])
    if request["method"] == "tools/call":
        return called(params, is_modern)
    return prompt(params) if request["method"] == "prompts/get" else read(params["uri"])


def serve(request: dict[str, Any]) -> None:
    is_modern = REVISION_KEY in ((request.get("params") or {}).get("_meta") or {})
    try:
        result = result_for(request, is_modern)
    except KeyError as exc:
        code, message = (-32602, f"not found: {exc}") if "/" in request["method"] else (-32601, "no such method")
        send(id=request["id"], error={"code": code, "message": message, "data": {"uri": str(exc)}})
        return
    stamp = {"resultType": "complete", "ttlMs": 1000, "cacheScope": "private"} if is_modern else {}
    send(id=request["id"], result={**stamp, **result})


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            with _answered:
                _answers[message["id"]] = message.get("result")
                _answered.notify_all()
        elif "id" in message:
            threading.Thread(target=serve, args=(message,), daemon=True).start()


if __name__ == "__main__":
    main()
