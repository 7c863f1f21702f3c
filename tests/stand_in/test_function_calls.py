from typing import Any

from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from tests.rehearsal.test_stream_events import read_events
from tests.stand_in.conftest import Ask

FUNCTION = {"type": "function", "name": "add", "parameters": {"type": "object"}, "strict": False}
CALL = 'Add them. [rehearse: call=add; args={"of": [1, 2]}]'
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def text(response: dict[str, Any]) -> str:
    return str(response["output"][-1]["content"][0]["text"])


async def test_a_function_is_called_and_its_output_quoted(ask: Ask) -> None:
    response = (await ask(CALL, tools=[FUNCTION])).json()
    Response.model_validate(response, strict=True)
    call = response["output"][-1]
    assert (call["type"], call["name"], call["arguments"]) == ("function_call", "add", '{"of": [1, 2]}')
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "three"}
    continued = (await ask([output], tools=[FUNCTION], previous_response_id=response["id"])).json()
    assert '"three"' in text(continued)
    assert "Add them." in text(continued)
    given = [{"role": "user", "content": CALL}, call, output]
    assert '"three"' in text((await ask(given, tools=[FUNCTION])).json())


async def test_a_function_nobody_offers_is_not_called(ask: Ask) -> None:
    assert [item["type"] for item in (await ask(CALL)).json()["output"]] == ["reasoning", "message"]


async def test_an_output_nobody_asked_for_is_refused(ask: Ask) -> None:
    reply = await ask([{"type": "function_call_output", "call_id": "call_x", "output": [{"text": "a"}]}])
    assert reply.status_code == 400
    assert "call_x" in reply.json()["error"]["message"]


async def test_the_arguments_of_a_call_are_streamed(ask: Ask) -> None:
    events = read_events((await ask(CALL, stream=True, tools=[FUNCTION])).content)
    for event in events:
        EVENT.validate_python(event, strict=True)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    deltas = [event["delta"] for event in events if event["type"] == "response.function_call_arguments.delta"]
    assert "".join(deltas) == '{"of": [1, 2]}'
    assert events[-1]["type"] == "response.completed"
