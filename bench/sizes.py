"""How much is measured: `full` gives figures, `smoke` only shows that everything runs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    name: str
    share: float  # of the tasks that a subject drains or enqueues
    pilots: int  # runs of each candidate before the best one is chosen; 0: the first one is taken
    samples: int  # pickups per run
    pending: int
    finished: int
    held: float  # seconds that the old transaction is open before the last cycles count
    cycle: int  # tasks per cycle of that measure
    memory: tuple[int, int]
    claimed: int
    leases: tuple[tuple[float, int], ...]  # (lease, most runs)
    calm: float  # seconds to wait at most for an idle machine before a run

    def tasks(self, full: int) -> int:
        return max(200, int(full * self.share))


FULL = Size(
    name="full", share=1.0, pilots=4, samples=200, pending=1_000_000, finished=5_000_000, held=300.0, cycle=50_000,
    memory=(10_000, 1_000_000), claimed=1000, leases=((2.0, 5), (30.0, 3)), calm=5.0,
)  # fmt: skip
SMOKE = Size(
    name="smoke", share=0.01, pilots=0, samples=20, pending=5_000, finished=5_000, held=3.0, cycle=500,
    memory=(500, 3_000), claimed=100, leases=((2.0, 1),), calm=0.0,
)  # fmt: skip
SIZES = {size.name: size for size in (FULL, SMOKE)}
