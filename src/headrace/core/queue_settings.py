"""What an operator has set for a queue while it runs: a limit, a rate. The stored form, and the gates that it becomes.

A task carries these gates only from its admission on, and each admission looks again: what is set, raised or lifted
holds for tasks that were enqueued before. Their keys are apart from those that code gives its queues (`queue:mail`), so
where both are there both hold, which means the smaller.
"""

from typing import Any

import orjson

from headrace.core.durations import seconds
from headrace.core.limits import SET_BY_HAND, Gate, Rate, gates_from_json

UNSET = "{}"


def patch(**settings: int | Rate | None) -> str:
    """What changes, as a JSON merge patch: null takes a setting away."""
    return orjson.dumps({name: _stored(value) for name, value in settings.items()}).decode()


def settings_from_json(text: str) -> tuple[int | None, Rate | None]:
    """The limit and the rate of a queue's row."""
    if text == UNSET:
        return None, None
    settings: dict[str, Any] = orjson.loads(text)
    rate = settings.get("rate")
    return settings.get("limit"), None if rate is None else Rate(rate["n"], rate["per"], burst=rate.get("burst"))


def gates_now(queue: str, stored: str | None, settings: str | None) -> tuple[Gate, ...]:
    """The gates of a task of this queue: its own, and those that the settings of today ask for."""
    own = [gate for gate in gates_from_json(stored) if not gate.key.startswith(SET_BY_HAND)]
    limit, rate = settings_from_json(settings or UNSET)
    key = limit_key(queue)
    if limit is not None:
        own.append(Gate(kind="limit", key=key, n=limit))
    if rate is not None:
        own.append(Gate(kind="rate", key=key, n=rate.n, per=seconds(rate.per, name="per"), burst=rate.burst))
    return tuple(sorted(own, key=lambda gate: (gate.kind, gate.key)))


def counted(queue: str, stored: str | None, n: int) -> tuple[Gate, ...]:
    """The gates of a task that runs already when its queue gets a limit: it is in a slot from now on, and its end,
    which goes by its gates, frees that. `n` is how many slots there are, those of such tasks included."""
    gate = Gate(kind="limit", key=limit_key(queue), n=n)
    others = [each for each in gates_from_json(stored) if (each.kind, each.key) != (gate.kind, gate.key)]
    return tuple(sorted([*others, gate], key=lambda each: (each.kind, each.key)))


def limit_key(queue: str) -> str:
    return f"{SET_BY_HAND}{queue}"


def _stored(value: int | Rate | None) -> Any:
    if isinstance(value, Rate):
        return {"n": value.n, "per": seconds(value.per, name="per"), "burst": value.burst}
    return value
