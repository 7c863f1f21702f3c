"""The question to a person in the client, the answers that count, and calls that come again with an answer.

Anything but a clear yes is a no. Some clients show only the first lines of a question, and only the beginning of each.
So the question is as short as possible, and names the command that shows all of it.
"""

import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Literal, NamedTuple, cast, get_args

from openai_responses_mcp.desk.words import on_one_line
from openai_responses_mcp.domain.ports import Channel
from openai_responses_mcp.domain.texts import Language, columns
from openai_responses_mcp.gate.approvals.models import HumanApprovalRequest
from openai_responses_mcp.gate.calls import PlannedCall, ToolDescription
from openai_responses_mcp.gate.errors import LONGEST_TEXT
from openai_responses_mcp.gate.json_values import digest, sealed, shown_json
from openai_responses_mcp.gate.reasons import shown
from openai_responses_mcp.guard.definitions import Defined
from openai_responses_mcp.guard.gatekeeping import Judgement
from openai_responses_mcp.guard.messages import JsonObject, JsonValue, object_in

FormChoice = Literal[
    "allow_once", "allow_tool_for_session", "allow_tool_for_good", "allow_reads_for_good", "allow_call_for_good", "deny"
]

ANSWERS = frozenset({"inputResponses", "requestState"})

_MOST_REMEMBERED = 10_000
_MOST_CONTINUED = 1_000
_CHARACTERS_OF_AN_ID = 4
_SHORT_COLUMNS = 74  # in a terminal of 80, with a margin

_TITLES: Mapping[Language, Mapping[FormChoice, str]] = {
    "en": {
        "allow_once": "Allow once",
        "allow_tool_for_session": "Allow this tool for this session",
        "allow_tool_for_good": "Allow this tool for good",
        "allow_reads_for_good": "Allow every tool of this server that claims to read only, for good",
        "allow_call_for_good": "Allow exactly this call for good",
        "deny": "Deny",
    },
    "ja": {
        "allow_once": "今回だけ許可",
        "allow_tool_for_session": "このセッションの間、このツールを許可",
        "allow_tool_for_good": "このツールを今後ずっと許可",
        "allow_reads_for_good": "読み取り専用と申告しているこのサーバーのツールをすべて、今後ずっと許可",
        "allow_call_for_good": "まったく同じ呼び出しを今後ずっと許可",
        "deny": "拒否",
    },
}

_WORDS: Mapping[Language, Mapping[str, str]] = {
    "en": {
        "decision": "Decision",
        "comment": "Comment",
        "for model": "Sent to the model if you deny",
        "asked": "The server {server} is asked to run {tool}.",
        "asked to read": "The server {server} is asked to run {tool}, which claims to read only.",
        "why": "Why you are asked: {reason}",
        "changed": "What changed:",
        "arguments": "Arguments, as they will be sent (to see all: {command}):",
    },
    "ja": {
        "decision": "判断",
        "comment": "コメント",
        "for model": "拒否した場合にモデルへ伝えられます",
        "asked": "サーバー {server} で {tool} を実行しようとしています。",
        "asked to read": "サーバー {server} で {tool}(読み取り専用と申告)を実行しようとしています。",
        "why": "確認の理由: {reason}",
        "changed": "変更点:",
        "arguments": "送られる引数(すべて見るには: {command}):",
    },
}


@dataclass(frozen=True, slots=True)
class PersonAnswer:
    choice: FormChoice
    comment: str

    @property
    def is_yes(self) -> bool:
        return self.choice != "deny"


def form_for(
    request: HumanApprovalRequest, server_name: str, *, reads: bool = False, language: Language = "en"
) -> JsonObject:
    """The params of `elicitation/create`. `reads`: the tool claims to read only."""
    choices, titles, words = _offered(reads), _TITLES[language], _WORDS[language]
    return {
        "message": _message(request, server_name, reads, language),
        "requestedSchema": {
            "type": "object",
            "properties": {
                "decision": {
                    "type": "string",
                    "title": words["decision"],
                    "enum": choices,
                    "enumNames": [titles[choice] for choice in choices],
                },
                "comment": {
                    "type": "string",
                    "title": words["comment"],
                    "description": words["for model"],
                    "maxLength": LONGEST_TEXT,
                },
            },
            "required": ["decision"],
        },
    }


def short_id(approval_id: str) -> str:
    """The part that a person types."""
    return approval_id.removeprefix("apr_")[:_CHARACTERS_OF_AN_ID]


def _offered(reads: bool) -> list[FormChoice]:
    return [choice for choice in get_args(FormChoice) if reads or choice != "allow_reads_for_good"]


def answer_in(result: JsonValue, *, reads: bool = False) -> PersonAnswer:
    """Declined, cancelled, incomplete, not offered, not understood: denied."""
    content = result.get("content") if isinstance(result, dict) and result.get("action") == "accept" else None
    if not isinstance(content, dict):
        action = result.get("action") if isinstance(result, dict) else None
        return PersonAnswer("deny", "" if action in ("decline", "cancel") else "the client gave no answer")
    comment = content.get("comment")
    said = comment[:LONGEST_TEXT] if isinstance(comment, str) else ""
    decision = content.get("decision")
    is_known = isinstance(decision, str) and decision in _offered(reads)
    return PersonAnswer(cast(FormChoice, decision) if is_known else "deny", said)


def _message(request: HumanApprovalRequest, server_name: str, reads: bool, language: Language) -> str:
    """Nothing in it is invisible, and nothing that the model or the server wrote can look like a line of ours."""
    words, tool = _WORDS[language], request.tool_name.removeprefix(f"{server_name}/")
    why = shown(request.reasons, "needs_human", language, request.reason)
    lines = [
        words["asked to read" if reads else "asked"].format(server=shown_json(server_name), tool=shown_json(tool)),
        words["why"].format(reason=on_one_line(why)),
    ]
    if request.definition_change:
        lines += [words["changed"], *(f"  {on_one_line(line)}" for line in request.definition_change.split("\n"))]
    command = f"openai-responses-mcp approvals show {short_id(request.approval_id)}"
    return "\n".join([*lines, words["arguments"].format(command=command), _written(request.arguments)])


def _written(arguments: Mapping[str, JsonValue]) -> str:
    """On one line if that is short."""
    line = shown_json(arguments)
    return line if columns(line) <= _SHORT_COLUMNS else shown_json(arguments, indent=2)


# ---------------------------------------------------------------------------------------------------------------------
# Calls that come again with the answer to a question of the guard (`input_required`). The `requestState` is a random
# number with a seal over it and the call. It can be used once, in time, by the same call. The arguments that were kept
# here are sent, not those that come back.


class Intent(NamedTuple):
    """A call that may start, with the definition that it is decided with.

    `params` are those that a person has approved; without them the client's own bytes are sent. `attempt` counts how
    often the call has been decided on.
    """

    call: PlannedCall
    defined: Defined
    params: JsonObject | None = None
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """`approval_id` is set once a person has been asked. `channel` leads to the client that made the call.

    `reading` are the tools that claim to read only, with the hashes of their definitions at this moment. It is empty
    if the tool of this call does not claim it.
    """

    intent: Intent
    judgement: Judgement
    channel: Channel
    approval_id: str = ""
    reading: Mapping[str, str] = field(default_factory=dict)

    @property
    def params(self) -> JsonObject:
        return self.intent.params or {}


class NotThisCall(Exception):
    """The state was used before, is too old, or belongs to another call."""


class PendingQuestions:
    def __init__(self) -> None:
        self._key = secrets.token_hex(32)
        # Random, because a guarded server may be a guard itself.
        self._prefix = f"guard-{secrets.token_hex(8)}:"
        self._waiting: OrderedDict[str, PendingQuestion] = OrderedDict()

    def put(self, question: PendingQuestion) -> str:
        """The state that the client has to bring back."""
        number = secrets.token_hex(16)
        self._waiting[number] = question
        if len(self._waiting) > _MOST_REMEMBERED:
            self._waiting.popitem(last=False)
        return f"{self._prefix}{number}:{self._seal(number, question.params)}"

    def take(self, params: JsonObject) -> PendingQuestion | None:
        """The question of the guard that these params of a call answer, if they answer one. Raises `NotThisCall`."""
        state = params.get("requestState")
        number, seal = self._parts(state)
        if not number:
            return None
        question = self._waiting.pop(number, None)
        if question is None or not compare_digest(seal, self._seal(number, params)):
            raise NotThisCall
        return question

    def forget(self, state: str) -> None:
        self._waiting.pop(self._parts(state)[0], None)

    def _seal(self, number: str, params: JsonObject) -> str:
        return sealed(self._key, number, params.get("name"), params.get("arguments") or {})

    def _parts(self, state: JsonValue) -> tuple[str, str]:
        if not isinstance(state, str) or not state.startswith(self._prefix):
            return "", ""
        number, _, seal = state.removeprefix(self._prefix).partition(":")
        # Compared as ASCII, which is all that a seal of ours can be.
        return (number, seal) if number.isascii() and seal.isascii() else ("", "")


# ---------------------------------------------------------------------------------------------------------------------
# Calls that the server has answered with a question of its own. The call comes again with the answer. With the same arguments
# it is the same call, once: no second question is asked, and what a person approved or changed is sent from the seal.


class Underway(NamedTuple):
    """A call at the server. If it is sealed, a person has approved its arguments. `note` is for the model."""

    call: PlannedCall
    is_sealed: bool = False
    note: str = ""


class ContinuedCalls:
    def __init__(self) -> None:
        self._waiting: OrderedDict[str, Underway] = OrderedDict()

    def put(self, underway: Underway, params: JsonObject, state: JsonValue) -> None:
        """`params` are those that the client has sent, `state` is what the server wants back."""
        self._waiting[_key(params, underway.call.tool, state)] = underway
        if len(self._waiting) > _MOST_CONTINUED:
            self._waiting.popitem(last=False)

    def take(self, params: JsonObject, tool: ToolDescription) -> Underway | None:
        """The call that comes again with these params. None if they answer no question."""
        if not ANSWERS & params.keys():
            return None
        return self._waiting.pop(_key(params, tool, params.get("requestState")), None)

    def clear(self) -> list[Underway]:
        left, self._waiting = list(self._waiting.values()), OrderedDict()
        return left


def _key(params: JsonObject, tool: ToolDescription, state: JsonValue) -> str:
    return digest("continued", tool.name, tool.definition_hash, object_in(params.get("arguments")), state)
