"""Counts that stop."""

from pydantic import Field

from headrace.server.models.base import Instant, Shown
from headrace.store.base import COUNTED_AT_MOST

MOST_COUNTED = COUNTED_AT_MOST - 1


class Count(Shown):
    n: int = Field(examples=[17])
    more: bool = Field(description="There are more, or may be: counting stops")

    @classmethod
    def of(cls, n: int, most: int = MOST_COUNTED) -> "Count":
        """Of a figure that was counted up to one more than `most`."""
        return cls(n=min(n, most), more=n > most)


class SearchedShown(Shown):
    """How far tasks were looked at one by one."""

    tasks: int = Field(description="So many were looked at")
    complete: bool = Field(description="False: there was no time for the rest; the page behind this one goes on")
    back_to: Instant | None = Field(description="Where it is not complete: ended tasks were looked at back to here")


class FailureShown(Shown):
    """Errors that are the same but for numbers, ids and quoted texts."""

    key: str = Field(description="Of this failure, in every answer", examples=["5f2c9a7be01d44c3a0b1"])
    error_class: str | None = Field(examples=["builtins.TimeoutError"])
    message: str = Field(description="What their messages have in common", examples=["no answer within # s"])
    count: Count
    names: list[str] = Field(description="Of tasks; at most 10")
    queues: list[str] = Field(description="At most 10")
    newest_at: Instant
    oldest_at: Instant = Field(description="Of those that were looked at")
    example: int = Field(description="The id of the newest")


class Failures(Shown):
    items: list[FailureShown] = Field(description="The one that happened last first")
    searched: SearchedShown
