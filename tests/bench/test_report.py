import xml.etree.ElementTree as ET
from typing import Any

import pytest

from tests.tools.bench import guard_report, guarded_report, over_http_report, report
from tests.tools.bench.figures import exponent, growth_in_words, percentile, summary
from tests.tools.bench.guarded_report import FILE, MEMORY, PLAIN, WAL, put_into
from tests.tools.bench.results import MEASURES, Results
from tests.tools.bench.servers import O3, OURS
from tests.tools.bench.targets import targets

PEER = "mcp-openai-websearch"


def curves(factor: float) -> dict[str, Any]:
    """As they come back from JSON: the points of a curve are named by text."""
    return {
        "flight_ms": {str(n): n * factor for n in (1, 30, 100, 1000)},
        "flight_mib": {str(n): 50 + n * factor for n in (1, 30, 100, 1000)},
        "size_ms": {str(n): 1 + n * factor for n in (1, 64, 2048)},
        "size_mib": {str(n): 50 + n * factor for n in (1, 64, 2048)},
    }


def made_up(**changes: Any) -> Results:
    samples = {measure.key: 10.0 for measure in MEASURES} | {"burst_200_lost": 0.0, "burst_1000_lost": 0.0}
    doubled = {key: value * 2 for key, value in samples.items()}
    one_by_one = {"initialize": 40.0, "burst_200_lost": 190.0}
    seconds = {"4": 0.01, "8": 0.02, "16": 0.04}
    framer = {"bodies": seconds, "messages": seconds, "messages_at_once": seconds}
    raw: dict[str, Any] = {
        "date": "2026-01-01",
        "machine": {"cores": 2, "system": "Linux", "python": "3.11", "node": "20", "load": 0.1},
        "servers": [OURS, O3, PEER],
        "problems": {},
        "installed_mb": {OURS: 50.0, O3: 20.0, PEER: 20.0},
        "rounds": [{OURS: samples, O3: doubled, PEER: one_by_one, "python -c 'import asyncio'": {"run": 9.0}}] * 3,
        "growth": {OURS: [curves(1)], O3: [curves(2)], PEER: [{**curves(1), "flight_ms": {"1": 1.0}}]},
        "framer": {"line": framer},
        "seconds": 100,
    }
    return Results(raw | changes)


def row(text: str, label: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(f"| {label}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_table_shows_each_median_and_how_we_compare() -> None:
    cells = row(report.as_text(made_up()), "Spawn → reply to `initialize`")
    assert cells[1:] == ["10 ms", "20 ms (0.50)", "40 ms (0.25)"]


def test_server_that_answers_calls_one_after_another_is_said_to() -> None:
    text = report.as_text(made_up())
    assert row(text, "200 calls at once")[3] == "one after another"
    assert f"- {PEER} answers calls one after another" in text


def test_server_that_did_not_install_is_told() -> None:
    text = report.as_text(made_up(problems={"some-peer": "did not install: no npm here"}))
    assert "some-peer: did not install: no npm here." in text


def test_figures_of_few_rounds_on_a_busy_machine_are_doubted() -> None:
    assert "Fewer than 10 rounds" in report.as_text(made_up())
    busy = {"cores": 2, "system": "Linux", "python": "3.11", "node": "20", "load": 7.2}
    assert "The figures are rough" in report.as_text(made_up(machine=busy))
    assert "The figures are rough" not in report.as_text(made_up())


def test_targets_compare_with_their_limits() -> None:
    found = {(target.name, target.limit): target for target in targets(made_up())}
    assert found["`initialize`", "at most 0.3 × o3-search-mcp"].is_reached is False
    assert found["`initialize`", "at most 1.25 × `import asyncio`"].is_reached is True
    assert found["1,000 × 500 ms", "none lost"].is_reached is True


def test_nothing_is_reached_that_was_not_measured() -> None:
    unmeasured = made_up(rounds=[], growth={}, servers=[])
    assert {target.name for target in targets(unmeasured) if target.is_reached} == {
        target.name for target in targets(unmeasured) if target.name.startswith("Framer")
    }


def test_growth_is_said_in_words() -> None:
    text = report.as_text(made_up())
    assert "1.00 ms for each further call, and grows linearly from 30 on (exponent 1.00)" in text


def test_pictures_are_well_formed() -> None:
    for picture in (
        report.bar_picture(made_up()),
        report.growth_picture(made_up()),
        report.growth_picture(made_up(growth={})),
    ):
        assert ET.fromstring(picture).tag.endswith("svg")


def test_page_keeps_its_words_around_the_marks() -> None:
    page = f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n"
    assert report.between_marks(page, r"new \1") == f"before\n{report.BEGIN}\n\nnew \\1\n\n{report.END}\nafter\n"
    with pytest.raises(ValueError, match="bench:begin"):
        report.between_marks("no marks", "new")


def test_summary_has_median_p95_and_spread() -> None:
    assert summary([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx((3.0, 4.8, 2.0, 5))
    assert percentile([7.0], 0.95) == 7.0


@pytest.mark.parametrize(
    ("power", "words"),
    [
        (0.0, "hardly grows"),
        (0.5, "grows less than linearly"),
        (1.0, "grows linearly"),
        (2.0, "grows faster than linearly"),
    ],
)
def test_exponent_tells_how_cost_grows(power: float, words: str) -> None:
    sizes = [1.0, 10.0, 100.0]
    found = exponent(sizes, [size**power for size in sizes])
    assert found == pytest.approx(power)
    assert growth_in_words(found) == words


def test_a_guarded_call_is_compared_with_the_plain_sdk_between_marks_of_its_own() -> None:
    ways = {PLAIN: 10.0, MEMORY: 14.0, FILE: 40.0, WAL: 20.0}
    samples = {name: [ms] * 3 for name, ms in ways.items()}
    writes = {name: 0 if name == PLAIN else 3 for name in ways}
    found = {"runs": 3, "sqlite": "3.40.1", "load": 0.5, "wall": samples, "cpu": samples, "writes": writes}
    page = put_into(f"before {guarded_report.BEGIN} old {guarded_report.END} after", found)
    assert "old" not in page
    assert (page.startswith("before "), page.endswith(" after")) == (True, True)
    assert "| guarded, in memory | 14.0 ms | 1.40 | at most 1.5: yes |" in page
    assert "| guarded, SQLite file | 40.0 ms | 4.00 | at most 3: no |" in page


def test_a_call_through_the_guard_is_compared_with_the_bare_server_between_marks_of_its_own() -> None:
    ways = {guard_report.BARE: 0.5, MEMORY: 2.0, FILE: 4.0}
    memory = {guard_report.BARE: 9.0, MEMORY: 39.0, FILE: 41.0}
    times = {name: [ms] * 3 for name, ms in ways.items()}
    found = {"calls": 3, "sqlite": "3.40.1", "load": 0.5, "times": times, "fsync": [1.0], "memory": memory}
    page = guard_report.put_into(f"before {guard_report.BEGIN} old {guard_report.END} after", found)
    assert (page.startswith("before "), page.endswith(" after"), "old" in page) == (True, True, False)
    assert "| bare server | 0.50 ms |  |  | 0.00 ms | 9 MB |  |" in page
    assert "| 2.00 ms | 1.50 ms | at most 3 ms: yes | 0.00 ms | 39 MB | at most 40 MB: yes |" in page
    assert "| 4.00 ms | 3.50 ms | at most 3 ms: no | 0.00 ms | 41 MB | at most 40 MB: no |" in page


def test_over_http_is_compared_with_stdio_and_a_peer_between_marks_of_its_own() -> None:
    times = {over_http_report.STDIO: 1.0, over_http_report.HTTP: 2.0, over_http_report.PEER: 3.0}
    measures = ("warm", "burst_200", "burst_1000", "memory")
    samples = {way: {measure: [value, value, value] for measure in measures} for way, value in times.items()}
    samples[over_http_report.HTTP]["memory"] = [200.0] * 3
    found = {"rounds": 3, "load": 0.5, "samples": samples}
    page = over_http_report.put_into(f"before {over_http_report.BEGIN} old {over_http_report.END} after", found)
    assert page.startswith("before ")
    assert "| a warm call | 1.0 ms | 2.0 ms | 3.0 ms | yes |" in page
    assert "| memory after that | 1.0 MB | 200 MB | 3.0 MB | no |" in page
    assert "old" not in page
