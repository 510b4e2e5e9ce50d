"""One module per subject, run in processes of its own by `bench.peer`.

A module has `setup()` to make its schema in an empty store, `client()`, a context manager (sync or async) that gives a
`Client`, and `worker()`, which becomes a worker until it is ended. What it is told stands in the environment:
`BENCH_URL` is the store, `BENCH_OPTIONS` the subject's options.
"""

import json
import os
from collections.abc import Callable
from typing import Any, NamedTuple

OPTIONS: dict[str, Any] = json.loads(os.environ.get("BENCH_OPTIONS", "{}"))
URL: str = os.environ.get("BENCH_URL", "")
WORKER: str = os.environ.get("BENCH_WORKER", "0")


class Client(NamedTuple):
    """`one(sent)` enqueues a task, `bulk(n)` many of them in the fastest way that the library documents."""

    one: Callable[[float], Any]
    bulk: Callable[[int], Any]


def chunks(n: int, size: int = 1000) -> list[int]:
    """Sizes that add up to `n`, none above `size`."""
    return [size] * (n // size) + ([n % size] if n % size else [])
