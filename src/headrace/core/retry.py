"""The retry policy, and the decision whether a failed attempt is followed by another.

The decision reads an `ErrorSignature`, a plain value, so that it is the same for an exception in this process, in a
child that has sent its report, and for a rescuer that knows only that the process is gone.
"""

import builtins
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, cast, get_args

from headrace.core.backoff import delay
from headrace.core.classification import (
    DEFAULT_ERROR_TYPE,
    NETWORK_TIMEOUT,
    RATE_LIMIT_ERROR,
    SERVICE_UNAVAILABLE,
    Verdict,
    class_path,
    classify_exception,
    mro_paths,
    retry_after_of,
)
from headrace.core.durations import Duration, as_timedelta, seconds
from headrace.core.errors import OptionError, Permanent, SoftTimeLimitExceeded, Transient

__all__ = [
    "ASYNCTASKFLOW_TABLE",
    "DEFAULT_RETRY",
    "ErrorKind",
    "ErrorSignature",
    "Retry",
    "Verdict",
    "delay",
    "should_retry",
]

type Backoff = Literal["exponential", "fixed", "table"]
type ErrorKind = Literal["error", "soft_timeout", "timeout", "oom", "lost", "killed"]
type Classifier = Callable[[BaseException], Verdict | None]
type Table = Mapping[str, Sequence[Duration]] | Sequence[Duration]

ASYNCTASKFLOW_TABLE: Mapping[str, tuple[float, ...]] = {
    RATE_LIMIT_ERROR: (60.0, 120.0, 300.0, 600.0),
    SERVICE_UNAVAILABLE: (5.0, 10.0, 30.0, 60.0, 120.0),
    NETWORK_TIMEOUT: (2.0, 5.0, 10.0, 30.0, 60.0),
    DEFAULT_ERROR_TYPE: (5.0, 15.0, 60.0, 300.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """When a task is tried again, and how long it waits.

    - `max_attempts` counts the first execution: 4 means three retries.
    - `on` (empty: any Exception) and `never_on` take classes, dotted paths or names of builtins, and match subclasses;
      `never_on` wins. `Permanent` is never retried; `Transient`, or a classifier that says so, is retried whatever `on`
      lists.
    - `classify` is a function, or "http" for the status table of `core.classification`. A function cannot be stored
      with a call.
    - `jitter` is the part of the delay that may be added at random, or "full" for anything up to the delay.
    - `max_age` is how long after it was enqueued the task may still start; `timeouts` and `lost` say whether an attempt
      that met a time limit, or whose process is gone, is followed by another; `dead_letter` keeps the final failure for
      replay.
    - `table` gives the delays by error type (an HTTP error type or an exception's class path), with a «Default», or one
      list for all.

    Durations are kept as timedelta, classes as dotted paths, and the table as seconds, so that equal policies compare
    equal.
    """

    max_attempts: int = 4
    backoff: Backoff = "exponential"
    base: Duration = 1
    cap: Duration = 600
    jitter: float | Literal["full"] = 0.1
    on: tuple[type[BaseException] | str, ...] = ()
    never_on: tuple[type[BaseException] | str, ...] = ()
    classify: Classifier | Literal["http"] | None = None
    max_age: Duration | None = None
    dead_letter: bool = False
    timeouts: bool = True
    lost: Literal["retry", "fail"] = "retry"
    table: Table = field(default=(), hash=False)

    def __post_init__(self) -> None:
        if isinstance(self.max_attempts, bool) or not isinstance(self.max_attempts, int) or self.max_attempts < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(
                f"max_attempts counts the first execution and must be at least 1, not {self.max_attempts!r}"
            )
        _check_choice(self.backoff, get_args(Backoff.__value__), name="backoff")
        _check_choice(self.lost, ("retry", "fail"), name="lost")
        _check_jitter(self.jitter)
        if self.jitter != "full":
            self._set("jitter", float(self.jitter))
        if self.classify is not None and self.classify != "http" and not callable(self.classify):
            raise OptionError(f"classify must be a function of the exception or 'http', not {self.classify!r}")
        for name in ("dead_letter", "timeouts"):
            if not isinstance(getattr(self, name), bool):
                raise OptionError(f"{name} must be True or False, not {getattr(self, name)!r}")
        self._set("base", as_timedelta(self.base, name="base"))
        self._set("cap", as_timedelta(self.cap, name="cap"))
        if self.max_age is not None:
            self._set("max_age", as_timedelta(self.max_age, name="max_age"))
        self._set("on", _class_paths(self.on, name="on"))
        self._set("never_on", _class_paths(self.never_on, name="never_on"))
        self._set("table", _normal_table(self.table))
        if self.backoff == "exponential" and self.base_seconds > self.cap_seconds:
            raise OptionError(f"base ({self.base}) must not exceed cap ({self.cap}); raise cap or use backoff='fixed'")
        if (self.backoff == "table") != bool(self.table):
            raise OptionError("backoff='table' and table=... belong together: one was given without the other")

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)  # the dataclass is frozen; only its construction normalises

    @property
    def base_seconds(self) -> float:
        return seconds(self.base, name="base")

    @property
    def cap_seconds(self) -> float:
        return seconds(self.cap, name="cap")

    @property
    def max_age_seconds(self) -> float | None:
        return None if self.max_age is None else seconds(self.max_age, name="max_age")

    @property
    def storable(self) -> bool:
        """Whether the policy can travel with a task through the store: a classifying function cannot."""
        return self.classify is None or self.classify == "http"

    def schedule_for(self, error_type: str | None) -> tuple[float, ...]:
        """The delays of an error type; one that is not listed has the Default's."""
        table = cast("Mapping[str, tuple[float, ...]]", self.table)
        return table.get(error_type or DEFAULT_ERROR_TYPE) or table[DEFAULT_ERROR_TYPE]

    def to_dict(self) -> dict[str, Any]:
        """JSON values from which `from_dict` makes an equal policy.

        Every field is written: a stored policy outlives changed defaults.
        """
        if not self.storable:
            raise OptionError(
                f"classify={self.classify!r} is a function and cannot be stored with the task: "
                "set it where the task is defined, or use classify='http', on and never_on"
            )
        max_age = self.max_age_seconds
        return {
            "max_attempts": self.max_attempts,
            "backoff": self.backoff,
            "base": self.base_seconds,
            "cap": self.cap_seconds,
            "jitter": self.jitter,
            "on": list(self.on),
            "never_on": list(self.never_on),
            "classify": self.classify,
            "max_age": max_age,
            "dead_letter": self.dead_letter,
            "timeouts": self.timeouts,
            "lost": self.lost,
            "table": {name: list(delays) for name, delays in cast("Mapping[str, Sequence[float]]", self.table).items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Retry":
        """The policy of `to_dict`. A newer version's field is ignored, so that old workers survive an upgrade."""
        known: dict[str, Any] = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        for name in ("on", "never_on"):
            if name in known:
                known[name] = tuple(known[name])
        return cls(**known)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSignature:
    """All that the retry decision needs to know of a failure.

    `mro` holds class paths, nearest first; it is empty when there was no exception.
    `lost` is a process that vanished, `killed` one ended by a signal that was not ours, `oom` one ended for its memory.
    """

    kind: ErrorKind = "error"
    mro: tuple[str, ...] = ()
    verdict: Verdict | None = None
    error_type: str | None = None
    retry_after: float | None = None

    @classmethod
    def of(cls, exc: BaseException, policy: Retry, *, now: datetime | None = None) -> "ErrorSignature":
        """Describe an exception under a policy, whose classifier runs. `now` serves a Retry-After that is a date."""
        mro = mro_paths(type(exc))
        found = classify_exception(exc)
        return cls(
            kind="soft_timeout" if isinstance(exc, SoftTimeLimitExceeded) else "error",
            mro=mro,
            verdict=_verdict(exc, policy, found.verdict),
            # A user's table may list exception classes; the nearest listed class is more telling than the HTTP status.
            error_type=next((path for path in mro if path in policy.table), found.error_type),
            retry_after=retry_after_of(exc, now=now),
        )


def should_retry(policy: Retry, *, error: ErrorSignature, attempt: int) -> bool:
    """Whether another attempt follows; `attempt` is the number of charged executions, this one included."""
    if attempt >= policy.max_attempts:
        return False
    if error.verdict == "permanent" or _matches(policy.never_on, error.mro):
        return False
    match error.kind:
        case "soft_timeout" | "timeout":
            return policy.timeouts
        case "lost" | "killed" | "oom":
            return policy.lost == "retry"
        case "error":
            if error.verdict == "transient":
                return True
            if policy.on:
                return _matches(policy.on, error.mro)
            # SystemExit and KeyboardInterrupt are no Exception; a report without an MRO is taken as one.
            return not error.mro or "builtins.Exception" in error.mro


def _verdict(exc: BaseException, policy: Retry, by_status: Verdict | None) -> Verdict | None:
    if isinstance(exc, Permanent):
        return "permanent"
    if isinstance(exc, Transient):
        return "transient"
    if policy.classify is None or isinstance(policy.classify, str):
        return by_status if policy.classify == "http" else None
    try:
        verdict = policy.classify(exc)
    except Exception as error:  # a broken classifier must not hide the failure it was asked about
        exc.add_note(f"the retry policy's classify function raised {error!r}; the error was left unclassified")
        return None
    return verdict if verdict in ("transient", "permanent") else None


def _matches(names: Sequence[type[BaseException] | str], mro: tuple[str, ...]) -> bool:
    return any(name in mro or _real_path(str(name)) in mro for name in names)


def _real_path(path: str) -> str:
    """Where a class that is written by an alias (`asyncio.TimeoutError`, `requests.ConnectionError`) really lives.

    Looks only at modules that are loaded: if the class was raised, its module is.
    """
    module, _, name = path.rpartition(".")
    found = getattr(sys.modules.get(module), name, None)
    return class_path(found) if isinstance(found, type) else path


def _class_paths(classes: object, *, name: str) -> tuple[str, ...]:
    if isinstance(classes, type | str):
        classes = (classes,)
    if not isinstance(classes, Sequence):
        raise OptionError(f"{name} must be a tuple of exception classes or their names, not {classes!r}")
    return tuple(_one_class_path(entry, name=name) for entry in cast("Sequence[object]", classes))


def _one_class_path(entry: object, *, name: str) -> str:
    if isinstance(entry, type) and issubclass(entry, BaseException):
        return class_path(entry)
    if isinstance(entry, str):
        if all(part.isidentifier() or part == "<locals>" for part in entry.split(".")) and "." in entry:
            return entry
        builtin = getattr(builtins, entry, None)
        if isinstance(builtin, type) and issubclass(builtin, BaseException):
            return class_path(builtin)
    raise OptionError(
        f"{name}: {entry!r} is neither an exception class, nor a builtin one's name, "
        "nor a dotted path like 'package.module.Error'"
    )


def _normal_table(table: object) -> dict[str, tuple[float, ...]]:
    if not isinstance(table, Mapping):
        table = {DEFAULT_ERROR_TYPE: table} if table else {}
    entries = cast("Mapping[str, Sequence[Duration]]", table)
    for name, delays in entries.items():
        if isinstance(delays, str) or not isinstance(delays, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(f"table: {name!r} must have a list of delays, not {delays!r}")
    normal = {
        name: tuple(seconds(value, name=f"table[{name!r}]") for value in delays) for name, delays in entries.items()
    }
    empty = [name for name, delays in normal.items() if not delays]
    if empty or (normal and DEFAULT_ERROR_TYPE not in normal):
        what = (
            f"{empty[0]!r} has no delays" if empty else f"it has no {DEFAULT_ERROR_TYPE!r} for errors it does not list"
        )
        raise OptionError(f"table: {what}")
    return normal


def _check_choice(value: str, choices: tuple[str, ...], *, name: str) -> None:
    if value not in choices:
        raise OptionError(f"{name} must be one of {', '.join(choices)}, not {value!r}")


def _check_jitter(jitter: object) -> None:
    fraction = isinstance(jitter, int | float) and not isinstance(jitter, bool) and math.isfinite(jitter)
    if jitter != "full" and not (fraction and 0 <= cast("float", jitter) <= 1):
        raise OptionError(f"jitter must be a fraction from 0 to 1 or 'full', not {jitter!r}")


DEFAULT_RETRY = Retry()
