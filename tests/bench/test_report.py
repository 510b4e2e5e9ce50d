"""Results survive their file, and the page says what they say."""

from pathlib import Path

from bench import report, results
from bench.required import REQUIRED
from bench.results import Measure, PartResult, Series

OURS = Series.of("headrace (2 processes)", "tasks/s", [30_000.0, 31_000.4, 29_000.0])
THEIRS = Series.of("PgQueuer (2 × batch 500)", "tasks/s", [20_000.0, 21_000.0, 19_000.0])


def _drain(value: float | None) -> PartResult:
    return PartResult(
        part="drain",
        size="full",
        pairs=5,
        day="2026-01-02",
        machine={"processor": "some", "cores": "2"},
        versions={"Python": "3.13", "pgqueuer": "1.6"},
        durability={"PostgreSQL": "fsync on, synchronous_commit on"},
        busy_before=3.0,
        measures={"postgres_pgqueuer": Measure(value=value, series=(OURS, THEIRS), remark="as it comes")},
        beside=(Series.of("headrace on SQLite, NORMAL", "tasks/s", [12_345.6]),),
        failures=("Celery: it did not start",),
    )


def test_a_series_keeps_its_median_and_its_ends() -> None:
    assert (OURS.median, OURS.low, OURS.high, OURS.runs) == (30_000.0, 29_000.0, 31_000.4, 3)
    assert Series.of("even", "s", [4.0, 1.0, 2.0, 3.0]).median == 2.5


def test_results_come_back_as_they_went(tmp_path: Path) -> None:
    path = results.store(_drain(1.5), tmp_path)
    found = results.load(tmp_path)
    assert path.name == "drain.json"
    assert set(found) == {"drain"}
    assert found["drain"].to_json() == _drain(1.5).to_json()
    assert found["drain"].measures["postgres_pgqueuer"].series[1] == THEIRS


def test_a_part_measured_again_leaves_the_others(tmp_path: Path) -> None:
    results.store(_drain(1.5), tmp_path)
    results.store(_drain(1.0), tmp_path)
    assert results.load(tmp_path)["drain"].measures["postgres_pgqueuer"].value == 1.0


def test_the_page_has_figures_bounds_and_verdicts() -> None:
    page = report.page({"drain": _drain(1.5)})
    row = next(line for line in page.splitlines() if line.startswith("| PostgreSQL, `async def`, against PgQueuer"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1:] == [
        "2 processes: 30,000 tasks/s (29,000–31,000)",
        "PgQueuer (2 × batch 500): 20,000 tasks/s (19,000–21,000)",
        "**1.5 ×**",
        "≥ 1.2 ×",
        "≥ 1.5 ×",
        "met, aim reached",
    ]
    assert "as it comes" in page
    assert "headrace on SQLite, NORMAL | 12,346 tasks/s" in page
    assert "failed: Celery: it did not start" in page
    assert "fsync on, synchronous_commit on" in page
    assert "2026-01-02, full size, 5 pairs" in page
    assert "What is not measured" in page
    assert f"Of {len(REQUIRED)} requirements: 1 met, aim reached, {len(REQUIRED) - 1} not measured." in page


def test_only_the_parts_that_were_measured_decide_the_exit() -> None:
    found = {"drain": _drain(1.1)}
    short = report.missed(found, ["drain"])
    assert [each.measure for each in short] == [each.measure for each in REQUIRED if each.part == "drain"]
    met = report.missed({"drain": _drain(1.2)}, ["drain"])
    assert "postgres_pgqueuer" not in {each.measure for each in met}
    assert report.missed(found, []) == []


def test_conditions_that_parts_share_are_said_once() -> None:
    other = PartResult.from_json(_drain(1.5).to_json().replace('"drain"', '"latency"'))
    lines = report.conditions({"drain": _drain(1.5), "latency": other}, ["drain", "latency"])
    assert sum("processor some" in line for line in lines) == 1
    assert lines[0].startswith("drain: ")
    assert lines[1].startswith("latency: ")


def test_the_page_in_the_documents_is_the_one_of_the_stored_results() -> None:
    found = results.load()
    if found:
        assert report.PAGE.read_text() == report.page(found)
    else:
        assert not report.PAGE.exists()


def test_stored_results_name_no_machine_and_no_place() -> None:
    texts = [path.read_text() for path in results.DIRECTORY.glob("*.json")]
    assert not [text for text in texts if "/home" in text or "/root" in text or "/work" in text or "/tmp" in text]
