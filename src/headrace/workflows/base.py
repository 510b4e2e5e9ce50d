"""What the parts of a composition have in common, and what it asks of tasks and of their app."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

from headrace.core.durations import Duration
from headrace.core.task import NewTask

if TYPE_CHECKING:
    # For the type checker alone: at run time the client is above this layer.
    from headrace.client.job_handle import JobHandle
    from headrace.workflows.plan import Plan, Planner
    from headrace.workflows.signatures import Signature
    from headrace.workflows.value import Output, Upstream

OF_THE_APP: Any = ...
"""Not given, where None means «none»."""

type Location = str | Sequence[str | int]
"""Where in the arguments an input goes: a parameter, or a path to a place inside of an argument."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Stands in a call for what only a result will give: the number of the input."""

    number: int


class SignedTask(Protocol):
    """A task as far as a signature must know it."""

    @property
    def name(self) -> str: ...

    @property
    def origin(self) -> "Origin": ...

    def using(self, **options: Any) -> Self: ...

    def prepare_call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[NewTask, Mapping[int, Location]]:
        """The task that a call becomes, where slots stand for some arguments, and where in its arguments each slot is.
        ArgumentError when the rest does not fit."""
        ...


class Origin(Protocol):
    """The app of a composition's tasks: two signatures belong to one app when they have the same."""

    def builtin(self, path: str, *, arguments: str, options: Mapping[str, Any]) -> NewTask:
        """A task of `workflows.builtin`."""
        ...

    def launch(self, flow: "Flow[Any]", options: Mapping[str, Any]) -> Any: ...

    async def alaunch(self, flow: "Flow[Any]", options: Mapping[str, Any]) -> Any:
        """Write the composition with its job; the JobHandle."""
        ...


class Reference:
    """Something whose result can be passed on: a node of a graph, the handle of a task. Used as an argument of a
    signature, it is an edge."""

    __slots__ = ()

    def output(self, planner: "Planner") -> "Output":
        raise NotImplementedError


class Flow[R]:
    """A signature, a composition of them, or a graph; R is what its result will be."""

    __slots__ = ()

    def origin(self) -> Origin | None:
        """The app of its tasks, as far as that can be told without planning it; None when it names no task."""
        raise NotImplementedError

    def expand(self, planner: "Planner", upstream: "Upstream | None") -> "Output":
        """Add its tasks to a plan, after what comes before them."""
        raise NotImplementedError

    @property
    def job_options(self) -> Mapping[str, Any]:
        return {}

    @property
    def title(self) -> str:
        """What it is called where it has no name of its own."""
        raise NotImplementedError

    def prepare(self) -> "Plan":
        """What `enqueue` would write: everything is validated, and nothing is written."""
        from headrace.workflows.plan import planned

        return planned(self)

    async def aenqueue(
        self,
        *,
        name: str | None = None,
        timeout: Duration | None = OF_THE_APP,
        on_success: "Signature[Any] | NewTask | None" = None,
        on_failure: "Signature[Any] | NewTask | None" = None,
        description: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> "JobHandle[R]":
        """Write the whole of it, and its job, in one transaction. GraphError or ArgumentError when it cannot be, and
        then nothing is written. `timeout` and the rest are the job's, as in `app.jobs.create`."""
        given = job_options(
            name=name,
            timeout=timeout,
            on_success=on_success,
            on_failure=on_failure,
            description=description,
            metadata=metadata,
        )
        return await self._needed_origin().alaunch(self, {**self.job_options, **given})

    def enqueue(
        self,
        *,
        name: str | None = None,
        timeout: Duration | None = OF_THE_APP,
        on_success: "Signature[Any] | NewTask | None" = None,
        on_failure: "Signature[Any] | NewTask | None" = None,
        description: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> "JobHandle[R]":
        """Write the whole of it, and its job, in one transaction. GraphError or ArgumentError when it cannot be, and
        then nothing is written. `timeout` and the rest are the job's, as in `app.jobs.create`."""
        given = job_options(
            name=name,
            timeout=timeout,
            on_success=on_success,
            on_failure=on_failure,
            description=description,
            metadata=metadata,
        )
        return self._needed_origin().launch(self, {**self.job_options, **given})

    def _needed_origin(self) -> Origin:
        from headrace.workflows.plan import needed_origin

        return needed_origin(self)


def job_options(**given: Any) -> dict[str, Any]:
    """Those that were given. `timeout=None` means none, and leaving it out means the app's."""
    return {
        key: value
        for key, value in given.items()
        if value is not OF_THE_APP and (value is not None or key == "timeout")
    }
