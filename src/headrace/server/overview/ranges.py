"""How far back the first page looks, and in which steps. Pure."""

from datetime import UTC, datetime, timedelta
from typing import Literal

from headrace.core.values import value

type RangeName = Literal["5m", "1h", "24h", "7d"]


@value
class Range:
    name: RangeName
    bucket: int  # seconds; workers count by the minute, so none is shorter
    buckets: int

    def starts(self, now: datetime) -> list[datetime]:
        """Of its buckets, the last of which `now` is in; each begins at a whole multiple since 1970."""
        last = int(now.timestamp()) // self.bucket * self.bucket
        first = datetime.fromtimestamp(last - (self.buckets - 1) * self.bucket, tz=UTC)
        return [first + timedelta(seconds=place * self.bucket) for place in range(self.buckets)]


RANGES: dict[RangeName, Range] = {
    "5m": Range(name="5m", bucket=60, buckets=5),
    "1h": Range(name="1h", bucket=60, buckets=60),
    "24h": Range(name="24h", bucket=900, buckets=96),
    "7d": Range(name="7d", bucket=7200, buckets=84),
}
