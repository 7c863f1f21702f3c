from openai_responses_mcp.rehearsal.runs import Memory, TimesAsked


def test_what_was_remembered_first_is_forgotten_first() -> None:
    memory = Memory[int](max_remembered=2)
    for key, value in (("a", 1), ("b", 2), ("a", 3), ("c", 4)):
        memory.remember(key, value)
    assert [memory.maybe_recall(key) for key in "abc"] == [3, None, 4]


def test_each_question_is_counted_until_its_times_are_over() -> None:
    times = TimesAsked()
    assert [times.is_over("Why?", 2) for _ in range(4)] == [False, False, True, True]
    assert not times.is_over("How?", 2)
    assert not times.is_over("Why?", None)
