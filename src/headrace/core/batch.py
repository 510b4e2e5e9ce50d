"""Many tasks that differ in their arguments only, without an object for each: what a bulk enqueue is made of."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, overload

from headrace.core.task import NewTask


class Template:
    """What the calls of a task have in common. `stored` is for the store: its own form of it, made once."""

    __slots__ = ("plain", "stored", "task")

    def __init__(self, task: NewTask) -> None:
        self.task = task
        self.plain = task.plain
        self.stored: Any = None


type Run = tuple[Template, list[str]]
"""Consecutive tasks of one template: their arguments."""


class Batch(Sequence[NewTask]):
    """A sequence of tasks, kept as runs. Whoever reads it sees NewTasks; a store that knows it writes the runs."""

    __slots__ = ("runs",)

    def __init__(self, runs: list[Run]) -> None:
        self.runs = runs

    def __len__(self) -> int:
        runs = self.runs
        return len(runs[0][1]) if len(runs) == 1 else sum(len(arguments) for _, arguments in runs)

    def __iter__(self) -> Iterator[NewTask]:
        for template, arguments in self.runs:
            for text in arguments:
                yield dataclasses.replace(template.task, arguments=text)

    @overload
    def __getitem__(self, index: int) -> NewTask: ...
    @overload
    def __getitem__(self, index: slice) -> list[NewTask]: ...
    def __getitem__(self, index: int | slice) -> NewTask | list[NewTask]:
        return list(self)[index]

    @property
    def plain(self) -> bool:
        """None has keys or a job: it may share a transaction with other callers' tasks."""
        runs = self.runs
        return runs[0][0].plain if len(runs) == 1 else all(template.plain for template, _ in runs)


def is_plain(tasks: Sequence[NewTask]) -> bool:
    return tasks.plain if isinstance(tasks, Batch) else all(task.plain for task in tasks)


def runs_of(tasks: Sequence[NewTask]) -> list[Run]:
    """The runs of any sequence: one for each task that did not come in a batch."""
    if isinstance(tasks, Batch):
        return tasks.runs
    return [(Template(task), [task.arguments]) for task in tasks]
