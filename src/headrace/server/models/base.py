"""What all bodies have in common.

Ids are whole numbers: they come from one sequence that counts from 1, and stay below 2^53 for longer than anybody will
run it (a million a second for 285 years), so that every JSON reader keeps them exact. Instants are ISO 8601 in UTC.
"""

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Path
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

LARGEST = 2**53 - 1
_NUL = re.compile(r"^[^\x00]*$")


class Given(BaseModel):
    """What a caller sends: a field that there is none of is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_max_length=100_000)


class Shown(BaseModel):
    """What a caller is shown."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


class Page[T](Shown):
    items: list[T] = Field(description="In the order of the list")
    next: str | None = Field(
        description="Give it as `cursor` for what comes behind; null where nothing does", examples=["WzE3LDRd"]
    )


def _sensible(at: datetime) -> datetime:
    """In UTC. Beyond these years no database and no clock agree."""
    if at.utcoffset() is None:
        raise ValueError("the instant has no offset; write 2026-05-01T08:00:00Z")
    if not 1970 < at.year < 9000:
        raise ValueError("the instant is out of range")
    return at.astimezone(UTC)


Id = Annotated[int, Field(ge=1, le=LARGEST, description="A whole number below 2^53")]
PathId = Annotated[int, Path(ge=1, le=LARGEST, description="Its id", examples=[17])]
Name = Annotated[str, StringConstraints(min_length=1, max_length=300, pattern=_NUL)]
PathName = Annotated[str, Path(min_length=1, max_length=300, pattern=_NUL.pattern)]
Note = Annotated[str, StringConstraints(max_length=2000, pattern=_NUL)]
Seconds = Annotated[float, Field(ge=0, le=3_155_760_000, allow_inf_nan=False)]
When = Annotated[datetime, AfterValidator(_sensible)]
Instant = Annotated[datetime, Field(examples=["2026-05-01T08:00:00Z"])]
Json = Any
