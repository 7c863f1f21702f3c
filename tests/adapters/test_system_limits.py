import pytest

from openai_responses_mcp.adapters.system_limits import affordable_connections, shortfalls

MIB = 1024 * 1024


def test_a_system_without_limits_lacks_nothing() -> None:
    assert shortfalls(lambda name: None) == []
    assert affordable_connections(256, lambda name: None) == 256


def test_what_is_missing_is_said_with_what_is_needed() -> None:
    descriptors, memory = shortfalls({"RLIMIT_NOFILE": 12, "RLIMIT_AS": 250 * MIB}.get)
    assert descriptors == (
        "only 12 files and connections may be open at once (ulimit -n); calls may fail, at least 32 are needed"
    )
    assert memory == (
        "only 250 MiB of memory may be reserved (ulimit -v); the server may crash, at least 512 MiB are needed"
    )


def test_just_enough_is_enough() -> None:
    assert shortfalls({"RLIMIT_NOFILE": 32, "RLIMIT_AS": 512 * MIB}.get) == []


@pytest.mark.parametrize(("limit", "most"), [(12, 1), (64, 32), (256, 128)])
def test_connections_leave_descriptors_for_the_rest(limit: int, most: int) -> None:
    assert 1 <= affordable_connections(256, {"RLIMIT_NOFILE": limit}.get) <= most


def test_no_more_connections_than_wanted() -> None:
    assert affordable_connections(3, {"RLIMIT_NOFILE": 4096}.get) == 3


def test_this_system_says_what_it_grants() -> None:
    assert affordable_connections(2) >= 1
    assert isinstance(shortfalls(), list)
