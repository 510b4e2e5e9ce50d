"""`chain`, `group`, `chord`, `map`, `starmap`, `approve`: compositions of signatures and of each other."""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain as concatenated
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, Self, cast, overload, override

from headrace.core.errors import GraphError, OptionError
from headrace.core.task import NewTask
from headrace.workflows.base import Flow, Origin
from headrace.workflows.signatures import Signature
from headrace.workflows.value import Listed, Output, Upstream

if TYPE_CHECKING:
    from headrace.workflows.plan import Planner

type Part = Flow[Any] | NewTask

_JOB_OPTIONS = frozenset({"name", "timeout", "on_success", "on_failure", "description", "metadata"})


class Mappable[R](Protocol):
    """A task that makes signatures."""

    @property
    def name(self) -> str: ...

    @property
    def origin(self) -> Origin: ...

    def si(self, *args: Any, **kwargs: Any) -> Signature[R]: ...


class Parts:
    """The parts of a composition, read as they are needed: a generator is never held whole, and is read once."""

    def __init__(self, given: Iterable[Any], made: Callable[[Any], Any] | None = None) -> None:
        self._given = given
        self._made = made
        self._once = iter(given) is given
        self._peeked: list[Any] = []
        self._gone = False

    def __iter__(self) -> Iterator[Any]:
        if self._gone:
            raise GraphError("the generator of this composition was read before; give a list, to enqueue it again")
        self._gone = self._once
        parts = concatenated(self._peeked, self._given) if self._once else iter(self._given)
        return parts if self._made is None else map_of(self._made, parts)

    def first(self) -> Any:
        """The first part, without losing it; None when there is none."""
        if self._once:
            if not self._peeked and not self._gone:
                self._peeked = list(islice(cast("Iterator[Any]", self._given), 1))
            found = self._peeked[:1]
        else:
            found = list(islice(self._given, 1))
        return None if not found else found[0] if self._made is None else self._made(found[0])

    def known(self) -> Sequence[Any]:
        """Those that can be looked at more than once."""
        return [part for part in (self.first(),) if part is not None] if self._once or self._made else list(self._given)


map_of = map  # the name is taken below


class Composition[R](Flow[R]):
    """Parts, and how the job is made that they become. A value: `using` gives another one."""

    __slots__ = ("_options",)

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self._options: Mapping[str, Any] = options or {}

    def using(self, **options: Any) -> Self:
        """With these options of its job: name, timeout, on_success, on_failure, description, metadata."""
        unknown = sorted(set(options) - _JOB_OPTIONS)
        if unknown:
            raise OptionError(
                f"{self.title}: a job has no option {unknown[0]!r}; it has {', '.join(sorted(_JOB_OPTIONS))}. "
                "Options of a task go to its signature: task.s(…).using(…)"
            )
        other = copy.copy(self)
        other._options = {**self._options, **options}
        return other

    @property
    @override
    def job_options(self) -> Mapping[str, Any]:
        return self._options

    def __or__[S](self, other: Flow[S]) -> "Chain[S]":
        return Chain.of(self, other)

    def __repr__(self) -> str:
        return f"<{self.title}>"


class Chain[R](Composition[R]):
    """One after the other, each with the result of the one before."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Iterable[Part]) -> None:
        super().__init__()
        self._parts = Parts(parts)

    @classmethod
    def of(cls, *parts: Flow[Any]) -> "Chain[Any]":
        """Chains among them are taken apart: `a | b | c` is one chain of three."""
        flat: list[Any] = []
        for part in parts:
            apart = isinstance(part, Chain) and not part.job_options
            flat += cast("Chain[Any]", part)._parts if apart else [part]
        return cls(flat)

    @property
    @override
    def title(self) -> str:
        first = self._parts.first()
        return f"a chain from {_title(first)}" if first is not None else "a chain of nothing"

    @override
    def origin(self) -> Origin | None:
        return _origin(self._parts)

    @override
    def expand(self, planner: "Planner", upstream: Upstream | None) -> Output:
        output: Output | None = None
        for part in self._parts:
            output = planner.expand(part, upstream)
            upstream = Upstream(output=output)
        if output is None:
            raise GraphError("a chain needs at least one part")
        return output


class Group[R](Composition[list[R]]):
    """Side by side; the list of their results, in their order."""

    __slots__ = ("_origin", "_parts", "_title")

    def __init__(self, parts: Parts, title: str | None = None, origin: Origin | None = None) -> None:
        super().__init__()
        self._parts = parts
        self._title = title
        self._origin = origin

    @property
    @override
    def title(self) -> str:
        if self._title is not None:
            return self._title
        first = self._parts.first()
        return f"a group of {_title(first)}" if first is not None else "an empty group"

    @override
    def origin(self) -> Origin | None:
        return self._origin or _origin(self._parts)

    @override
    def expand(self, planner: "Planner", upstream: Upstream | None) -> Output:
        title = self.title
        parts = iter(self._parts)
        begun = list(islice(parts, 2))
        if not begun:
            # Nothing runs, and what comes next has still to wait for what came before.
            return Output(value=(), waits=() if upstream is None else _all(planner, upstream), name=title)
        if upstream is not None and len(begun) > 1:
            upstream = upstream.for_many()
        values, waits = Listed(), list[Any]()
        for part in concatenated(begun, parts):
            output = planner.expand(part, upstream)
            values.append(output.value)
            waits += output.waits
        return Output(value=values.value(), waits=tuple(dict.fromkeys(waits)), name=title)


class Chord[R](Composition[R]):
    """A group, and one after it that takes the list of its results."""

    __slots__ = ("_body", "_header")

    def __init__(self, header: Flow[Any], body: Part | None) -> None:
        super().__init__()
        self._header = header
        self._body = body

    def __call__[S](self, body: Flow[S]) -> "Chord[S]":
        made = Chord[S](self._header, body)
        made._options = self._options
        return made

    @property
    @override
    def title(self) -> str:
        return f"a chord of {self._header.title.removeprefix('a group of ')}"

    @override
    def origin(self) -> Origin | None:
        return self._header.origin() or (self._body.origin() if isinstance(self._body, Flow) else None)

    @override
    def expand(self, planner: "Planner", upstream: Upstream | None) -> Output:
        if self._body is None:
            raise GraphError(f"{self.title} has no body; write chord(header, body) or chord(header)(body)")
        return planner.expand(self._body, Upstream(output=planner.expand(self._header, upstream)))


class Approval(Composition[dict[str, Any]]):
    """Waits for a person."""

    __slots__ = ("_name", "_role")

    def __init__(self, role: str | None, name: str | None) -> None:
        super().__init__()
        self._role = role
        self._name = name

    @property
    @override
    def title(self) -> str:
        return self._name or "an approval"

    @override
    def origin(self) -> None:
        return None

    @override
    def expand(self, planner: "Planner", upstream: Upstream | None) -> Output:
        return planner.approval(self._role, self._name, upstream)


@overload
def chain[A](a: Flow[A], /) -> Chain[A]: ...
@overload
def chain[B](a: Flow[Any] | NewTask, b: Flow[B], /) -> Chain[B]: ...
@overload
def chain[C](a: Flow[Any] | NewTask, b: Flow[Any] | NewTask, c: Flow[C], /) -> Chain[C]: ...
@overload
def chain[D](a: Flow[Any] | NewTask, b: Flow[Any] | NewTask, c: Flow[Any] | NewTask, d: Flow[D], /) -> Chain[D]: ...
@overload
def chain[E](
    a: Flow[Any] | NewTask, b: Flow[Any] | NewTask, c: Flow[Any] | NewTask, d: Flow[Any] | NewTask, e: Flow[E], /
) -> Chain[E]: ...
@overload
def chain(*parts: Flow[Any] | NewTask | Iterable[Flow[Any]]) -> Chain[Any]: ...
def chain(*parts: Any) -> Chain[Any]:
    """One after the other; each gets the result of the one before as its first argument, unless it is made by `si`.
    The result is the last one's."""
    return Chain(_given(parts))


@overload
def group[R](*parts: Flow[R]) -> Group[R]: ...
@overload
def group[R](parts: Iterable[Flow[R]], /) -> Group[R]: ...
@overload
def group(*parts: Flow[Any] | NewTask) -> Group[Any]: ...
def group(*parts: Any) -> Group[Any]:
    """Side by side. What comes next, and the result, is the list of their results, in order.

    `group(f.s(i) for i in range(100_000))` is read as it is written: it does not have to fit into memory.
    """
    return Group(Parts(_given(parts)))


@overload
def chord(header: Iterable[Flow[Any]] | Flow[list[Any]]) -> Chord[Any]: ...
@overload
def chord[R](header: Iterable[Flow[Any]] | Flow[list[Any]], body: Flow[R]) -> Chord[R]: ...
def chord(header: Any, body: Any = None) -> Chord[Any]:
    """A group and its body, which gets the list of its results: `chord(header, body)` or `chord(header)(body)`."""
    return Chord(cast("Group[Any]", header) if isinstance(header, Group) else group(header), body)


def map[R](task: Mappable[R], items: Iterable[Any]) -> Group[R]:
    """A group of one call for each item. The items are the arguments: no result is passed to it."""
    _check_iterable(items, f"{task.name}.map takes a list, or a generator, of items")
    return Group(Parts(items, task.si), f"a map of {task.name}", task.origin)


def starmap[R](task: Mappable[R], items: Iterable[Iterable[Any]]) -> Group[R]:
    """As `map`; each item is the list of a call's arguments."""

    def made(item: Any) -> Signature[R]:
        _check_iterable(item, f"each item of {task.name}.starmap is the list of a call's arguments")
        return task.si(*item)

    _check_iterable(items, f"{task.name}.starmap takes a list, or a generator, of lists of arguments")
    return Group(Parts(items, made), f"a starmap of {task.name}", task.origin)


def approve(*, role: str | None = None, name: str | None = None) -> Approval:
    """Wait until somebody approves: `app.tasks.approve(id, by="ann", role="finance")`. Its result says who it was and
    when; rejected, it has failed. With `role`, only who has it may decide. `name` is how it is shown."""
    if role is not None and not (isinstance(role, str) and role.strip()):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(f"the role of an approval is a text that is not empty, or None for anybody, not {role!r}")
    return Approval(role, name)


def _check_iterable(given: Any, expected: str) -> None:
    try:
        iter(given)
    except TypeError:
        raise GraphError(f"{expected}, not {given!r}") from None


def _given(parts: tuple[Any, ...]) -> Iterable[Any]:
    one = parts[0] if len(parts) == 1 else None
    if isinstance(one, Iterable) and not isinstance(one, Flow | str):
        return cast("Iterable[Any]", one)
    return parts


def _title(part: object) -> str:
    if isinstance(part, NewTask):
        return part.name
    return cast("Flow[Any]", part).title if isinstance(part, Flow) else repr(part)


def _origin(parts: Parts) -> Origin | None:
    for part in parts.known():
        found = cast("Flow[Any]", part).origin() if isinstance(part, Flow) else None
        if found is not None:
            return found
    return None


def _all(planner: "Planner", upstream: Upstream) -> tuple[Any, ...]:
    return tuple(upstream.resolved(planner, passing=False)[0].tasks())
