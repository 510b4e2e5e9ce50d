"""Schedules over the wire."""

from typing import Literal, Self

from pydantic import Field, model_validator

from headrace.core.schedule import RunStatus
from headrace.server.models.base import Given, Id, Instant, Json, Name, Page, Seconds, Shown, When

_CatchUp = Literal["coalesce", "skip", "all"]
_Overlap = Literal["skip", "queue", "replace", "allow"]
_CRON = Field(default=None, description="Five fields, on the clocks of `tz`", examples=["0 9 * * 1-5"])


class NewScheduleRequest(Given):
    name: Name = Field(examples=["morning"])
    task: Name = Field(description="A registered task", examples=["tasks.report"])
    args: list[Json] = Field(default_factory=list, max_length=1000)
    kwargs: dict[str, Json] = Field(default_factory=dict, max_length=1000)
    cron: Name | None = _CRON
    every: Seconds | None = Field(default=None, gt=0, description="Seconds")
    at: When | None = Field(default=None, description="Once")
    tz: Name | None = Field(default=None, examples=["Europe/Berlin"])
    queue: Name | None = None
    priority: int | None = Field(default=None, ge=-(2**31), lt=2**31)
    catch_up: _CatchUp = Field(default="coalesce", description="Of ticks that passed while no scheduler ran")
    grace: Seconds = 60
    overlap: _Overlap | None = Field(default=None, description="A fire while an earlier one is unfinished")
    jitter: Seconds = 0
    paused: bool = False

    @model_validator(mode="after")
    def _one_cadence(self) -> Self:
        if sum(value is not None for value in (self.cron, self.every, self.at)) != 1:
            raise ValueError("give one of cron, every and at")
        if self.tz is not None and self.cron is None:
            raise ValueError("tz goes with cron")
        return self


class ScheduleChange(Given):
    """What is left out stays as it is."""

    cron: Name | None = _CRON
    every: Seconds | None = Field(default=None, gt=0)
    at: When | None = None
    tz: Name | None = None
    task: Name | None = Field(default=None, description="Another task, or the same with other arguments")
    args: list[Json] = Field(default_factory=list, max_length=1000)
    kwargs: dict[str, Json] = Field(default_factory=dict, max_length=1000)
    catch_up: _CatchUp | None = None
    grace: Seconds | None = None
    overlap: _Overlap | None = None
    jitter: Seconds | None = None

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if sum(value is not None for value in (self.cron, self.every, self.at)) > 1:
            raise ValueError("give one of cron, every and at")
        if self.task is None and (self.args or self.kwargs):
            raise ValueError("arguments go with the task: name it")
        if not self.model_fields_set:
            raise ValueError("there is nothing to change")
        return self


class RunShown(Shown):
    tick: Instant
    manual: bool
    task: int | None
    status: RunStatus
    fired_at: Instant


class ScheduleShown(Shown):
    name: str
    task: str
    when: str = Field(description="In words", examples=["0 9 * * 1-5 (Europe/Berlin)"])
    cadence: Json
    catch_up: _CatchUp
    grace: float
    overlap: _Overlap
    jitter: float
    paused: bool
    declared_by: str | None = Field(description="The app whose code declares it; null: made at run time")
    revision: int
    problem: str | None = Field(description="Why it does not fire although it is not paused")
    next_at: Instant | None
    upcoming: list[Instant] = Field(description="Its next fires; jitter comes on top")
    last_runs: list[RunShown] = Field(description="Newest first; none where they were not asked for")
    arguments: Json = Field(description="Of each run. Secrets are taken out")
    queue: str
    created_at: Instant
    changed_at: Instant


class ScheduleDetail(ScheduleShown):
    runs: list[RunShown] = Field(description="The last ones")


class Triggered(Shown):
    task: Id = Field(description="The task that it became")


RunPage = Page[RunShown]
