"""What a schedule does about ticks that were missed, and about a fire while the last one still runs."""

from dataclasses import dataclass
from datetime import timedelta
from typing import get_args

from headrace.core.durations import Duration, as_timedelta
from headrace.core.errors import OptionError
from headrace.core.schedule import CatchUp, Overlap


@dataclass(frozen=True, slots=True, init=False)
class Policy:
    """The options of one schedule.

    - `catch_up`: by default `coalesce`, so that a nightly job runs once after a weekend of downtime, not three times.
    - `grace`: with `skip`, how late a tick may be noticed and still fire.
    - `overlap`: by default `skip`; with `catch_up="all"` it is `allow`, and anything else is refused, because it would
      drop most of the ticks that `all` asks for.
    - `jitter`: each fire is put off by up to this much.
    """

    catch_up: CatchUp
    grace: timedelta
    overlap: Overlap
    jitter: timedelta

    def __init__(
        self,
        *,
        catch_up: CatchUp = "coalesce",
        grace: Duration = 60,
        overlap: Overlap | None = None,
        jitter: Duration = 0,
    ) -> None:
        _check_choice(catch_up, get_args(CatchUp.__value__), "catch_up")
        if overlap is None:
            overlap = "allow" if catch_up == "all" else "skip"
        _check_choice(overlap, get_args(Overlap.__value__), "overlap")
        if catch_up == "all" and overlap != "allow":
            raise OptionError(
                f"catch_up='all' asks for every missed tick and overlap={overlap!r} drops all that come while one is "
                "unfinished; use overlap='allow' (an order_key on the task makes them run one after the other)"
            )
        object.__setattr__(self, "catch_up", catch_up)
        object.__setattr__(self, "grace", as_timedelta(grace, name="grace"))
        object.__setattr__(self, "overlap", overlap)
        object.__setattr__(self, "jitter", as_timedelta(jitter, name="jitter"))


def _check_choice(value: str, choices: tuple[str, ...], name: str) -> None:
    if value not in choices:
        raise OptionError(f"{name} must be one of {', '.join(choices)}, not {value!r}")
