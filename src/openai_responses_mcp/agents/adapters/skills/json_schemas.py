"""JSON Schema on the jsonschema package. References lead nowhere but into the schema itself.

Patterns must be patterns, and are told to the model; they are not tried out here, because one that was made for it
keeps this process busy for ever.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from jsonschema.exceptions import SchemaError, ValidationError  # type: ignore[import-untyped]
from jsonschema.validators import extend  # type: ignore[import-untyped]
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.skills.ports import SchemaChecker

# A schema is sent to the model with every request.
LARGEST_SCHEMA_NODES = 2_000

_NOWHERE: Registry[Any] = Registry()


def _any_will_do(*_: Any) -> None:
    return None


_WithoutPatterns = extend(Draft202012Validator, {"pattern": _any_will_do, "patternProperties": _any_will_do})


class JsonSchemas(SchemaChecker):
    def check(self, schema: Mapping[str, Any]) -> None:
        for number, node in enumerate(_nodes(schema)):
            if number >= LARGEST_SCHEMA_NODES:
                raise AgentsError("AGENTS-E-SKILL-SCHEMA", f"The schema has more than {LARGEST_SCHEMA_NODES} parts")
            if isinstance(node, Mapping) and not _has_patterns_only(node):
                raise AgentsError("AGENTS-E-SKILL-SCHEMA", "The schema has a pattern that is none")
            if isinstance(node, Mapping) and "$ref" in node and not _leads_somewhere(node["$ref"], schema):
                raise AgentsError("AGENTS-E-SKILL-SCHEMA", "The schema refers to something that it does not contain")
        try:
            Draft202012Validator.check_schema(dict(schema))
        except SchemaError as exc:
            raise AgentsError("AGENTS-E-SKILL-SCHEMA", f"No valid JSON Schema: {exc.message}"[:500]) from exc

    def problem_with(self, value: Any, schema: Mapping[str, Any]) -> str | None:
        try:
            _WithoutPatterns(dict(schema), registry=_NOWHERE).validate(value)
        except ValidationError as exc:
            return f"{'.'.join(map(str, exc.absolute_path)) or 'it'}: {exc.message}"[:500]
        except RecursionError:
            return "it: nested too deeply"
        return None


def _has_patterns_only(node: Mapping[str, Any]) -> bool:
    named = node.get("patternProperties", {})
    patterns = [node.get("pattern", ""), *(named if isinstance(named, Mapping) else ())]
    try:
        for pattern in patterns:
            re.compile(pattern if isinstance(pattern, str) else "")
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _leads_somewhere(target: Any, schema: Mapping[str, Any]) -> bool:
    if not isinstance(target, str) or not target.startswith("#"):
        return False
    try:
        _NOWHERE.with_resource("", DRAFT202012.create_resource(dict(schema))).resolver().lookup(target)
    except Unresolvable:
        return False
    return True


def _nodes(value: Any) -> Iterator[Any]:
    waiting = [value]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ())
