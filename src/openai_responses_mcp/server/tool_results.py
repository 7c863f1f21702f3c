"""The result of a call as the client gets it: an answer in the shape of its tool, or a failure."""

import json
from collections.abc import Callable

from openai_responses_mcp.domain.errors import AnsweringError, GatewayError, InvalidArguments, StillRunning
from openai_responses_mcp.domain.jsonrpc import JsonObject, RequestId
from openai_responses_mcp.domain.models import Answer, Citation
from openai_responses_mcp.domain.ports import Logger
from openai_responses_mcp.server.jsonrpc import ANSWER_FAILED, error_message
from openai_responses_mcp.server.tools import RESULT_TOOL, Tool

_USAGE = "openai-responses-mcp/usage"
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
    # The kind of date is given here only: the keys in the text are fixed.
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
    """For an answer that is not finished: how to get it later."""
    fields: JsonObject = {"answer": f"Still working. Call {RESULT_TOOL} with response_id {response_id} in a minute."}
    if tool.name == "iris":
        text = fields["answer"]
    else:
        fields |= {"used_search": False, "citations": []}
        text = _ENCODER.encode(fields)
    return {
        "content": [_text_block(text)],
        "structuredContent": {**fields, "status": "working", "response_id": response_id},
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


def tokens_in(result: JsonObject) -> int:
    """The tokens that a tool result reports; 0 if it reports none."""
    usage = result.get("_meta", {}).get(_USAGE)
    return usage["total_tokens"] if usage else 0


def _meta(answer: Answer) -> JsonObject:
    meta: JsonObject = {"openai-responses-mcp/searches": answer.search_count}
    if answer.usage is not None:
        meta[_USAGE] = {
            "input_tokens": answer.usage.input_tokens,
            "output_tokens": answer.usage.output_tokens,
            "total_tokens": answer.usage.total_tokens,
        }
    if answer.left_out:
        meta["openai-responses-mcp/left_out"] = list(answer.left_out)
    return meta


LONGEST_FAILURE_MESSAGE = 400
_LONGEST_MASKED = 4_000


class Failures:
    """`may_fetch`: the client has the tool that fetches an answer. If not, the message names the command for it."""

    def __init__(self, logger: Logger, mask: Callable[[str], str]) -> None:
        self._logger = logger
        self._mask = mask

    def message(self, error: AnsweringError, *, may_fetch: bool = False) -> str:
        words = str(error)
        if may_fetch and isinstance(error, StillRunning):
            later = f"Call {RESULT_TOOL} with response_id {error.response_id} in a minute."
            words = f"{error.reason} The research goes on at the API. {later}"
        # Masked before it is cut, so that no half of a key is left. Only the beginning: masking takes time.
        return self._mask(words[:_LONGEST_MASKED])[:LONGEST_FAILURE_MESSAGE]

    def as_result(self, tool: Tool, error: AnsweringError, *, may_fetch: bool = False) -> JsonObject:
        return failed_tool_result(f"{_title(tool, error)}: {self.message(error, may_fetch=may_fetch)}")

    def as_error(self, request_id: RequestId, tool: Tool, error: AnsweringError, *, may_fetch: bool) -> JsonObject:
        is_ours = isinstance(error, InvalidArguments)
        data = {"reason": self.message(error)} if is_ours else self.data(error, may_fetch=may_fetch)
        return error_message(request_id, ANSWER_FAILED, _title(tool, error), data)

    def data(self, error: AnsweringError, *, may_fetch: bool = False) -> JsonObject:
        data: JsonObject = {"message": self.message(error, may_fetch=may_fetch)}
        facts: JsonObject = {"name": type(error).__name__}
        if isinstance(error, GatewayError):
            facts = {"status": error.status or error.code, "type": error.kind, "name": error.name}
            data |= {"retries": error.retries} if error.retries else {}
        if self._logger.is_debugging:
            for name, fact in facts.items():
                if fact is not None:
                    data[name] = self._mask(fact) if isinstance(fact, str) else fact
        return data


def _title(tool: Tool, error: AnsweringError) -> str:
    return f"{tool.name}: invalid arguments" if isinstance(error, InvalidArguments) else "answer failed"
