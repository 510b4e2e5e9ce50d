"""From an operation to its graph."""

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from headrace.core import payload
from headrace.core.errors import ArgumentError, OptionError
from headrace.core.task import NewTask
from headrace.data.operations import steps
from headrace.data.operations.callbacks import Callback
from headrace.workflows.base import Flow, Location, Origin, Slot
from headrace.workflows.compose import chain, chord, group
from headrace.workflows.signatures import Signature

# Partial results that one step takes together: what it holds in memory is bounded, whatever the number of chunks.
_FAN_IN = 64
_KINDS: dict[str, tuple[type, str]] = {
    "queue": (str, "a name"),
    "priority": (int, "a whole number"),
    "critical": (bool, "True or False"),
    "max_attempts": (int, "a number from 1 on"),
}
_OPTIONS = frozenset(_KINDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A function of `steps` as a task of an app (workflows.base.SignedTask)."""

    origin: Origin
    function: Callable[..., Any]
    shared: bool = True  # a child process can open the place; else only the worker itself can
    changes: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def name(self) -> str:
        return f"{self.function.__module__}.{self.function.__qualname__}"

    def using(self, **options: Any) -> Self:
        if unknown := sorted(set(options) - _OPTIONS):
            raise OptionError(f"the tasks of a table take {', '.join(sorted(_OPTIONS))}, not {unknown[0]!r}")
        for name, value in options.items():
            kind, says = _KINDS[name]
            if type(value) is not kind or (name == "queue" and not value) or (name == "max_attempts" and value < 1):
                raise OptionError(f"{name} of the tasks of a table is {says}, not {value!r}")
        return dataclasses.replace(self, changes={**self.changes, **options})

    def s(self, *args: Any, **kwargs: Any) -> Signature[Any]:
        return Signature(task=self, args=args, kwargs=kwargs)

    def si(self, *args: Any, **kwargs: Any) -> Signature[Any]:
        return Signature(task=self, args=args, kwargs=kwargs, immutable=True)

    def prepare_call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[NewTask, Mapping[int, Location]]:
        try:
            bound = inspect.signature(self.function).bind(*args, **kwargs).arguments
        except TypeError as error:
            raise ArgumentError(f"{self.name}: {error}") from None
        places = {value.number: name for name, value in bound.items() if isinstance(value, Slot)}
        given = {name: value for name, value in bound.items() if not isinstance(value, Slot)}
        if self.shared:
            task = self.origin.builtin(self.name, arguments=payload.dumps(given), options={})
            # A child process can be killed at its limit, and a callback may take a core for itself.
            return dataclasses.replace(task, pool="child", **self.changes), places
        arguments = payload.dumps({"step": self.function.__name__, "given": given})
        task = self.origin.builtin(steps.IN_WORKER, arguments=arguments, options={})
        return dataclasses.replace(task, **self.changes), {number: ["given", name] for number, name in places.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """The rows that an operation works over, cut into chunks."""

    id: str
    start: int
    end: int
    chunk_size: int

    def __len__(self) -> int:
        return -(-(self.end - self.start) // self.chunk_size)

    def views(self) -> Iterator[dict[str, Any]]:
        for offset in range(self.start, self.end, self.chunk_size):
            yield {"table_id": self.id, "offset": offset, "limit": min(self.chunk_size, self.end - offset)}

    def whole(self) -> dict[str, Any]:
        return {"table_id": self.id, "offset": self.start, "limit": self.end - self.start}


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """What the graphs of one call have in common."""

    origin: Origin
    to: str  # the id of the object that comes out
    shared: bool
    options: Mapping[str, Any]

    def step(self, function: Callable[..., Any]) -> Step:
        return Step(origin=self.origin, function=function, shared=self.shared).using(**self.options)

    def over_chunks(
        self, function: Callable[..., Any], rows: Slice, label: str, **arguments: Any
    ) -> Iterator[Signature[Any]]:
        step = self.step(function)
        for chunk, view in enumerate(rows.views()):
            made = step.si(chunk=chunk, view=view, to=f"{self.to}_c{chunk}", **arguments)
            yield made.using(name=f"{label} [{view['offset']}:{view['offset'] + view['limit']}]")

    def map(self, rows: Slice, callback: Callback, schema: Any, given: Any) -> Flow[Any]:
        text = steps.write_schema(schema)
        named = {"callback": callback.path, "mode": callback.mode}
        chunks = self.over_chunks(steps.map_chunk, rows, f"map {callback.path}", schema=text, **named)
        body = self.step(steps.collect)
        # Of no rows nobody can say what columns a callback makes, unless it can be asked.
        empty = {"empty": text} if schema is not None else {"empty": steps.write_schema(given), **named}
        return chord(group(chunks), body.s(to=self.to, **empty))

    def filter(self, rows: Slice, callback: Callback, given: Any) -> Flow[Any]:
        chunks = self.over_chunks(
            steps.filter_chunk, rows, f"filter {callback.path}", callback=callback.path, mode=callback.mode
        )
        return chord(group(chunks), self.step(steps.collect).s(to=self.to, empty=steps.write_schema(given)))

    def reduce(self, rows: Slice, callback: Callback, given: Any) -> Flow[Any]:
        named = {"callback": callback.path, "mode": callback.mode}
        parts: list[Flow[Any]] = list(self.over_chunks(steps.reduce_chunk, rows, f"reduce {callback.path}", **named))
        combine, empty = self.step(steps.reduce_partials), steps.write_schema(given)
        level = 0
        while len(parts) > _FAN_IN:
            some = [parts[first : first + _FAN_IN] for first in range(0, len(parts), _FAN_IN)]
            parts = [
                chord(group(few), combine.s(to=f"{self.to}_l{level}_{number}", empty=empty, **named))
                for number, few in enumerate(some)
            ]
            level += 1
        return chord(group(parts), combine.s(to=self.to, empty=empty, **named))

    def sort(self, rows: Slice, keys: Sequence[tuple[str, str]], given: Any) -> Flow[Any]:
        by = [list(key) for key in keys]
        # As many parts as chunks: with fewer, a part would hold more rows than a chunk may. So parts times runs are
        # read, and each of these reads costs the same whatever their number (Backend.read_part).
        cuts, parts = f"{self.to}_cuts", max(1, len(rows))
        first = self.step(steps.find_boundaries).si(sides=[rows.whole()], to=cuts, by=by, parts=parts)
        runs = [self._run(rows, "sort", by, number, view) for number, view in enumerate(rows.views())]
        merge, of = self.step(steps.merge_part), {"of": self.to, "runs": len(runs)}
        merged = [merge.si(part=part, to=f"{self.to}_p{part}", by=by, **of) for part in range(parts)]
        return self._shuffled(first, runs, merged, given, cuts)

    def join(self, left: Slice, right: Slice, on: Sequence[str], how: str, suffix: str, given: Any) -> Flow[Any]:
        by = [[name, "ascending"] for name in on]
        cuts, parts = f"{self.to}_cuts", max(1, len(left), len(right))
        sides = [side.whole() for side in (left, right) if side.end > side.start]
        first = self.step(steps.find_boundaries).si(sides=sides, to=cuts, by=by, parts=parts)
        views = [*left.views(), *right.views()]
        runs = [self._run(left, "join", by, number, view) for number, view in enumerate(views)]
        part_of = self.step(steps.join_part)
        of = {"of": self.to, "runs": [len(left), len(right)]}
        given_on = {"sides": [left.id, right.id], "on": list(on), "how": how, "suffix": suffix}
        joined = [part_of.si(part=part, to=f"{self.to}_p{part}", **of, **given_on) for part in range(parts)]
        return self._shuffled(first, runs, joined, given, cuts)

    def nothing(self, given: Any) -> Flow[Any]:
        """An empty object of these columns."""
        return self.step(steps.collect).si(parts=[], to=self.to, empty=steps.write_schema(given))

    def _run(self, rows: Slice, label: str, by: Any, number: int, view: dict[str, Any]) -> Signature[Any]:
        name = f"{label} {view['table_id']} [{view['offset']}:{view['offset'] + view['limit']}]"
        (to,) = steps.run_ids(self.to, [number])
        return self.step(steps.sort_run).s(chunk=number, view=view, to=to, by=by).using(name=name)

    def _shuffled(
        self, first: Flow[Any], runs: Sequence[Flow[Any]], parts: Sequence[Flow[Any]], given: Any, cuts: str
    ) -> Flow[Any]:
        temporary = [cuts, *steps.run_ids(self.to, range(len(runs)))]
        last = self.step(steps.finish_shuffle).s(to=self.to, empty=steps.write_schema(given), temporary=temporary)
        # The parts take nothing from the runs but that they are there: the ledger holds as much for each, however many
        # there are. A group of one would pass its only result on as a list all the same: the last step takes that.
        return chain(first, group(runs), group(parts), last)
