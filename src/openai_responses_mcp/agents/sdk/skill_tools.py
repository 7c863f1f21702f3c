"""Skills as tools of the SDK.

`function_tool`: the call returns the skill's instructions, and a file of the skill when one is asked for by name.
`child_agent`: the call runs the instructions as a child agent, on the model of the calling agent. Both are tools of
kind `skill` to the gate; if the arguments do not fit the skill's schema, the model gets an error and nothing runs.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import asdict
from typing import Any

from agents import (
    Agent,
    FunctionTool,
    Model,
    ModelResponse,
    ModelRetryAdvice,
    ModelRetryAdviceRequest,
    MultiProvider,
)
from agents.items import TResponseStreamEvent
from agents.tool_context import ToolContext

from openai_responses_mcp.adapters.policy_file import LinearPatterns
from openai_responses_mcp.agents.sdk.tool_traits import ToolTraits, parsed, with_traits
from openai_responses_mcp.agents.skills.manifests import (
    DEFAULT_INPUT_SCHEMA,
    LONGEST_DESCRIPTION,
    LoadedSkill,
    SkillManifest,
    SkillSummary,
    summary_of,
)
from openai_responses_mcp.agents.skills.parsing import tool_name_for
from openai_responses_mcp.agents.skills.registry import read_skill_file
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue
from openai_responses_mcp.gate.schema.checking import SchemaChecker
from openai_responses_mcp.gate.schema.documents import problem_in

Invoke = Callable[[ToolContext[Any], str], Awaitable[str]]

FILE_ARGUMENT = "skill_file"
LIST_TOOL, DESCRIBE_TOOL = "skill_list", "skill_describe"

_callers_model: ContextVar[Model] = ContextVar("callers_model")
_SCHEMAS = SchemaChecker(LinearPatterns())


def skill_tool(skill: LoadedSkill) -> FunctionTool:
    schema = skill.descriptor.input_schema
    problem = problem_in(schema)
    if problem:
        raise AgentsError("AGENTS-E-SKILL-SCHEMA", problem)
    if FILE_ARGUMENT in _properties(schema):
        message = f"An argument of a skill may not be called {FILE_ARGUMENT}; give it another name"
        raise AgentsError("AGENTS-E-SKILL-SCHEMA", message)
    make = _child_agent if skill.descriptor.mode == "child_agent" else _instructions
    # Part of the definition: a changed instruction has to be approved again.
    return with_traits(make(skill), ToolTraits(kind="skill", name=skill.descriptor.skill_id, definition=skill.body))


def introspection_tools(summaries: Sequence[SkillSummary], manifests: Sequence[SkillManifest]) -> list[FunctionTool]:
    known = {manifest.skill_id: manifest for manifest in manifests}

    async def list_all(context: ToolContext[Any], arguments: str) -> str:
        return _as_json([asdict(summary) for summary in summaries])

    async def describe(context: ToolContext[Any], arguments: str) -> str:
        args = parsed(arguments)
        manifest = known.get(str(args.get("skill_id")))
        if manifest is None:
            return "AGENTS-E-SKILL-NOT-FOUND: there is no such skill; call skill_list"
        return _as_json(asdict(manifest if args.get("detail_level") == "full" else summary_of(manifest)))

    nothing = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    return [
        _plain_tool(LIST_TOOL, "List the skills there are.", nothing, list_all),
        _plain_tool(DESCRIBE_TOOL, "Tell what a skill is for and what it takes.", _DESCRIBE_SCHEMA, describe),
    ]


def _instructions(skill: LoadedSkill) -> FunctionTool:
    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        args = parsed(arguments)
        if FILE_ARGUMENT in args:
            return _file(skill, args[FILE_ARGUMENT])
        problem = (await _SCHEMAS.check(args, skill.descriptor.input_schema)).problem
        return _refusal(problem) if problem else _with_input(skill, args)

    return FunctionTool(
        name=tool_name_for(skill.descriptor.skill_id),
        description=skill.manifest.overview[:LONGEST_DESCRIPTION],
        params_json_schema=_with_file_argument(skill),
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


def _child_agent(skill: LoadedSkill) -> FunctionTool:
    child = Agent[Any](
        name=skill.name,
        instructions=f"{skill.body}\n\n{_files_line(skill)}".strip(),
        model=_CallersModel(),
        tools=[_file_tool(skill)] if skill.files else [],
    )
    tool = child.as_tool(
        tool_name_for(skill.descriptor.skill_id),
        skill.manifest.overview[:LONGEST_DESCRIPTION],
        failure_error_function=None,
    )
    run_child = tool.on_invoke_tool

    async def invoke(context: ToolContext[Any], arguments: str) -> object:
        args = parsed(arguments)
        problem = (await _SCHEMAS.check(args, skill.descriptor.input_schema)).problem
        if problem:
            return _refusal(problem)
        before = _callers_model.set(_model_behind(context))
        try:
            return await run_child(context, json.dumps({"input": _as_input(args)}))
        finally:
            _callers_model.reset(before)

    tool.params_json_schema = dict(skill.descriptor.input_schema)
    tool.strict_json_schema = False
    tool.on_invoke_tool = invoke
    return tool


def _file_tool(skill: LoadedSkill) -> FunctionTool:
    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        return _file(skill, parsed(arguments).get(FILE_ARGUMENT))

    schema = {
        "type": "object",
        "properties": {FILE_ARGUMENT: _file_property(skill)},
        "required": [FILE_ARGUMENT],
        "additionalProperties": False,
    }
    return _plain_tool("read_skill_file", "Read a file that belongs to these instructions.", schema, invoke)


def _file(skill: LoadedSkill, name: JsonValue) -> str:
    try:
        return read_skill_file(skill.source_path, str(name))
    except AgentsError as exc:
        return str(exc)


class _CallersModel(Model):
    """The model of the agent that called the skill."""

    async def get_response(self, *args: Any, **options: Any) -> ModelResponse:
        return await _callers_model.get().get_response(*args, **options)

    def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[TResponseStreamEvent]:
        return _callers_model.get().stream_response(*args, **options)

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        return _callers_model.get().get_retry_advice(request)


_DESCRIBE_SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {
        "skill_id": {"type": "string", "description": "An id from skill_list."},
        "detail_level": {"type": "string", "enum": ["summary", "full"]},
    },
    "required": ["skill_id"],
    "additionalProperties": False,
}


def _plain_tool(name: str, description: str, schema: dict[str, JsonValue], invoke: Invoke) -> FunctionTool:
    """Only reads what was loaded, so it has the lowest risk."""
    tool = FunctionTool(name, description, schema, invoke, strict_json_schema=False)
    return with_traits(tool, ToolTraits(kind="function", risk_level=1))


def _with_input(skill: LoadedSkill, args: JsonObject) -> str:
    parts = [f"# Skill: {skill.name}", skill.body, _files_line(skill), f"Input:\n{_as_input(args)}"]
    return "\n\n".join(part for part in parts if part)


def _files_line(skill: LoadedSkill) -> str:
    return f"Files of this skill, read with {FILE_ARGUMENT}: {', '.join(skill.files)}" if skill.files else ""


def _with_file_argument(skill: LoadedSkill) -> dict[str, JsonValue]:
    schema = dict(skill.descriptor.input_schema)
    if skill.files:
        schema["properties"] = {**_properties(schema), FILE_ARGUMENT: _file_property(skill)}
    return schema


def _properties(schema: JsonObject) -> JsonObject:
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def _file_property(skill: LoadedSkill) -> dict[str, JsonValue]:
    description = "Instead of the instructions, read this file of the skill."
    return {"type": "string", "description": description, "enum": list(skill.files)}


def _as_input(args: JsonObject) -> str:
    is_plain = set(args) == set(_properties(DEFAULT_INPUT_SCHEMA)) and isinstance(args["input"], str)
    return str(args["input"]) if is_plain else _as_json(args)


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _refusal(problem: str) -> str:
    return f"The skill was not used, because its input does not fit: {problem}"


def _model_behind(context: ToolContext[Any]) -> Model:
    config, agent = context.run_config, context.agent
    model = (config.model if config else None) or getattr(agent, "model", None)
    if isinstance(model, Model):
        return model
    return (config.model_provider if config else MultiProvider()).get_model(model)
