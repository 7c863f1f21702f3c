"""How a failure is told: as a result that a model reads, or as an error of JSON-RPC. Masked, and not too long."""

from collections.abc import Callable

from openai_responses_mcp.domain.errors import AnsweringError, GatewayError, InvalidArguments
from openai_responses_mcp.domain.ports import Logger
from openai_responses_mcp.server.jsonrpc import JsonObject, RequestId, code_of, error_message
from openai_responses_mcp.server.tool_results import failed_tool_result
from openai_responses_mcp.server.tools import Tool

LONGEST_FAILURE_MESSAGE = 400
_LONGEST_MASKED = 4_000


class Failures:
    def __init__(self, logger: Logger, mask: Callable[[str], str]) -> None:
        self._logger = logger
        self._mask = mask

    def message(self, error: AnsweringError) -> str:
        # Masked before it is cut, so that no half of a key is left. Not the whole of a long text: masking takes time.
        return self._mask(str(error)[:_LONGEST_MASKED])[:LONGEST_FAILURE_MESSAGE]

    def as_result(self, tool: Tool, error: AnsweringError) -> JsonObject:
        return failed_tool_result(f"{_title(tool, error)}: {self.message(error)}")

    def as_error(self, request_id: RequestId, tool: Tool, error: AnsweringError) -> JsonObject:
        is_ours = isinstance(error, InvalidArguments)
        data = {"reason": self.message(error)} if is_ours else self.data(error)
        return error_message(request_id, code_of(error), _title(tool, error), data)

    def data(self, error: AnsweringError) -> JsonObject:
        data: JsonObject = {"message": self.message(error)}
        if isinstance(error, GatewayError) and error.retries:
            data["retries"] = error.retries
        if self._logger.is_debugging:
            for name, fact in _facts_of(error).items():
                data[name] = self._mask(fact) if isinstance(fact, str) else fact
        return data


def _title(tool: Tool, error: AnsweringError) -> str:
    return f"{tool.name}: invalid arguments" if isinstance(error, InvalidArguments) else "answer failed"


def _facts_of(error: AnsweringError) -> JsonObject:
    if not isinstance(error, GatewayError):
        return {"name": type(error).__name__}
    facts = {"status": error.status or error.code, "type": error.kind, "name": error.name}
    return {name: fact for name, fact in facts.items() if fact is not None}
