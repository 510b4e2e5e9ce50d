"""An object is there when it is complete, and then it stays as it is."""

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any, cast

import pyarrow

from headrace.core.errors import DataError, NotFound, ObjectExists
from headrace.testing.data_conformance.case import Cases
from headrace.testing.data_conformance.stand import CEILING, Stand, failing, numbers, refuses, same

pa: Any = cast("Any", pyarrow)

cases = Cases("writing")


@cases.add()
def what_is_known_of_it_comes_back(stand: Stand) -> None:
    created = datetime(2030, 5, 6, 7, 8, 9, 123_456, tzinfo=UTC)
    draft = stand.draft(
        "obj_known", created_at=created, name="orders of Zoë", owner="ledger", job=2**40, task=7, kept=True,
        expires_at=created + timedelta(days=3),
    )  # fmt: skip
    table = numbers(5)
    written = stand.backend.write(draft, table.schema, table.to_batches())
    assert (written.rows, written.schema) == (5, table.schema)
    assert written.bytes > 0
    for backend in (stand.backend, stand.another()):
        assert backend.meta("obj_known") == written
        assert list(backend.list()) == [written]
    assert (written.id, written.name, written.owner) == ("obj_known", "orders of Zoë", "ledger")
    assert (written.job, written.task, written.kept) == (2**40, 7, True)
    assert (written.created_at, written.expires_at) == (created, created + timedelta(days=3))


@cases.add()
def the_batches_may_have_any_size(stand: Stand) -> None:
    table = numbers(30_500)
    cuts = [0, 1, 1, 12_000, 12_001, 29_999, 30_500]
    batches = [batch for a, b in pairwise(cuts) for batch in table.slice(a, b - a).to_batches()]
    empty = pa.RecordBatch.from_pylist([], schema=table.schema)
    stand.backend.write(stand.draft("obj_a"), table.schema, iter([empty, *batches, empty]))
    same(stand.read("obj_a"), table)


@cases.add("A29")
def an_empty_one_is_one(stand: Stand) -> None:
    """No rows is a count of 0, and nothing to read."""
    table = numbers(0)
    emptied = numbers(3).slice(0, 0).to_batches()
    for id, batches in (("obj_a", list[Any]()), ("obj_b", table.to_batches()), ("obj_c", emptied)):
        assert stand.backend.write(stand.draft(id), table.schema, batches).rows == 0
        same(stand.read(id), table)
        same(stand.read(id, 0, 10, ["text"]), table.select(["text"]))
    nothing = pa.table({})
    assert stand.write(nothing, "obj_d").rows == 0
    assert stand.meta("obj_d").schema.names == []
    same(stand.read("obj_d"), nothing)


@cases.add()
def what_is_not_there_is_not_found(stand: Stand) -> None:
    for id in ("obj_nobody", "obj_../../etc", "nothing", ""):
        assert stand.backend.meta(id) is None
        assert stand.backend.drop(id) is False
        refuses(NotFound, lambda id=id: list(stand.backend.read(id)), id)
    assert stand.ids() == []


@cases.add()
def an_id_is_taken_once(stand: Stand) -> None:
    stand.write(numbers(3), "obj_a")
    refuses(ObjectExists, lambda: stand.write(numbers(4), "obj_a"), "obj_a")
    same(stand.read("obj_a"), numbers(3))
    assert stand.ids() == ["obj_a"]


@cases.add()
def of_repeats_the_last_complete_one_wins(stand: Stand) -> None:
    stand.write(numbers(3), "obj_a", replace=True)
    stand.write(numbers(20_000, start=5), "obj_a", replace=True)
    same(stand.read("obj_a"), numbers(20_000, start=5))
    broken = failing(numbers(8).to_batches(max_chunksize=2), 2, RuntimeError("broken off"))
    draft = stand.draft("obj_a")
    refuses(RuntimeError, lambda: stand.backend.write(draft, numbers(0).schema, broken, replace=True), "broken off")
    same(stand.read("obj_a"), numbers(20_000, start=5))
    assert stand.meta("obj_a").rows == 20_000
    assert stand.ids() == ["obj_a"]


@cases.add()
def what_breaks_off_was_never_there(stand: Stand) -> None:
    table = numbers(50_000)
    for after in (0, 1, 40):
        batches = failing(table.to_batches(max_chunksize=1000), after, RuntimeError("broken off"))
        refuses(RuntimeError, partial(stand.backend.write, stand.draft("obj_a"), table.schema, batches), "broken off")
        assert stand.backend.meta("obj_a") is None
        assert stand.ids() == []
    stand.write(table, "obj_a")
    same(stand.read("obj_a"), table)


@cases.add()
def a_batch_of_another_schema_is_refused(stand: Stand) -> None:
    other = pa.table({"n": ["one"], "text": ["two"]})
    batches = [*numbers(2).to_batches(), *other.to_batches()]
    refuses(DataError, lambda: stand.backend.write(stand.draft("obj_a"), numbers(0).schema, batches), "n: string")
    assert stand.backend.meta("obj_a") is None


@cases.add()
def an_impossible_id_is_refused(stand: Stand) -> None:
    for id in ("", "../obj_a", "obj_", "obj_A", "obj_a/b", "obj_a'b", "obj_" + "a" * 81, "table"):
        draft = replace(stand.draft(), id=id)
        refuses(DataError, partial(stand.backend.write, draft, numbers(1).schema, []))
        refuses(DataError, partial(stand.backend.concat, draft, ["obj_x"]))
    assert stand.ids() == []


@cases.add()
def dropped_is_gone(stand: Stand) -> None:
    stand.write(numbers(3), "obj_a")
    stand.write(numbers(4), "obj_b")
    assert stand.backend.drop("obj_a") is True
    assert stand.backend.drop("obj_a") is False
    assert stand.another().meta("obj_a") is None
    assert stand.ids() == ["obj_b"]
    stand.write(numbers(5), "obj_a")
    same(stand.read("obj_a"), numbers(5))
    same(stand.read("obj_b"), numbers(4))


@cases.add()
def the_list_is_by_id(stand: Stand) -> None:
    for id in ("obj_c", "obj_a", "obj_b"):
        stand.write(numbers(1), id)
    assert stand.ids() == ["obj_a", "obj_b", "obj_c"]
    assert [meta.rows for meta in stand.backend.list()] == [1, 1, 1]


@cases.add()
def threads_write_and_read_side_by_side(stand: Stand) -> None:
    """On one backend. Nobody sees a half, and every one ends up as it was meant."""
    wrong: list[object] = []

    def write(number: int) -> None:
        try:
            stand.write(numbers(3000, start=number), f"obj_{number}")
            same(stand.read(f"obj_{number}"), numbers(3000, start=number))
            wrong.extend(meta for meta in stand.backend.list() if meta.rows != 3000)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(CEILING)
    assert wrong == []
    assert stand.ids() == [f"obj_{number}" for number in range(6)]


@cases.add()
def a_query_is_run_or_refused(stand: Stand) -> None:
    """A place that runs queries stores what they give; one that does not says so."""
    try:
        made = stand.backend.query(stand.draft("obj_q"), "select 1 as one")
    except DataError:
        assert stand.backend.meta("obj_q") is None
    else:
        assert (made.rows, made.schema.names) == (1, ["one"])
        assert stand.read("obj_q").to_pylist() == [{"one": 1}]
    refuses(DataError, lambda: stand.backend.query(stand.draft("obj_r"), "select from nowhere"))
    assert stand.backend.meta("obj_r") is None
