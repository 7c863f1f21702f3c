from typing import Any

import pytest

from tests.rehearsal.test_stream_events import read_events
from tests.stand_in.conftest import SEARCH, Ask


async def outcome(ask: Ask, keys: str) -> dict[str, Any]:
    response: dict[str, Any] = (await ask(f"Hello [rehearse: {keys}]", **SEARCH)).json()
    return response


async def test_outcomes_look_as_the_api_has_them(ask: Ask) -> None:
    assert (await outcome(ask, "outcome=refusal"))["output"][-1]["content"][0]["type"] == "refusal"
    incomplete = await outcome(ask, "outcome=incomplete")
    assert (incomplete["status"], incomplete["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert incomplete["output"][-1]["status"] == "incomplete"
    assert [item["type"] for item in (await outcome(ask, "outcome=incomplete-empty"))["output"]] == ["reasoning"]
    failed = await outcome(ask, "outcome=failed; code=rate_limit_exceeded; message=No")
    assert (failed["status"], failed["error"]) == ("failed", {"code": "rate_limit_exceeded", "message": "No"})
    assert (await outcome(ask, "outcome=no-text"))["status"] == "completed"
    phases = [item.get("phase") for item in (await outcome(ask, "outcome=commentary"))["output"]]
    assert phases == ["commentary", None, "final_answer"]
    odd = await outcome(ask, "outcome=unknown-item; citations=1")
    assert odd["output"][0]["type"] == "rehearsal_item"
    kinds = [annotation["type"] for annotation in odd["output"][2]["content"][0]["annotations"]]
    assert kinds == ["rehearsal_annotation", "url_citation"]


@pytest.mark.parametrize("question", ["Hello", "こんにちは"])
async def test_the_text_can_be_given_and_sized(ask: Ask, question: str) -> None:
    for size in (10, 100_000):
        part = (await ask(f"{question} [rehearse: size={size}]")).json()["output"][-1]["content"][0]
        assert size - 3 <= len(part["text"].encode()) <= size
    part = (await ask(rf"{question} [rehearse: text=a\nb; citations=1]")).json()["output"][-1]["content"][0]
    assert (part["text"], len(part["annotations"])) == ("a\nb", 1)


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ("none", []),
        ("api", [{"type": "api", "name": "oai-weather"}]),
        ("url", [{"type": "url", "url": "https://example.com/rehearsal/1"}]),
        (
            "dated",
            [
                {"type": "url", "url": "https://example.com/rehearsal/1", "published_at": "2026-01-01"},
                {"type": "url", "url": "https://example.com/rehearsal/2", "published_date": "2026-01-02"},
                {"type": "url", "url": "https://example.com/rehearsal/3", "date": "2026-01-03"},
            ],
        ),
    ],
)
async def test_sources_can_be_chosen(ask: Ask, sources: str, expected: list[dict[str, str]]) -> None:
    response = await outcome(ask, f"search=yes; citations=0; sources={sources}")
    assert response["output"][1]["action"]["sources"] == expected


async def test_an_unknown_item_is_announced_and_nothing_more(ask: Ask) -> None:
    events = read_events((await ask("[rehearse: outcome=unknown-item]", stream=True)).content)
    kinds = [event["item"]["type"] for event in events if event["type"] == "response.output_item.added"]
    assert kinds == ["rehearsal_item", "reasoning", "message", "rehearsal_item"]
