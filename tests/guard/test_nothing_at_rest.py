"""No secret is at rest: planted wherever the guard sees text, then looked for in every file that it has written."""

import base64
import json
import sys
from pathlib import Path
from typing import Any

from tests.guard.conftest import Guarded

JWT = ".".join(
    base64.urlsafe_b64encode(part).rstrip(b"=").decode()
    for part in (b'{"alg":"HS256"}', b'{"sub":"planted"}', b"0123456789 signature")
)
PRIVATE_KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----"
IN_ENVIRONMENT = 'env "planted"\\value 7'
IN_FIELD = "a word that only the schema calls secret"
PASSWORD = "pass-in-url-77"
SHAPES = {
    "sk": "sk-proj-Planted0123456789",
    "github": "ghp_Planted0123456789abcdef",
    "google": "AIzaPlanted0123456789abcdef",
    "slack": "xoxb-1234567890-Planted",
    "aws": "AKIAPLANTED012345678",
    "gitlab": "glpat-Planted0123456789",
    "npm": "npm_Planted0123456789",
    "hugging face": "hf_Planted0123456789",
    "stripe": "sk_live_Planted0123456789",
    "jwt": JWT,
}
TEXTS = [*SHAPES.values(), IN_ENVIRONMENT, f"https://me:{PASSWORD}@example.com/x", PRIVATE_KEY]
# Of a private key only the inside: the frame around it is no secret.
SECRETS = [*SHAPES.values(), IN_ENVIRONMENT, PASSWORD, IN_FIELD, "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"]

# Answers lists and calls with the planted texts, and writes them to stderr before it ends.
SERVER = """
import json, sys
texts = json.loads(sys.argv[1])
changes = 0
def entry(name):
    schema = {"type": "object", "properties": {"password": {"type": "string", "default": texts[0]},
        "texts": {"type": "array", "description": texts[1]}, texts[2]: {"enum": texts, "examples": texts}}}
    return {"name": name, "title": texts[3], "description": " and ".join(texts) + f" ({changes})", "inputSchema": schema,
        "outputSchema": {"type": "object", "description": texts[4]}, "annotations": {"title": texts[5]},
        "_meta": {texts[6]: texts}}
for line in sys.stdin:
    request = json.loads(line)
    method, params = request.get("method"), request.get("params", {})
    if method == "tools/list":
        result = {"tools": [entry(name) for name in ("plain", "failing", "dying")]}
    elif method == "tools/call" and params["name"] == "dying":
        sys.stderr.write(" ".join(texts).replace(chr(10), " ") + chr(10)); sys.stderr.flush(); sys.exit(3)
    elif method == "tools/call":
        changes += 1
        blocks = [{"type": "text", "text": text} for text in texts]
        result = {"content": blocks, "structuredContent": {"texts": texts}, "isError": params["name"] == "failing"}
    else:
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": texts[0]}}
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


def forms(secret: str) -> set[bytes]:
    """As it is, as JSON writes it, and as JSON in JSON."""
    once = json.dumps(secret)[1:-1]
    return {text.encode() for text in (secret, once, json.dumps(once)[1:-1])}


def test_secrets_in_definitions_arguments_results_and_answers_are_in_no_file(guarded: Guarded, tmp_path: Path) -> None:
    guard = guarded(
        server=(sys.executable, "-c", SERVER, json.dumps(TEXTS)),
        MY_API_KEY=IN_ENVIRONMENT,
        policy="version: 1\nrules:\n  - {tools: [small/failing, small/dying], decide: allow}\n",
    )
    guard.initialize(elicitation={})
    guard.result_of("tools/list")
    arguments: dict[str, Any] = {"password": IN_FIELD, "texts": TEXTS}

    def called(name: str, call_id: str, answer: str = "") -> Any:
        params = {"name": name, "arguments": arguments}
        guard.send({"jsonrpc": "2.0", "id": call_id, "method": "tools/call", "params": params})
        if answer:
            guard.answer(guard.question(), answer, comment=" ".join(TEXTS))
        return guard.reply_to(call_id)

    assert called("plain", "a", "deny")["result"]["isError"] is True
    assert called("plain", "b", "allow_tool_for_good")["result"]["isError"] is False
    assert called("failing", "c")["result"]["isError"] is True
    # Its definition has changed with the calls, so what changed is stored with the question.
    guard.result_of("tools/list")
    assert called("plain", "d", "allow_once")["result"]["isError"] is False
    assert "error" in called("dying", "e")
    guard.exit_code()
    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert {"guard.db", "guard.db.head"} <= {path.name for path in files}
    stored = b"\n".join(path.read_bytes() for path in files)
    # The calls themselves are there.
    assert all(word in stored for word in (b"small/plain", b"small/failing", b"characters\xe2\x80\xba"))
    found = [secret for secret in SECRETS if any(form in stored for form in forms(secret))]
    assert found == []
