"""The other process: python -m headrace.testing.data_conformance.child URL VERB ID …"""

import os
import resource
import sys
from collections.abc import Generator
from datetime import UTC, datetime
from typing import Any, cast

import pyarrow

from headrace.data.backend import Backend, Draft
from headrace.data.places import open_backend
from headrace.testing.data_conformance.stand import numbers

pa: Any = cast("Any", pyarrow)


def main(url: str, verb: str, id: str, *words: str) -> None:
    backend = open_backend(url)
    _VERBS[verb](backend, id, *map(int, words))
    backend.close()


def _write(backend: Backend, id: str, rows: int) -> None:
    table = numbers(rows)
    print(backend.write(_draft(id), table.schema, table.to_batches(max_chunksize=1000)).rows)


def _sum(backend: Backend, id: str, offset: int, limit: int) -> None:
    print(sum(sum(batch.column(0).to_pylist()) for batch in backend.read(id, offset=offset, limit=limit)))


def _hang(backend: Backend, id: str, rows: int) -> None:
    """Write some, say so, and write no more."""
    table = numbers(rows)

    def batches() -> Generator[Any]:
        yield from table.to_batches(max_chunksize=1000)
        print("written", flush=True)
        sys.stdin.read()

    backend.write(_draft(id), table.schema, batches())


def _stream(backend: Backend, id: str, megabytes: int) -> None:
    """Write and read so much, and say by how many megabytes this process grew."""
    kind = pa.binary()
    schema = pa.schema([("noise", kind)])

    def batches(count: int) -> Generator[Any]:
        for _ in range(count):
            yield pa.record_batch([pa.array([os.urandom(1000) for _ in range(1000)], kind)], schema=schema)

    # What the library takes for itself at its first use is not the table.
    backend.write(_draft(f"{id}_first"), schema, batches(4))
    assert sum(batch.num_rows for batch in backend.read(f"{id}_first")) == 4000
    backend.drop(f"{id}_first")
    before = _highest()
    backend.write(_draft(id), schema, batches(megabytes))
    assert sum(batch.num_rows for batch in backend.read(id)) == megabytes * 1000
    print(_highest() - before)


def _highest() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _draft(id: str) -> Draft:
    return Draft(id=id, created_at=datetime.now(UTC))


_VERBS = {"write": _write, "sum": _sum, "hang": _hang, "stream": _stream}

if __name__ == "__main__":
    main(*sys.argv[1:])
