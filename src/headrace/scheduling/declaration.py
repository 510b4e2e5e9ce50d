"""`Schedule`: when a task is enqueued by itself, as a program says it."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypedDict

from headrace.core.durations import Duration
from headrace.core.errors import OptionError
from headrace.core.limits import Gate
from headrace.core.schedule import CatchUp, NewSchedule, Overlap
from headrace.core.task import NewTask
from headrace.scheduling.cadence import Cadence, Cron, Every, Once, cadence_to_json
from headrace.scheduling.policy import Policy

type When = str | timedelta | float | datetime | Cadence
"""Five fields of cron; an interval (seconds, where it is a number); one instant; or a cadence."""

_LONGEST_NAME = 300


class ScheduleOptions(TypedDict, total=False):
    """What `@app.schedule(...)` takes beside the cadence and the arguments."""

    tz: str | None
    name: str | None
    catch_up: CatchUp
    grace: Duration
    overlap: Overlap | None
    jitter: Duration
    paused: bool


@dataclass(frozen=True, slots=True, init=False)
class Schedule:
    """When, and by which rules.

    - `when`: five fields of cron (`"30 2 * * 1-5"`, on the clocks of `tz`, else of UTC), an interval (a timedelta or
      seconds), an aware datetime for once, or a `Cron`, `Every` or `Once`.
    - `name`: under which it is stored; by default the name of its task.
    - `catch_up`, `grace`: what becomes of ticks that passed while no scheduler ran: one fire for all (`coalesce`), none
      that is older than the grace (`skip`), each (`all`).
    - `overlap`: a fire while an earlier one is unfinished is left out (`skip`), waits (`queue`), takes its place
      (`replace`) or runs beside it (`allow`). By default `skip`; `allow` with `catch_up="all"`.
    - `jitter`: each fire is put off by up to this much.
    - `paused`: it is made paused, and waits for someone to resume it.
    """

    cadence: Cadence
    policy: Policy
    name: str | None
    paused: bool

    def __init__(
        self,
        when: When,
        *,
        tz: str | None = None,
        name: str | None = None,
        catch_up: CatchUp = "coalesce",
        grace: Duration = 60,
        overlap: Overlap | None = None,
        jitter: Duration = 0,
        paused: bool = False,
    ) -> None:
        object.__setattr__(self, "cadence", as_cadence(when, tz))
        object.__setattr__(self, "policy", Policy(catch_up=catch_up, grace=grace, overlap=overlap, jitter=jitter))
        object.__setattr__(self, "name", None if name is None else checked_schedule_name(name))
        if not isinstance(paused, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(f"paused must be True or False, not {paused!r}")
        object.__setattr__(self, "paused", paused)

    @classmethod
    def of(cls, when: "When | Schedule", options: Mapping[str, Any] | None = None) -> "Schedule":
        """A Schedule as it is, or one made of a cadence."""
        if not isinstance(when, Schedule):
            return cls(when, **(options or {}))
        if options:
            raise OptionError(f"{next(iter(options))}= belongs into the Schedule(…) that was given")
        return when

    def stored(self, task: NewTask, *, declared_by: str | None = None) -> NewSchedule:
        """What a store keeps: the rules, and the task that each fire enqueues."""
        name = checked_schedule_name(task.name) if self.name is None else self.name
        check_template(task, name)
        policy = self.policy
        return NewSchedule(
            name=name,
            cadence=cadence_to_json(self.cadence),
            task=in_order(task, name, wanted=policy.overlap == "queue"),
            catch_up=policy.catch_up,
            grace=policy.grace.total_seconds(),
            overlap=policy.overlap,
            jitter=policy.jitter.total_seconds(),
            paused=self.paused,
            declared_by=declared_by,
        )


def as_cadence(when: object, tz: str | None = None) -> Cadence:
    """`tz` is for a cron expression alone: everything else says by itself when it is."""
    if isinstance(when, str):
        return Cron(when, "UTC" if tz is None else tz)
    if isinstance(when, bool) or not isinstance(when, timedelta | int | float | datetime | Cadence):
        raise OptionError(
            "a schedule takes five fields of cron, an interval (timedelta or seconds), an aware datetime, or a Cron, "
            f"Every or Once, not {when!r}"
        )
    if tz is not None:
        own = "a Cron has its own: Cron('0 9 * * *', tz)" if isinstance(when, Cadence) else "intervals have no zone"
        if isinstance(when, datetime):
            own = "a datetime has its own"
        raise OptionError(f"tz={tz!r} goes with the text of a cron expression; {own}")
    if isinstance(when, Cadence):
        return when
    return Once(when) if isinstance(when, datetime) else Every(when)


def checked_schedule_name(name: object) -> str:
    if isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and name.isprintable() and name == name.strip(" -"):
        return name
    raise OptionError(
        f"the name of a schedule is 1 to {_LONGEST_NAME} printable characters, with no space or dash at its ends, "
        f"not {name!r}; give it one with name=…"
    )


def check_template(task: NewTask, name: str) -> None:
    """What only makes sense for one task is refused where each fire makes another."""
    if task.run_at is not None:
        raise OptionError(
            f"schedule {name}: run_after with an instant is for one task; a schedule decides itself when its tasks run "
            "(run_after with a duration counts from each tick)"
        )
    if task.job is not None:
        raise OptionError(f"schedule {name}: job={task.job} ends, and the schedule does not; leave it out")
    if any(key.scope == "idem" for key in task.keys):
        raise OptionError(
            f"schedule {name}: idempotency_key would let the first fire through and none after it; a tick fires once "
            "as it is, and overlap= says what happens while one is unfinished"
        )


def in_order(task: NewTask, name: str, *, wanted: bool) -> NewTask:
    """With `overlap="queue"` the fire that waits must not start beside the one that runs, unless the task itself says
    in which order its runs go.
    """
    own = Gate(kind="order", key=f"schedule:{name}")
    others = tuple(gate for gate in task.gates if gate != own)
    if wanted and not any(gate.kind == "order" for gate in others):
        others = tuple(sorted((*others, own), key=lambda gate: (gate.kind, gate.key)))
    return task if others == task.gates else dataclasses.replace(task, gates=others)
