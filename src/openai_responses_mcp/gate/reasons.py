"""Why the gate decided as it did: one reason for each voice that spoke, as data and in words.

Reasons are stored and chained as data. They are put into words last, in English or Japanese: by `reason_in_record` in the
short form for the field `reason` of the public types and the log, by `shown` for the approver, who may not know risk
levels. Nothing reads a reason back out of words, apart from `in_old_words`: the log of an earlier version holds sentences
alone.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, get_args

from openai_responses_mcp.domain.texts import Language
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue, OwnJson

Decision = Literal["allow", "deny", "needs_human"]

# Each with the facts that it refers to.
Voice = Literal[
    "profile",  # risk, profile; rule: the number of the rule that set the risk; would_allow: see "rule"
    "scope",  # tool, profile
    # rule: its number; text: the reason that the file gives; in_doubt: it is not clear which file is meant;
    # would_allow: the number of the rule that would allow the call if that were clear
    "rule",
    "judge",  # risk, text
    "tool",  # the tool itself asks for approval
    "caller",  # `require_human_approval`
    "definition",  # changed since it was approved
    "own_file",  # a path that leads to the policy file, the store or a client's configuration
    "command",  # another command runs under the name of the server
    "shown",  # the client was shown another definition than the guard
    "budget",  # most, unit, per
    "standing",  # standing_id, until, for_session, same_arguments
    "guardrail",  # code, message
    "failure",  # code, message: the gate could not decide
    "provider",  # profile: the provider runs the tool, call by call and unasked
    "observer",  # the guard only observes
    "schema",  # the schema cannot be checked here
    "result",  # hidden: how many secrets the client was not given; bytes, limit: of a result that it was not given
    "unreadable",  # text: not written by this program
]

OF_POLICY: Final = frozenset({"profile", "scope", "rule"})
"""The voices that a policy file replaces."""


@dataclass(frozen=True, slots=True)
class Reason:
    """What one voice says about a call, and what it refers to."""

    voice: Voice
    says: Decision
    about: JsonObject = field(default_factory=dict)

    def masked(self, mask: Callable[[str], str]) -> "Reason":
        texts = {name: mask(fact) if isinstance(fact, str) else fact for name, fact in self.about.items()}
        return replace(self, about=texts)


DEFINITION_CHANGED: Final = Reason("definition", "needs_human")
OWN_FILE: Final = Reason("own_file", "needs_human")


def is_new(reasons: Sequence[Reason], known: Sequence[Reason]) -> bool:
    """Whether a human is asked for a reason that is not among the known ones."""
    return any(reason.says == "needs_human" and reason not in known for reason in reasons)


# ---------------------------------------------------------------------------------------------------------------------
# As JSON


def as_json(reasons: Sequence[Reason]) -> list[JsonValue]:
    return [{"voice": reason.voice, "says": reason.says, "about": reason.about} for reason in reasons]


def as_text(reasons: Sequence[Reason]) -> str | None:
    """None if there are none, as in the records of earlier versions."""
    return json.dumps(as_json(reasons), ensure_ascii=False) if reasons else None


def from_text(text: str | None) -> tuple[Reason, ...]:
    """A voice of a later version is kept. Other text was tampered with, and its hash will not match."""
    if text is None:
        return ()
    try:
        return tuple(Reason(**_checked(one)) for one in json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return (Reason("unreadable", "deny", {"text": text}),)


def _checked(one: JsonValue) -> OwnJson:
    if not isinstance(one, dict) or one.keys() != {"voice", "says", "about"} or not isinstance(one["about"], dict):
        raise ValueError
    if not isinstance(one["voice"], str) or one["says"] not in get_args(Decision):
        raise ValueError
    return one


# ---------------------------------------------------------------------------------------------------------------------
# Records of earlier versions

_OLD_STANDING = re.compile(r"a standing approval allows it .*\((sta_\w+)\)", re.ASCII | re.DOTALL)
_OLD_POLICY = re.compile(
    r"risk [1-5] (needs a human under|is refused by) the profile \w+"
    r"|.* is outside the scopes of the profile \w+"
    r"|.* \(policy rule [0-9]+\)",
    re.DOTALL,
)


def in_old_words(text: str, decision: Decision) -> Iterator[Reason]:
    """The reasons in a sentence of an earlier version. Its words will not change any more."""
    for part in text.split("; "):
        if standing := _OLD_STANDING.fullmatch(part):
            yield Reason("standing", decision, {"standing_id": standing[1]})
        elif _OLD_POLICY.fullmatch(part):
            yield Reason("profile", decision)
        elif part or decision != "allow":
            yield Reason("judge", decision, {"text": part})


# ---------------------------------------------------------------------------------------------------------------------
# In words


_Words = Mapping[tuple[str, Decision], str]

_RECORDED: _Words = {
    ("profile", "deny"): "risk {risk} is refused by the profile {profile}",
    ("profile", "needs_human"): "risk {risk} needs a human under the profile {profile}",
    ("scope", "deny"): "{tool} is outside the scopes of the profile {profile}",
    ("rule", "allow"): "the policy file allows it (policy rule {rule})",
    ("rule", "needs_human"): "the policy file asks for a human (policy rule {rule})",
    ("rule", "deny"): "the policy file refuses it (policy rule {rule})",
    ("tool", "needs_human"): "the tool asks for approval",
    ("caller", "needs_human"): "the caller asks for approval",
    ("definition", "needs_human"): "what the server says about the tool has changed since it was approved",
    ("own_file", "needs_human"): "a path leads to the policy file, the store or the configuration of a client",
    ("command", "needs_human"): "another command runs under the name of this server than before",
    ("shown", "needs_human"): "the client was shown another definition of this tool than the guard",
    ("budget", "needs_human"): "the budget of {most} {unit} per {per} is used up",
    ("standing", "allow"): "a standing approval allows it {holds}, {arguments} ({standing_id})",
    ("guardrail", "deny"): "{code}: {message}",
    ("failure", "deny"): "{code}: {message}",
    ("provider", "allow"): "in scope of the profile {profile}, run by the provider",
    ("provider", "deny"): "the provider runs it unasked",
    ("observer", "allow"): "only observed",
    ("result", "allow"): "secrets in the result that were hidden from the client: {hidden}",
    ("result", "deny"): "the client was not given the result: it has {bytes} bytes, and the limit is {limit}",
    ("schema", "allow"): "its schema cannot be checked here, so the server checks the arguments",
}

_SHOWN: Mapping[Language, _Words] = {
    "en": {
        **_RECORDED,
        ("profile", "deny"): "the profile {profile} refuses risk {risk}",
        ("profile", "needs_human"): "no rule covers this tool, so you are asked",
        ("rule", "needs_human"): "rule {rule} of the policy file asks you",
        ("definition", "needs_human"): "the server has changed what it says about this tool since it was approved",
    },
    "ja": {
        ("profile", "deny"): "プロファイル {profile} はリスク {risk} を拒否します",
        ("profile", "needs_human"): "このツールに当てはまるルールがないため、確認が必要です",
        ("scope", "deny"): "{tool} はプロファイル {profile} の範囲外です",
        ("rule", "allow"): "ポリシーファイルのルール {rule} が許可しています",
        ("rule", "needs_human"): "ポリシーファイルのルール {rule} が確認を求めています",
        ("rule", "deny"): "ポリシーファイルのルール {rule} が拒否しています",
        ("tool", "needs_human"): "このツールは承認を必要とします",
        ("caller", "needs_human"): "呼び出し元が承認を求めています",
        ("definition", "needs_human"): "承認された後に、サーバーがこのツールの説明を変更しました",
        ("own_file", "needs_human"): "パスがポリシーファイル、ストア、またはクライアントの設定を指しています",
        ("command", "needs_human"): "このサーバー名で、以前とは別のコマンドが動いています",
        ("shown", "needs_human"): "クライアントに示された定義と、ガードが見た定義が異なります",
        ("budget", "needs_human"): "予算({per} {most} {unit})を使い切りました",
        ("standing", "allow"): "継続的な承認により許可されています({holds}、{arguments}、{standing_id})",
        ("guardrail", "deny"): "{code}: {message}",
        ("failure", "deny"): "{code}: {message}",
        ("provider", "allow"): "プロファイル {profile} の範囲内で、プロバイダーが実行します",
        ("provider", "deny"): "プロバイダーが確認なしで実行します",
        ("observer", "allow"): "観察のみ",
        ("result", "allow"): "クライアントに渡さなかった結果内のシークレットの数: {hidden}",
        ("result", "deny"): "結果が {bytes} バイトで上限の {limit} を超えるため、クライアントに渡しませんでした",
        ("schema", "allow"): "スキーマをここでは検査できないため、サーバーが引数を検査します",
    },
}

# When a rule has set the risk, or gives a reason.
_RISK_BY_RULE: Mapping[Language, str] = {
    "en": "rule {rule} of the policy file sets risk {risk}, and the profile {profile} asks you for it",
    "ja": "ポリシーファイルのルール {rule} によるリスク {risk} は、プロファイル {profile} では確認が必要です",
}
_IN_DOUBT: Mapping[Language, str] = {
    "en": ", because it is not clear which file a path means",
    "ja": "。パスがどのファイルを指すか明確ではありません",
}
_WOULD_ALLOW: Mapping[Language, str] = {
    "en": "rule {would_allow} of the policy file would allow it, but it is not clear which file a path means",
    "ja": "ポリシーファイルのルール {would_allow} なら許可しますが、パスがどのファイルを指すか明確ではありません",
}
_OWN_WORDS: Mapping[Language, str] = {
    "en": "{text} (policy rule {rule})",
    "ja": "{text} (ポリシーのルール {rule})",
}

_UNITS: Mapping[Language, Mapping[JsonValue, str]] = {
    "en": {},
    "ja": {"calls": "回", "tokens": "トークン"},
}
_WINDOWS: Mapping[Language, Mapping[JsonValue, str]] = {
    "en": {},
    "ja": {"run": "1 回の実行あたり", "session": "1 セッションあたり", "hour": "1 時間あたり", "day": "1 日あたり"},
}
_STANDING: Mapping[Language, Mapping[str, str]] = {
    "en": {
        "until": "until {until}Z",
        "session": "for its session",
        "always": "always",
        "same": "with the same arguments",
        "any": "with any arguments",
    },
    "ja": {
        "until": "{until}Z まで",
        "session": "このセッションの間",
        "always": "無期限",
        "same": "同じ引数のみ",
        "any": "引数は問わない",
    },
}


_NOTICE: Mapping[Language, str] = {
    "en": "{tool} waits for your decision: {why}. Decide with: {command}",
    "ja": "{tool} が承認を待っています: {why}。次のコマンドで決定できます: {command}",
}


def notice(tool: str, why: str, command: str, language: Language) -> str:
    """The message for a chat about a waiting request."""
    return _NOTICE[language].format(tool=tool, why=why, command=command)


def reason_in_record(reasons: Sequence[Reason], decision: Decision) -> str:
    """The reasons that led to the decision, as the log says them."""
    return _joined((_text(one, _RECORDED, "en") for one in reasons if one.says == decision), "; ")


def shown(reasons: Sequence[Reason], decision: Decision, language: Language, otherwise: str = "") -> str:
    """The same for a person. `otherwise` is used for records of earlier versions, which stored no reasons."""
    separator = "; " if language == "en" else "。"
    texts = (_shown_one(one, language) for one in reasons if one.says == decision)
    return _joined(texts, separator) or otherwise


def _joined(texts: Iterable[str], separator: str) -> str:
    return separator.join(dict.fromkeys(text for text in texts if text))


def _shown_one(reason: Reason, language: Language) -> str:
    if reason.says == "needs_human" and "would_allow" in reason.about and not reason.about.get("text"):
        return _WOULD_ALLOW[language].format_map(_Facts(reason.about))
    if reason.voice == "profile" and reason.says == "needs_human" and "rule" in reason.about:
        return _RISK_BY_RULE[language].format_map(_Facts(reason.about))
    return _text(reason, _SHOWN[language], language)


def _text(reason: Reason, words: _Words, language: Language) -> str:
    about = reason.about
    if reason.voice == "rule" and about.get("in_doubt"):
        certain = replace(reason, about={**about, "in_doubt": False})
        return f"{_text(certain, words, language)}{_IN_DOUBT[language]}"
    if reason.voice == "rule" and about.get("text"):
        return _OWN_WORDS[language].format_map(_Facts(about))
    template = words.get((reason.voice, reason.says))
    if template is None:
        # The judge's own words, or a voice of a later version.
        return str(about.get("text", ""))
    return template.format_map(_Facts({**about, **_derived(reason, language)}))


def _derived(reason: Reason, language: Language) -> JsonObject:
    """Facts as words."""
    about = reason.about
    if reason.voice == "budget":
        unit = _UNITS[language].get(about.get("unit"), str(about.get("unit")))
        is_one = language == "en" and about.get("most") == 1
        per = _WINDOWS[language].get(about.get("per"), str(about.get("per")))
        return {"unit": unit.removesuffix("s") if is_one else unit, "per": per}
    if reason.voice == "standing":
        arguments = _STANDING[language]["same" if about.get("same_arguments") else "any"]
        return {"holds": holds(reason, language), "arguments": arguments}
    return {}


def holds(standing: Reason, language: Language = "en") -> str:
    """For how long a standing approval holds."""
    until = str(standing.about.get("until") or "")[:19]
    how_long = "until" if until else "session" if standing.about.get("for_session") else "always"
    return _STANDING[language][how_long].format(until=until)


class _Facts(dict[str, JsonValue]):
    """Missing facts become "?": a record from another version may lack some."""

    def __missing__(self, name: str) -> str:
        return "?"
