"""Equal things have equal hashes, everywhere."""

from openai_responses_mcp.gate.secrets.hashing import canonical, digest, sealed


def test_equal_values_are_written_alike() -> None:
    assert (
        canonical({"b": 1, "a": ["é", None]}) == canonical({"a": ["é", None], "b": 1}) == r'{"a":["\u00e9",null],"b":1}'
    )


def test_a_hash_tells_values_and_their_order_apart() -> None:
    hashes = {digest("a", "b"), digest("b", "a"), digest("ab"), digest(["a", "b"]), digest("a", "b", None)}
    assert len(hashes) == 5
    assert digest("a") == digest("a")


def test_a_seal_depends_on_its_key() -> None:
    assert sealed("one", "x") == sealed("one", "x") != sealed("other", "x")
    assert sealed("one", "x") != sealed("one", "y")
