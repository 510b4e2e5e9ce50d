"""Which fields a body has, for whoever wrote one that there is none of. Pure."""

import types
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

_LISTED = 30  # that a refusal names


def advice(body: Any, path: Sequence[str | int]) -> str:
    """`body` is the type of the whole one, `path` leads to the field that is too much."""
    *above, last = path
    known = sorted({name for model in _models_at([body], above) for name in model.model_fields})
    return f"there is no such field; {meant(str(last), known)}there are {', '.join(known[:_LISTED])}" if known else ""


def meant(name: str, known: Collection[str]) -> str:
    near = get_close_matches(name.lower()[:100], known, n=1)
    return f"did you mean {near[0]!r}? " if near else ""


def _models_at(kinds: Iterable[Any], path: Sequence[str | int]) -> Iterator[type[BaseModel]]:
    found = [part for kind in kinds for part in _parts(kind)]
    if not path:
        yield from (each for each in found if isinstance(each, type) and issubclass(each, BaseModel))
        return
    first, *rest = path
    below: list[Any] = []
    for each in found:
        if isinstance(each, type) and issubclass(each, BaseModel):
            below += [each.model_fields[first].annotation] if first in each.model_fields else []
        elif issubclass(get_origin(each) or object, Sequence | Mapping):
            below += get_args(each)[-1:]
    yield from _models_at(below, rest)


def _parts(kind: Any) -> Iterator[Any]:
    """Of a choice each, without what is only said about them."""
    if get_origin(kind) is Annotated:
        yield from _parts(get_args(kind)[0])
    elif get_origin(kind) in (Union, types.UnionType):
        for each in get_args(kind):
            yield from _parts(each)
    else:
        yield kind
