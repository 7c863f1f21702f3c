"""What a client gets for a call: an answer in the shape of the tool that was called, or a failure that a model reads."""

import json

from openai_responses_mcp.domain.models import Answer, Citation
from openai_responses_mcp.server.jsonrpc import JsonObject
from openai_responses_mcp.server.tools import RESULT_TOOL, Tool

_ENCODER = json.JSONEncoder(ensure_ascii=False, check_circular=False)


def tool_result(tool: Tool, answer: Answer, *, shows_response_id: bool = True) -> JsonObject:
    shape = _iris_result if tool.name == "iris" else _answer_result
    return {**shape(answer, shows_response_id), "_meta": _meta(answer)}


def _answer_result(answer: Answer, shows_response_id: bool) -> JsonObject:
    fields = {
        "answer": answer.text,
        "used_search": answer.used_search,
        "citations": [_citation(citation) for citation in answer.citations],
        "model": answer.model,
    }
    content = [_text_block(_ENCODER.encode(fields))]
    if answer.response_id and shows_response_id:
        content.append(_text_block(f"[Response ID: {answer.response_id}]"))
    # Which kind of date it is stands beside it here only: the keys in the text are fixed.
    dated = [{**_citation(citation), "date_kind": citation.date_kind} for citation in answer.citations]
    return {"content": content, "structuredContent": {**fields, "citations": dated, **_response_id(answer)}}


def _iris_result(answer: Answer, shows_response_id: bool) -> JsonObject:
    shows = answer.response_id and shows_response_id
    text = f"{answer.text}\n\n[Response ID: {answer.response_id}]" if shows else answer.text
    return {
        "content": [_text_block(text)],
        "structuredContent": {"answer": answer.text, **_response_id(answer)},
    }


def handed_over(tool: Tool, response_id: str) -> JsonObject:
    """For an answer that is not there yet: how to get it."""
    told: JsonObject = {"answer": f"Still working. Call {RESULT_TOOL} with response_id {response_id} in a minute."}
    if tool.name == "iris":
        text = told["answer"]
    else:
        told |= {"used_search": False, "citations": []}
        text = _ENCODER.encode(told)
    return {
        "content": [_text_block(text)],
        "structuredContent": {**told, "status": "working", "response_id": response_id},
    }


def failed_tool_result(reason: str) -> JsonObject:
    return {"content": [_text_block(reason)], "isError": True}


def _text_block(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _citation(citation: Citation) -> JsonObject:
    title = {} if citation.title is None else {"title": citation.title}
    return {"url": citation.url, **title, "published_at": citation.published_at}


def _response_id(answer: Answer) -> JsonObject:
    return {"response_id": answer.response_id} if answer.response_id else {}


def _meta(answer: Answer) -> JsonObject:
    meta: JsonObject = {"openai-responses-mcp/searches": answer.search_count}
    if answer.usage is not None:
        meta["openai-responses-mcp/usage"] = {
            "input_tokens": answer.usage.input_tokens,
            "output_tokens": answer.usage.output_tokens,
            "total_tokens": answer.usage.total_tokens,
        }
    if answer.left_out:
        meta["openai-responses-mcp/left_out"] = list(answer.left_out)
    return meta
