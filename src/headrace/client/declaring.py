"""Schedules that code declares. Nothing is written here: whoever runs the app writes them when it starts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.core.errors import DefinitionError, OptionError
from headrace.core.schedule import NewSchedule
from headrace.scheduling.declaration import Schedule, checked_schedule_name

if TYPE_CHECKING:
    from headrace.client.engine import Engine
    from headrace.client.task import Task


@dataclass(frozen=True, slots=True)
class Declaration:
    """A schedule of a task, with the arguments of each run."""

    schedule: Schedule
    task: "Task[..., Any]"
    args: Sequence[Any]
    kwargs: Mapping[str, Any]

    def stored(self, *, declared_by: str | None = None) -> NewSchedule:
        if self.task.options.connection is not None:
            raise OptionError(f"task {self.task.name}: connection belongs to one call, a schedule has none")
        return self.schedule.stored(self.task.prepare(*self.args, **self.kwargs), declared_by=declared_by)


def declare(
    engine: "Engine", schedule: Schedule, task: "Task[..., Any]", args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Declaration:
    """Check everything that can be checked and keep it; no I/O."""
    declaration = Declaration(schedule, task, args, kwargs)
    name = checked_schedule_name(task.name) if schedule.name is None else schedule.name
    if (other := engine.declared.get(name)) is not None:
        raise DefinitionError(
            f"schedule {name} is declared already, for task {other.task.name}; two schedules need two names: name=…"
        )
    try:
        declaration.stored()
    except OptionError as error:
        # An annotation that is defined further down in the module: the arguments are checked when the app runs.
        if not isinstance(error.__cause__, NameError):
            raise
    engine.declared[name] = declaration
    return declaration


def declared(engine: "Engine", declared_by: str) -> list[NewSchedule]:
    """What the code of the app declares, as its stores keep it."""
    return [declaration.stored(declared_by=declared_by) for declaration in engine.declared.values()]
