"""Jobs by their names, from the newest on: as far as the time for one look goes.

An index serves a whole name, and an owner. The beginning of a name, and words in it, are looked for job by job, so a
look has a time, says how far it came, and can be gone on with.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

from headrace.core.states import JobState
from headrace.core.task import JobRecord
from headrace.core.values import value
from headrace.store.base import Store
from headrace.store.skimming import SkimmedJob

PATIENCE = 0.15  # seconds of one page
_FIRST, _LARGEST = 500, 20_000  # jobs that one query looks at
_ABOVE_ALL = 2**53  # no id reaches it
_OPEN = "*"


@value
class JobSearch:
    """What is looked for; everything that is given has to hold. `shown` is what a reader sees of a name: nothing is
    found by what they do not see."""

    name: str | None  # with * at the end: what begins so
    text: str | None  # words, all of which are in the name, or one of which is the id
    states: tuple[JobState, ...]
    owner: str | None
    shown: Callable[[str], str]

    @property
    def whole_name(self) -> str | None:
        """What an index serves."""
        return None if self.name is None or self.name.endswith(_OPEN) else self.name

    def takes(self, job: SkimmedJob) -> bool:
        return (
            (not self.states or job.state in self.states)
            and self.owner in (None, job.owner)
            and (self.name is None or self._takes_name(self.name, job.name))
            and (self.text is None or self._says(job, self.text.casefold().split()))
        )

    def _takes_name(self, wanted: str, name: str) -> bool:
        return name == wanted if self.whole_name is not None else name.startswith(wanted.removesuffix(_OPEN))

    def _says(self, job: SkimmedJob, words: list[str]) -> bool:
        """Taking secrets out is dear: it is done for those that would be found with them."""
        plain = job.name.casefold()
        hidden = [word for word in words if word != str(job.id)]
        if any(word not in plain for word in hidden):
            return False
        told = self.shown(job.name).casefold()
        return all(word in told for word in hidden)


class FoundJobs(NamedTuple):
    records: list[JobRecord]
    below: int | None  # where to go on; None: nothing is behind
    complete: bool  # False: the time was over before the page was full


async def search_jobs(
    store: Store, wanted: JobSearch, *, below: int | None, limit: int, seconds: float = PATIENCE
) -> FoundJobs:
    deadline = time.monotonic() + seconds
    ids: list[int] = []
    place: int | None = _ABOVE_ALL if below is None else below
    window = _FIRST
    while place is not None and len(ids) < limit:
        rows = await store.skim_jobs(below=place, window=window, name=wanted.whole_name, owner=wanted.owner)
        place = rows[-1].id if len(rows) == window else None
        for row in rows:
            if wanted.takes(row):
                ids.append(row.id)
                if len(ids) == limit:
                    place = row.id
                    break
        if time.monotonic() >= deadline:
            break
        window = min(2 * window, _LARGEST)
    return FoundJobs(await store.get_jobs(ids), place, place is None or len(ids) == limit)
