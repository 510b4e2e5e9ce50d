"""A call that is to be made later: a task, its arguments, and what becomes of its end."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, override

from headrace.core.errors import GraphError
from headrace.core.task import EdgeKind
from headrace.workflows.base import Flow, Origin, SignedTask
from headrace.workflows.value import Output, Upstream

if TYPE_CHECKING:
    from headrace.workflows.compose import Chain
    from headrace.workflows.plan import Planner


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Signature[R](Flow[R]):
    """Made by `task.s(…)` and `task.si(…)`. A value: what changes it gives another one.

    What comes before it passes its result on as the first argument, unless it was made by `si`.
    """

    task: SignedTask
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    immutable: bool = False
    label: str | None = None
    handlers: tuple[tuple[EdgeKind, Flow[Any]], ...] = ()

    @property
    def name(self) -> str:
        """For people: its own name, else its task's."""
        return self.label or self.task.name

    def using(self, **options: Any) -> Self:
        """With other options of its task, as `task.using`; `name` is how it is shown."""
        label = options.pop("name", self.label)
        return dataclasses.replace(self, task=self.task.using(**options) if options else self.task, label=label)

    def critical(self, value: bool = True) -> Self:
        """Whether its failure fails the job."""
        return self.using(critical=value)

    def on_failure(self, handler: Flow[Any]) -> Self:
        """Run this if it fails for good. It takes no result: there is none. If it completes, the job goes on as if
        nothing had failed; what waits for the failed task is cancelled all the same."""
        return self._with(EdgeKind.ON_FAILURE, handler)

    def on_done(self, handler: Flow[Any]) -> Self:
        """Run this when it has ended, in whatever way. It takes the result, or None where there is none."""
        return self._with(EdgeKind.ON_DONE, handler)

    def __or__[S](self, other: Flow[S]) -> "Chain[S]":
        from headrace.workflows.compose import Chain

        return Chain.of(self, other)

    @property
    @override
    def title(self) -> str:
        return self.name

    @override
    def origin(self) -> Origin:
        return self.task.origin

    @override
    def expand(self, planner: "Planner", upstream: Upstream | None) -> Output:
        output = planner.call(self.task, self.args, self.kwargs, upstream, takes=not self.immutable, label=self.label)
        for kind, handler in self.handlers:
            planner.expand(handler, Upstream(output=output, kind=kind, passes=kind is EdgeKind.ON_DONE))
        return output

    def __repr__(self) -> str:
        given = [repr(value) for value in self.args] + [f"{name}={value!r}" for name, value in self.kwargs.items()]
        return f"{self.task.name}.{'si' if self.immutable else 's'}({', '.join(given)})"

    def _with(self, kind: EdgeKind, handler: Flow[Any]) -> Self:
        if not isinstance(handler, Flow):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise GraphError(f"{kind} of {self.name} takes a signature, not {handler!r}")
        return dataclasses.replace(self, handlers=(*self.handlers, (kind, handler)))
