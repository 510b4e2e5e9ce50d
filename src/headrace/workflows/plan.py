"""From a composition to the tasks that it becomes: checked, in an order in which each comes after what it waits for."""

import dataclasses
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from headrace.core import payload
from headrace.core.errors import ArgumentError, GraphError
from headrace.core.task import After, EdgeKind, NewTask
from headrace.workflows.base import Flow, Location, Origin, Reference, SignedTask, Slot
from headrace.workflows.builtin import APPROVED, COLLECT
from headrace.workflows.spool import Spool
from headrace.workflows.value import Output, Upstream, Value, edge, shape, skeleton, sources

# Compositions inside of compositions; each takes a few frames of the stack.
DEEPEST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is written: tasks whose `after` names earlier places. `value` says which of them make the result."""

    tasks: Sequence[NewTask]
    value: Value
    title: str

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[NewTask]:
        return iter(self.tasks)

    @property
    def edges(self) -> Iterator[tuple[int, After]]:
        return ((place, after) for place, task in enumerate(self.tasks) for after in task.after)


class Planner:
    """Collects the tasks of one plan. With `job`, they are for a job that is there already."""

    def __init__(self, origin: Origin | None, *, job: int | None = None) -> None:
        self.tasks = Spool()
        self.origin = origin
        # The name of a task, if there is one, that would take a result and that nothing of this plan comes before.
        self.taker: str | None = None
        self._job = job
        self._open: list[Flow[Any]] = []

    def belongs(self, origin: Origin, name: str) -> None:
        if self.origin is None:
            self.origin = origin
        elif self.origin is not origin:
            raise GraphError(f"task {name} belongs to another app; all tasks of a graph are of one app")

    def add(self, task: NewTask, after: Sequence[After] = (), *, label: str | None = None) -> int:
        """Its place."""
        changes: dict[str, Any] = {}
        if after:
            changes["after"] = (*task.after, *after)
        if self._job is not None:
            changes["job"] = self._job
        if label is not None:
            changes["options"] = with_option(task.options, "label", payload.dumps(label))
        return self.tasks.append(dataclasses.replace(task, **changes) if changes else task)

    def expand(self, flow: object, upstream: Upstream | None = None) -> Output:
        if isinstance(flow, NewTask):
            return self._fixed(flow, upstream)
        if not isinstance(flow, Flow):
            raise GraphError(f"{flow!r} is no part of a workflow; make one with task.s(…) or task.si(…)")
        flow = cast("Flow[Any]", flow)
        with self._inside(flow):
            return flow.expand(self, upstream)

    def call(
        self,
        task: SignedTask,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        upstream: Upstream | None,
        *,
        takes: bool,
        after: Sequence[After] = (),
        label: str | None = None,
    ) -> Output:
        """A call of a task, after what comes before it, whose result is its first argument where it `takes` that."""
        self.belongs(task.origin, task.name)
        passing = takes and upstream is not None and upstream.passes
        before, kind = (None, EdgeKind.ON_SUCCESS) if upstream is None else upstream.resolved(self, passing=passing)
        inputs = _Inputs(self)
        edges: list[After] = []
        if before is not None and passing:
            first = inputs.taken(before, kind)
            new, places = _prepared(task, (first, *inputs.all(args)), inputs.named(kwargs), before.name, args, kwargs)
        else:
            new, places = task.prepare_call(inputs.all(args), inputs.named(kwargs))
            edges = [] if before is None else [edge(source, kind) for source in before.tasks()]
        edges = [*inputs.edges, *_more(inputs.edges, [*edges, *after])]
        if self.taker is None and takes and not passing and not any(each.local for each in edges):
            self.taker = task.name
        if inputs.shapes:
            spec = [{"at": places[number], "shape": shape} for number, shape in enumerate(inputs.shapes)]
            new = dataclasses.replace(new, options=with_option(new.options, "inputs", payload.dumps(spec)))
        return Output(value=self.add(new, edges, label=label), name=f"task {task.name}")

    def join(self, output: Output, *, kind: EdgeKind, passing: bool) -> Output:
        """One task between many and many. Where nobody takes the results, they are not fetched either."""
        inputs = _Inputs(self)
        value: Any = inputs.taken(output, kind) if passing else ()
        options: dict[str, Any] = {}
        arguments: dict[str, Any] = {}
        if isinstance(value, Slot):
            options["inputs"] = [{"at": "results", "shape": inputs.shapes[0]}]
        else:
            arguments["results"] = value
        edges = inputs.edges if passing else [edge(source, kind) for source in output.tasks()]
        task = self._builtin(COLLECT, arguments=payload.dumps(arguments), options=options)
        return Output(value=self.add(task, edges), name=output.name)

    def approval(self, role: str | None, label: str | None, upstream: Upstream | None) -> Output:
        task = self._builtin(APPROVED, arguments="{}", options={"approval": {} if role is None else {"role": role}})
        before, kind = (None, EdgeKind.ON_SUCCESS) if upstream is None else upstream.resolved(self, passing=False)
        edges = [] if before is None else [edge(source, kind) for source in before.tasks()]
        # Its task's name is a path inside of headrace, which says nothing to the person who is asked.
        label = label or ("approve" if role is None else f"approve ({role})")
        return Output(value=self.add(dataclasses.replace(task, approval=True), edges, label=label), name="an approval")

    def plan(self, flow: Flow[Any]) -> Plan:
        return self.finished(self.expand(flow), flow.title)

    def finished(self, output: Output, title: str) -> Plan:
        """A plan always has a task: a job of none would wait for some for ever."""
        if not self.tasks:
            arguments = payload.dumps({"results": skeleton(output.value)})
            output = Output(value=self.add(self._builtin(COLLECT, arguments=arguments, options={})))
        return Plan(tasks=self.tasks, value=output.value, title=title)

    def _fixed(self, task: NewTask, upstream: Upstream | None) -> Output:
        """A task that was prepared elsewhere: it takes no result."""
        before, kind = (None, EdgeKind.ON_SUCCESS) if upstream is None else upstream.resolved(self, passing=False)
        edges = [] if before is None else [edge(source, kind) for source in before.tasks()]
        return Output(value=self.add(task, _more(task.after, edges)), name=f"task {task.name}")

    def _builtin(self, path: str, *, arguments: str, options: Mapping[str, Any]) -> NewTask:
        if self.origin is None:
            raise GraphError("a workflow needs a task of an app in it; use app.jobs.enqueue for one without")
        return self.origin.builtin(path, arguments=arguments, options=options)

    @contextmanager
    def _inside(self, flow: Flow[Any]) -> Generator[None]:
        if any(outer is flow for outer in self._open):
            raise GraphError(f"{flow.title} contains itself: a circle can never run")
        if len(self._open) >= DEEPEST:
            raise GraphError(f"compositions are nested deeper than {DEEPEST}; give chain and group many parts instead")
        self._open.append(flow)
        try:
            yield
        finally:
            self._open.pop()


class _Inputs:
    """The inputs of one call, while its arguments are looked through."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self.shapes: list[Any] = []
        self.edges: list[After] = []

    def taken(self, output: Output, kind: EdgeKind = EdgeKind.ON_SUCCESS) -> Any:
        """What stands in the call for an output: a slot, or the value itself where no task is in it."""
        found: Any = self._slot(output.value, kind)
        self.edges += [edge(source, kind) for source in output.waits]
        return found

    def all(self, args: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(self._argument(value) for value in args)

    def named(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self._argument(value) for name, value in kwargs.items()}

    def _argument(self, value: Any) -> Any:
        if isinstance(value, Reference):
            return self.taken(value.output(self._planner))
        if not isinstance(value, list | tuple) or not any(isinstance(part, Reference) for part in cast("Any", value)):
            return cast("Any", value)
        parts = cast("list[Any]", value)
        if not all(isinstance(part, Reference) for part in parts):
            return [self._argument(part) if isinstance(part, Reference) else part for part in parts]
        outputs = [cast("Reference", part).output(self._planner) for part in parts]
        waits = tuple(wait for output in outputs for wait in output.waits)
        return self.taken(Output(value=[output.value for output in outputs], waits=waits))

    def _slot(self, value: Value, kind: EdgeKind) -> Any:
        number = len(self.shapes)
        edges = [edge(source, kind, number) for source in sources(value)]
        if not edges:
            return skeleton(value)
        self.shapes.append(shape(value))
        self.edges += edges
        return Slot(number)


def _more(passing: Sequence[After], waits: Sequence[After]) -> Sequence[After]:
    """Those of `waits` that say more than the edges that pass a result."""
    if not passing or not waits:
        return waits
    said = {(each.local, each.task) for each in passing if each.kind is EdgeKind.ON_SUCCESS}
    return [each for each in waits if each.kind is not EdgeKind.ON_SUCCESS or (each.local, each.task) not in said]


def _prepared(
    task: SignedTask,
    full: tuple[Any, ...],
    named: Mapping[str, Any],
    before: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> tuple[NewTask, Mapping[int, Location]]:
    try:
        return task.prepare_call(full, named)
    except ArgumentError as error:
        if not error.surplus:
            raise
        try:
            task.prepare_call(full[1:], named)
        except ArgumentError:
            raise error from None  # not the passed result alone is too much
        raise GraphError(
            f"task {task.name} takes no (more) arguments, and {before} passes its result to it; use "
            f"{task.name.rpartition('.')[2]}.si({_shown(args, kwargs)}), which waits and takes none ({error})"
        ) from None


def _shown(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    return "…" if args or kwargs else ""


@lru_cache(maxsize=256)
def with_option(options: str, key: str, value: str) -> str:
    """Stored options with one more; the tasks of a group have the same ones."""
    return payload.dumps({**payload.loads(options), key: payload.loads(value)})


def planned(flow: Flow[Any], *, origin: Origin | None = None, job: int | None = None) -> Plan:
    """For the job of that id, or for one of its own."""
    return Planner(origin or flow.origin(), job=job).plan(flow)


def needed_origin(flow: Flow[Any]) -> Origin:
    origin = flow.origin()
    if origin is None:
        raise GraphError(f"{flow.title} names no task, so it has no app; use app.jobs.enqueue(flow) for it")
    return origin
