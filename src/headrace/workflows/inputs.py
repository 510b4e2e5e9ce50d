"""The results of earlier tasks, spliced into the stored arguments of one that takes them. Pure.

A task says in its options what its inputs are, by number: {"at": …, "shape": …}. `at` is the name of a parameter, or a
path to a place inside of an argument (["rows", 2], ["*", 0]); "*" alone appends to `*args`. `shape` is what the results
of the edges of that input make, in their order: "one" is one result, {"n": k} a list of k, [shape, …] a nested list.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, cast

import orjson

from headrace.core.errors import PayloadError

REST = "*"


def filled(arguments: str, inputs: Sequence[Mapping[str, Any]], results: Sequence[tuple[int, str | None]]) -> str:
    """The arguments as JSON, with the results in their places. `results` are (number of the input, JSON text), by input
    and in the order of their edges; a task that ended without a result gives None, which becomes null.

    The texts are copied as they are: a large result is not parsed here.
    """
    found = {number: [text for _, text in texts] for number, texts in groupby(results, key=lambda result: result[0])}
    values: dict[str, Any] = orjson.loads(arguments)
    for number, spec in enumerate(inputs):
        texts = found.pop(number, [])
        remaining = iter(texts)
        value = _shaped(spec["shape"], remaining, number)
        if next(remaining, remaining) is not remaining:
            raise PayloadError(f"input {number} has more results ({len(texts)}) than its shape takes")
        _put(values, spec["at"], value)
    if found:
        raise PayloadError(f"there are results for input {min(found)}, and the task has {len(inputs)} inputs")
    return orjson.dumps(values, option=orjson.OPT_SORT_KEYS).decode()


def _shaped(shape: Any, texts: Iterator[str | None], number: int) -> Any:
    try:
        if shape == "one":
            text = next(texts)
            return None if text is None else orjson.Fragment(text)
        if isinstance(shape, dict):
            return [_shaped("one", texts, number) for _ in range(cast("dict[str, int]", shape)["n"])]
    except StopIteration:
        raise PayloadError(f"input {number} has fewer results than its shape takes") from None
    return [_shaped(part, texts, number) for part in shape]


def _put(values: dict[str, Any], at: str | Sequence[str | int], value: Any) -> None:
    if at == REST:
        values.setdefault(REST, []).append(value)
    elif isinstance(at, str):
        values[at] = value
    else:
        *way, last = at
        inner: Any = values
        for step in way:
            inner = inner[step]
        inner[last] = value
