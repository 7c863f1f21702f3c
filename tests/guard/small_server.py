"""A small MCP server on stdin and stdout that speaks both eras, remembers what reached it, and misbehaves when asked to.

    python small_server.py [FILE]

Every message that arrives is appended to FILE, so that a test sees what the guard has let through. Tools are called by
what they do; `hang` never answers, `die` ends the process, and so on.
"""

import base64
import json
import os
import subprocess
import sys
import threading
from typing import Any

SEEN = sys.argv[1] if len(sys.argv) > 1 else os.devnull
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
NAMES = ("echo", "fail", "write_note", "hang", "die", "flood", "spawn", "raw", "long")

_writing = threading.Lock()


def send_line(line: str) -> None:
    with _writing:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def send(message: dict[str, Any]) -> None:
    send_line(json.dumps({"jsonrpc": "2.0", **message}))


def result(text: str, *, is_error: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def entries() -> list[dict[str, Any]]:
    return [{"name": name, "description": f"does {name}", "inputSchema": TEXT} for name in NAMES]


def call(request: dict[str, Any]) -> None:
    params, number = request["params"], request["id"]
    name, args = params["name"], params.get("arguments") or {}
    reply = {"id": number, "result": result(json.dumps({"got": args}))}
    if name == "fail":
        send({"id": number, "result": result("it went wrong", is_error=True)})
    elif name == "die":
        os._exit(int(args.get("text", "3")))
    elif name == "spawn":
        child = subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        send({"id": number, "result": result(str(child.pid))})
    elif name == "flood":
        for place in range(2000):
            send({"method": "notifications/message", "params": {"level": "info", "data": f"{place} " + "x" * 500}})
            sys.stderr.write("\x1b[31m" + "noise " * 50 + "\n")
        send(reply)
    elif name == "raw":
        with _writing:
            sys.stdout.buffer.write(base64.b64decode(args["text"]))
            sys.stdout.buffer.flush()
        send(reply)
    elif name == "long":
        send({"id": number, "result": result("x" * int(args["text"]))})
    elif name != "hang":
        send(reply)


def main() -> None:
    seen = open(SEEN, "a", encoding="utf-8")  # noqa: SIM115 -- open until the end
    for line in sys.stdin:
        seen.write(line)
        seen.flush()
        request = json.loads(line)
        method = request.get("method")
        if method == "initialize":
            info = {"name": "small", "version": "1"}
            version = request["params"]["protocolVersion"]
            send(
                {
                    "id": request["id"],
                    "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info},
                }
            )
        elif method == "tools/list":
            send({"id": request["id"], "result": {"tools": entries()}})
        elif method == "tools/call":
            call(request)
        elif method == "environment":
            send({"id": request["id"], "result": {"names": sorted(os.environ)}})
        elif "id" in request and method:
            send({"id": request["id"], "result": {"method": method}})


if __name__ == "__main__":
    main()
