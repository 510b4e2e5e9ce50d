"""How long a task waits before its next attempt, from the policy, the failures so far and a random source."""

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.core.retry import Retry

# What full jitter adds on top of a Retry-After: it must not come in earlier, and not all at once either.
_RETRY_AFTER_SPREAD = 0.1


def delay(
    policy: "Retry", *, failures: int, error_type: str | None, retry_after: float | None, rng: random.Random
) -> float:
    """Seconds to wait after the `failures`-th failure (1 = the first).

    - exponential: base, 2·base, 4·base ... up to the cap; fixed: base each time (the cap plays no part);
      table: the entry of the error type, or of «Default», the last one repeating (the cap plays no part).
    - A fraction as jitter adds up to that part of the delay. An exponential delay never exceeds the cap: near it the
      same spread is taken downwards, so that capped retries do not come back in one wave.
    - Full jitter takes anything above zero and up to the delay.
    - `retry_after` is a lower bound; jitter only adds to it.
    """
    if failures < 1:
        raise ValueError(f"a delay follows a failure; failures must be at least 1, not {failures}")
    wait = _without_jitter(policy, failures=failures, error_type=error_type)
    if policy.jitter == "full":
        wait *= 1 - rng.random()
        spread = _RETRY_AFTER_SPREAD
    else:
        spread = policy.jitter
        longest = wait * (1 + spread)
        if policy.backoff == "exponential":
            longest = min(longest, policy.cap_seconds)
        wait = longest - (longest - longest / (1 + spread)) * rng.random()
    if retry_after is not None and wait < retry_after:
        wait = retry_after * (1 + spread * rng.random())
    return wait


def _without_jitter(policy: "Retry", *, failures: int, error_type: str | None) -> float:
    match policy.backoff:
        case "fixed":
            return policy.base_seconds
        case "exponential":
            # The exponent is bounded because 2.0**1024 overflows; any cap is reached long before.
            return min(policy.base_seconds * 2.0 ** min(failures - 1, 1000), policy.cap_seconds)
        case "table":
            schedule = policy.schedule_for(error_type)
            return schedule[min(failures, len(schedule)) - 1]
