"""Holds messages against the published shapes of the tasks extension, which mcp-types does not have."""

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

SCHEMA = json.loads((Path(__file__).parent / "task_schema.json").read_text("utf-8"))

REQUESTS = {"tasks/get": "task_request", "tasks/cancel": "task_request", "tasks/update": "update_request"}
RESULTS = {"tools/call": "created", "tasks/get": "get", "tasks/cancel": "empty", "tasks/update": "empty"}


def _validate(name: str, value: Any) -> None:
    Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]}).validate(value)


def validate_task_request(method: str, params: Any) -> None:
    """Raises `jsonschema.ValidationError`."""
    _validate(REQUESTS[method], params)


def validate_task_result(method: str, result: Any) -> None:
    """Raises `jsonschema.ValidationError`. For `tools/call`: a result that is a task."""
    _validate(RESULTS[method], result)
