"""`Graph`: tasks and edges by hand, where chains and groups do not draw the picture."""

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast, override

from headrace.core.errors import GraphError
from headrace.core.task import After, EdgeKind, NewTask
from headrace.workflows.base import Flow, Origin, Reference
from headrace.workflows.plan import Plan, Planner
from headrace.workflows.signatures import Signature
from headrace.workflows.value import Existing, Output, Source, Upstream, Value, sources

type Kind = Literal["on_success", "on_done", "on_failure"] | EdgeKind


@dataclass(frozen=True, slots=True, eq=False)
class Node(Reference):
    """What was added to a graph. As an argument of a later signature it passes its result."""

    graph: "Graph"
    made: Output

    @override
    def output(self, planner: Planner) -> Output:
        if self.graph.planner is not planner:
            raise GraphError(f"{self.made.name} is a node of {self.graph.title}, not of this one")
        self.graph.use(self.made)
        return self.made

    def __repr__(self) -> str:
        return f"<node of {self.graph.title}: {self.made.name}>"


class Graph(Flow[Any]):
    """Nodes are added in an order in which each comes after those that it waits for: a circle cannot be drawn.

    Its result is that of the node that nothing waits for; of several such, the list.
    """

    __slots__ = ("_lists", "_open", "name", "planner")

    def __init__(self, name: str) -> None:
        self.name = name
        self.planner = Planner(None)
        # A node is a bit here, whatever its tasks take: by place, whether it is a node's, and nothing waits for it.
        self._open = bytearray()
        self._lists: dict[int, Value] = {}  # nodes of more than one task, by the place of the first

    def add(
        self,
        part: Flow[Any] | NewTask,
        *,
        after: "Node | Iterable[Node]" = (),
        kind: Kind = EdgeKind.ON_SUCCESS,
        name: str | None = None,
    ) -> Node:
        """Add a signature, or a composition, that waits for the nodes of `after` and for those among its arguments."""
        waits = self._waits(after)
        kind = self._kind(kind)
        if name is not None and isinstance(part, Signature):
            part = part.using(name=name)
        before = None
        if waits:
            before = Upstream(output=Output(value=(), waits=waits), kind=kind, passes=False)
        made = self.planner.expand(part, before)
        self._open.extend(bytes(len(self.planner.tasks) - len(self._open)))
        self._mark(made, 1)
        if not isinstance(made.value, int) and (first := next(_places(made), None)) is not None:
            self._lists[first] = made.value
        return Node(self, made)

    def use(self, made: Output) -> None:
        """Something waits for it."""
        self._mark(made, 0)

    @property
    def result(self) -> Value:
        """The value of what nothing waits for."""
        found: list[Value] = []
        covered = set[int]()
        place = self._open.find(1)
        while place >= 0:
            value = self._lists.get(place, place)
            if place not in covered:
                found.append(value)
                if not isinstance(value, int):
                    covered.update(source for source in sources(value) if isinstance(source, int))
            place = self._open.find(1, place + 1)
        return found[0] if len(found) == 1 else found

    @property
    @override
    def title(self) -> str:
        return f"graph {self.name!r}"

    @override
    def origin(self) -> Origin | None:
        return self.planner.origin

    @override
    def prepare(self) -> Plan:
        return self.planner.finished(Output(value=self.result), self.name)

    @override
    def expand(self, planner: Planner, upstream: Upstream | None) -> Output:
        """Inside something else, what waits for nothing here waits for what came before."""
        if self.planner.origin is not None:
            planner.belongs(self.planner.origin, self.title)
        before: Upstream | None = None
        taker = self.planner.taker
        if upstream is not None:
            if upstream.passes and taker is not None:
                raise GraphError(
                    f"{self.title}: {upstream.output.name or 'what comes before it'} passes its result, and task "
                    f"{taker}, which waits for no other node, is made by s and cannot take it: a graph takes no "
                    f"result. Use {taker.rpartition('.')[2]}.si(…), which waits and takes none, or make what comes "
                    "before a node of the graph"
                )
            # Resolved before the first place is known: a task between many and many takes a place of its own.
            output, kind = upstream.for_many().resolved(planner, passing=False)
            before = Upstream(output=output, kind=kind, passes=False)
        if planner.taker is None and not (before and any(isinstance(each, int) for each in before.output.tasks())):
            planner.taker = taker
        first = len(planner.tasks)
        for task in self.planner.tasks:
            if any(each.local for each in task.after):
                planner.add(dataclasses.replace(task, after=tuple(_moved_edge(each, first) for each in task.after)))
            else:  # what is in the ledger already is outside of the graph
                planner.expand(task, before)
        waits = () if before is None or self.planner.tasks else tuple(before.output.tasks())
        return Output(value=_moved(self.result, first), waits=waits, name=self.title)

    def __len__(self) -> int:
        return len(self.planner.tasks)

    def __repr__(self) -> str:
        return f"<{self.title}: {len(self)} tasks>"

    def _waits(self, after: "Node | Iterable[Node]") -> tuple[Source, ...]:
        if not isinstance(after, Node | Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise GraphError(f"{self.title}: after takes nodes that add() gave, not {after!r}")
        nodes = (after,) if isinstance(after, Node) else after
        found: dict[Source, None] = {}
        for node in nodes:
            if not isinstance(node, Node):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise GraphError(f"{self.title}: after takes nodes that add() gave, not {node!r}")
            found.update(dict.fromkeys(node.output(self.planner).tasks()))
        return tuple(found)

    def _kind(self, given: Kind) -> EdgeKind:
        try:
            return EdgeKind(given)
        except ValueError:
            kinds = ", ".join(kind.value for kind in EdgeKind)
            raise GraphError(f"{self.title}: the kind of an edge is one of {kinds}, not {given!r}") from None

    def _mark(self, made: Output, flag: int) -> None:
        for place in _places(made):
            self._open[place] = flag


def _places(made: Output) -> Iterator[int]:
    return (source for source in sources(made.value) if isinstance(source, int))


def _moved_edge(after: After, by: int) -> After:
    """One to a task that is in the ledger already names its id, which is the same everywhere."""
    return dataclasses.replace(after, task=after.task + by) if after.local else after


def _moved(value: Value, by: int) -> Value:
    if isinstance(value, int):
        return value + by
    if isinstance(value, Existing):
        return value
    return [_moved(part, by) for part in cast("Any", value)]
