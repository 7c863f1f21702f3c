"""Somebody is told that a request waits, in whatever way they like."""

import logging

import pytest

from openai_responses_mcp.gate.approvals.controller import tell
from openai_responses_mcp.gate.approvals.models import HumanApprovalRequest
from tests.agents.fakes import within

REQUEST = HumanApprovalRequest("apr_1", "r1", "Approve or deny function pay", "May it run?", "pending")


async def test_a_function_is_told() -> None:
    told: list[HumanApprovalRequest] = []
    await within(tell(told.append, REQUEST))
    assert told == [REQUEST]


async def test_a_coroutine_is_waited_for() -> None:
    told: list[HumanApprovalRequest] = []

    async def note(request: HumanApprovalRequest) -> None:
        told.append(request)

    await within(tell(note, REQUEST))
    assert told == [REQUEST]


async def test_nobody_need_be_told(caplog: pytest.LogCaptureFixture) -> None:
    await within(tell(None, REQUEST))
    assert caplog.records == []


async def test_who_fails_is_named_in_the_log_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def fail(request: HumanApprovalRequest) -> None:
        raise RuntimeError("no mail today")

    async def fail_later(request: HumanApprovalRequest) -> None:
        raise RuntimeError("no mail today")

    with caplog.at_level(logging.WARNING):
        await within(tell(fail, REQUEST))
        await within(tell(fail_later, REQUEST))
    said = "on_approval_requested failed with RuntimeError for apr_1"
    assert caplog.record_tuples == [("openai_responses_mcp.agents", logging.WARNING, said)] * 2
