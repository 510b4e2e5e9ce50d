"""Processes that share a place, and one that is killed."""

import subprocess
from datetime import UTC, datetime, timedelta

from headrace.testing.data_conformance.case import Cases
from headrace.testing.data_conformance.stand import CEILING, Stand, numbers, same

cases = Cases("processes")


@cases.add(needs_url=True)
def what_one_wrote_another_reads(stand: Stand) -> None:
    with stand.away():
        assert stand.ask("write", "obj_a", 25_000) == "25000"
    same(stand.read("obj_a"), numbers(25_000))


@cases.add(needs_url=True)
def several_read_at_once(stand: Stand) -> None:
    """Each another slice, while the one who wrote it is still there; where a place is for one process, not at all."""
    if not stand.backend.shared:
        return
    stand.write(numbers(30_000), "obj_a")
    with (
        stand.child("sum", "obj_a", 0, 10_000) as first,
        stand.child("sum", "obj_a", 10_000, 20_000) as second,
    ):
        answers = [int(process.communicate(timeout=CEILING)[0]) for process in (first, second)]
    assert answers == [sum(range(10_000)), sum(range(10_000, 30_000))]


@cases.add(needs_url=True)
def one_that_is_killed_leaves_nothing_to_see(stand: Stand) -> None:
    """kill -9 in the middle of a write, after rows were written: the id can be used again, and what is left goes."""
    stand.write(numbers(3), "obj_other")
    with stand.away(), stand.child("hang", "obj_a", 60_000) as process:
        _wait_for_word(process, "written")
        process.kill()
        process.wait(CEILING)
    assert stand.backend.meta("obj_a") is None
    assert stand.ids() == ["obj_other"]
    assert stand.backend.prune(datetime.now(UTC) - timedelta(hours=1)) == 0, "it may still be writing"
    stand.write(numbers(7), "obj_a")
    same(stand.read("obj_a"), numbers(7))
    stand.backend.prune(datetime.now(UTC) + timedelta(hours=1))
    assert stand.backend.prune(datetime.now(UTC) + timedelta(hours=1)) == 0
    same(stand.read("obj_a"), numbers(7))
    assert stand.ids() == ["obj_a", "obj_other"]


def _wait_for_word(process: "subprocess.Popen[str]", word: str) -> None:
    assert process.stdout is not None
    said = process.stdout.readline().strip()
    assert said == word, f"the writer said {said!r}"
