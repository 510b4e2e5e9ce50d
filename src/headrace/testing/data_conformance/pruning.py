"""What is complete is never pruned."""

from datetime import UTC, datetime, timedelta

from headrace.testing.data_conformance.case import Cases
from headrace.testing.data_conformance.stand import Stand, failing, numbers, refuses, same

cases = Cases("pruning")


@cases.add()
def complete_ones_stay(stand: Stand) -> None:
    stand.write(numbers(3), "obj_a")
    stand.write(numbers(30_000), "obj_b", replace=True)
    stand.backend.concat(stand.draft("obj_c"), ["obj_b", "obj_a"])
    stand.write(numbers(4), "obj_a", replace=True)
    stand.backend.drop("obj_b")
    stand.backend.prune(datetime.now(UTC) + timedelta(hours=1))
    assert stand.ids() == ["obj_a", "obj_c"]
    same(stand.read("obj_a"), numbers(4))
    assert stand.read("obj_c").num_rows == 30_003
    assert stand.backend.prune(datetime.now(UTC) + timedelta(hours=1)) == 0


@cases.add()
def a_writer_that_was_told_leaves_nothing(stand: Stand) -> None:
    table = numbers(50_000)
    batches = failing(table.to_batches(max_chunksize=9000), 4, RuntimeError("broken off"))
    refuses(RuntimeError, lambda: stand.backend.write(stand.draft("obj_a"), table.schema, batches), "broken off")
    assert stand.backend.prune(datetime.now(UTC) + timedelta(hours=1)) == 0
