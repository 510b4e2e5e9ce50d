"""What only the ledger knows, as one look at it found."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Depths are counted up to a cap (10,001 a queue and lane)."""

    depths: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])  # queue → what → n
    retry_ratios: Mapping[str, float] = field(default_factory=dict[str, float])  # queue → share of the starts
    dead_letters: int = 0
    workers: int = 0  # those that beat and are not stopping
    heartbeat_ages: Mapping[str, float] = field(default_factory=dict[str, float])  # worker → seconds
    seen: float = field(default_factory=time.monotonic)

    @property
    def age(self) -> float:
        return time.monotonic() - self.seen
