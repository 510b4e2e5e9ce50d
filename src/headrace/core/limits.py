"""Limits on how much runs at once, how fast, and in which order, and the stored form in which a task carries them."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Literal

import orjson

from headrace.core.durations import Duration, seconds
from headrace.core.errors import OptionError

type Key = str | Callable[..., str]
"""A constant, a template over the arguments (`"user-{user_id}"`), or a function of the arguments."""

type GateKind = Literal["limit", "order", "rate"]

SET_BY_HAND = "@queue:"  # begins the key of what an operator has set for a queue; see core.queue_settings
_LONGEST_KEY = 512  # well inside what a B-tree page takes, even in four-byte characters


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `n` tasks with this key run at once, over all workers. Without a key: of this task."""

    n: int
    key: Key | None = None

    def __post_init__(self) -> None:
        _check_count(self.n, "Limit.n")
        _check_template(self.key, "Limit.key")


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `n` starts with this key in each `per`, over all workers. Without a key: of this task.

    A token bucket: after a quiet time `burst` tasks (by default `n`) start at once, then one each `per / n`.
    """

    n: int
    per: Duration = 1
    key: Key | None = None
    burst: int | None = None

    def __post_init__(self) -> None:
        _check_count(self.n, "Rate.n")
        if seconds(self.per, name="Rate.per") == 0:
            raise OptionError("Rate.per must be longer than zero")
        if self.burst is not None:
            _check_count(self.burst, "Rate.burst")
        _check_template(self.key, "Rate.key")


@dataclass(frozen=True, slots=True)
class Debounce:
    """Of calls with one key that come closer together than `wait` only the last runs; `max_wait` bounds the delay."""

    key: Key
    wait: Duration
    max_wait: Duration | None = None

    def __post_init__(self) -> None:
        wait = seconds(self.wait, name="Debounce.wait")
        if self.max_wait is not None and seconds(self.max_wait, name="Debounce.max_wait") < wait:
            raise OptionError(f"Debounce.max_wait ({self.max_wait!r}) must not be shorter than wait ({self.wait!r})")
        _check_template(self.key, "Debounce.key")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What a claimed task must pass before it starts: the stored form of a limit, a rate or an order key."""

    kind: GateKind
    key: str
    n: int = 1
    per: float | None = None
    burst: int | None = None

    @property
    def rate_per_second(self) -> float:
        """Tokens that a rate gate earns in a second."""
        if self.per is None:
            raise ValueError(f"the {self.kind} gate {self.key!r} has no rate")
        return self.n / self.per

    @property
    def capacity(self) -> int:
        """Tokens that the bucket of a rate gate holds at most."""
        return self.n if self.burst is None else self.burst


def resolve_key(key: Key, arguments: Mapping[str, object], *, name: str) -> str:
    """The key of one call. `name` is the option that an error speaks of."""
    if callable(key):
        found = key(**arguments)
    else:
        try:
            found = key.format_map(arguments)
        except (KeyError, IndexError, AttributeError, TypeError, ValueError) as error:
            given = ", ".join(arguments) or "none"
            raise OptionError(
                f"{name}: the template {key!r} does not fit the arguments ({given}): {error!r}"
            ) from error
    return _check_key(found, name)


def gates_for(
    *,
    task_name: str,
    arguments: Mapping[str, object],
    limit: Limit | Iterable[Limit] | None = None,
    rate: Rate | Iterable[Rate] | None = None,
    order_key: Key | None = None,
) -> tuple[Gate, ...]:
    """The gates of one call, sorted by kind and key: every transaction that takes several locks them in this order."""
    gates: dict[tuple[GateKind, str], Gate] = {}

    def add(gate: Gate) -> None:
        other = gates.setdefault((gate.kind, gate.key), gate)
        if other != gate:
            raise OptionError(f"task {task_name}: two different values for the {gate.kind} with the key {gate.key!r}")

    def resolved(key: Key | None, name: str) -> str:
        return task_name if key is None else resolve_key(key, arguments, name=f"task {task_name}: {name}")

    for item in (limit,) if isinstance(limit, Limit) else limit or ():
        add(Gate(kind="limit", key=resolved(item.key, "limit"), n=item.n))
    for item in (rate,) if isinstance(rate, Rate) else rate or ():
        per = seconds(item.per, name="Rate.per")
        add(Gate(kind="rate", key=resolved(item.key, "rate"), n=item.n, per=per, burst=item.burst))
    if order_key is not None:
        add(Gate(kind="order", key=resolved(order_key, "order_key")))
    return tuple(gates[place] for place in sorted(gates))


def gates_to_json(gates: Iterable[Gate]) -> str | None:
    """Stored form; None without gates, because a row without gates skips admission."""
    rows = [[gate.kind, gate.key, gate.n, gate.per, gate.burst] for gate in gates]
    return orjson.dumps(rows).decode() if rows else None


def gates_from_json(text: str | None) -> tuple[Gate, ...]:
    """The gates of a row."""
    if text is None:
        return ()
    return tuple(Gate(kind=kind, key=key, n=n, per=per, burst=burst) for kind, key, n, per, burst in orjson.loads(text))


def take(
    tokens: float, updated_at: float, *, now: float, rate_per_second: float, burst: int, wanted: int
) -> tuple[int, float, float]:
    """Take up to `wanted` whole tokens from a bucket: (granted, tokens left, seconds until the next token).

    The bucket held `tokens` when it was last written, at `updated_at`. The wait is 0 when everything was granted. Write
    the tokens back with max(now, updated_at): a clock that went back must not earn the same seconds twice. Instants are
    seconds in microsecond columns, so a token that is a microsecond short counts as there; the sliver stays owed (the
    rest may be slightly negative), so the long-run rate is exact.
    """
    available = min(float(burst), tokens + max(0.0, now - updated_at) * rate_per_second)
    granted = max(0, min(wanted, math.floor(available + rate_per_second * 1e-6 + 1e-9)))
    left = available - granted
    wait = 0.0 if granted >= wanted else max(0.0, (1 - left) / rate_per_second)
    return granted, left, wait


def _check_count(n: int, name: str) -> None:
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n < 2**31:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(f"{name} must be a whole number from 1, not {n!r}")


def _check_key(key: object, name: str) -> str:
    if not isinstance(key, str):
        raise OptionError(f"{name} must give text, not {key!r}")
    if not key or len(key) > _LONGEST_KEY or "\0" in key:
        raise OptionError(f"{name} must be 1 to {_LONGEST_KEY} characters of text without NUL, not {key[:80]!r}")
    if key.startswith(SET_BY_HAND):
        raise OptionError(f"{name}: keys that begin with {SET_BY_HAND!r} are those of limits that are set at run time")
    return key


def _check_template(key: Key | None, name: str) -> None:
    if key is None or callable(key):
        return
    _check_key(key, name)
    try:
        fields = [field for _, field, _, _ in Formatter().parse(key) if field is not None]
    except ValueError as error:
        raise OptionError(f"{name}: {key!r} is not a valid template: {error}") from error
    if any(not field or field[0].isdigit() for field in fields):
        raise OptionError(f"{name}: {key!r} must name its arguments, as in 'user-{{user_id}}'")
