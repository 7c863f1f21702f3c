from openai.types.model import Model
from openai.types.responses.input_token_count_params import InputTokenCountParams

from openai_responses_mcp.adapters.openai.api import COUNTED_FIELDS, counted_body, shutdown_date
from openai_responses_mcp.adapters.openai.wire import request_body
from openai_responses_mcp.domain.models import ModelRequest


def test_a_request_to_be_counted_holds_what_the_sdk_says_it_may() -> None:
    assert set(COUNTED_FIELDS) == set(InputTokenCountParams.__annotations__)


def test_fields_that_the_token_count_does_not_accept_are_left_out() -> None:
    body = request_body(ModelRequest("gpt-5.2", "Be brief.", "Why?", verbosity="low"), (), {"service_tier": "flex"})
    assert set(body) - set(counted_body(body)) >= {"store", "include", "service_tier"}
    assert counted_body(body) == {
        name: body[name] for name in ("model", "instructions", "input", "tools", "truncation", "text")
    }


def test_the_day_of_a_models_end_is_read_as_the_sdk_names_it() -> None:
    model = Model(id="m", created=1, object="model", owned_by="o", shutdown_date="2027-04-01")
    assert shutdown_date(model.to_json().encode()) == "2027-04-01"


def test_any_other_description_of_a_model_has_no_shutdown_date() -> None:
    cases: list[bytes] = [b"", b"yes", b"[]", b"{}", b'{"shutdown_date": null}', b'{"shutdown_date": " "}', b'{"shutdown_date": 7}', b"\xff",
     b"[" * 100_000]  # fmt: skip
    for content in cases:
        assert shutdown_date(content) is None
