"""Settings: what `App(...)` says, then HEADRACE_*, then the preset, then the default.

The only reader of the environment.
"""

import dataclasses
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote

from headrace.core.durations import seconds
from headrace.core.errors import DefinitionError, SettingsError
from headrace.core.memory import memory_bytes, shown_memory
from headrace.core.retry import DEFAULT_RETRY, Retry
from headrace.presets import PRESETS, Preset

_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
_TRACE_URL = re.compile(r"https?://[^\s{}]+\{trace_id\}[^\s{}]*")
DEFAULT_URL = "sqlite:///headrace.db"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Durations are seconds; None is no limit."""

    database_url: str = DEFAULT_URL
    name: str = "headrace"  # PostgreSQL schema, SQLite table prefix
    token: str | None = field(default=None, repr=False)  # of an app that speaks to a server, https://…
    preset: str | None = None

    retry: Retry = DEFAULT_RETRY
    soft_timeout: float | None = 3480.0
    timeout: float | None = 3600.0
    max_age: float | None = None
    result_ttl: float | None = None
    job_timeout: float | None = 86_400.0
    keep: float = 7 * 86_400.0  # how long history, results and idempotency keys stay
    results_url: str | None = None  # where large results go: a directory or a URL; `none`: nowhere
    result_inline: int = 65_536  # bytes; a result that is larger goes there
    data_url: str | None = None  # where objects are kept; None: beside the SQLite file
    data_keep: float | None = 7 * 86_400.0  # how long an object stays that does not say so itself
    strict: bool = True  # arguments that JSON cannot carry unchanged are refused

    lease: float = 30.0
    heartbeat: float = 10.0
    concurrency: int = 100
    processes: int = 1
    children: int = 0  # 0: one for each core
    threads: int = 0
    queues: tuple[str, ...] | None = None  # None: every queue
    max_memory: int | None = None  # bytes above which a process is replaced; given as 512MB, too
    kill_memory: int | None = None  # bytes above which a child is killed in the middle of its task
    drain: float = 30.0  # seconds that a stopping worker gives to what runs
    metrics_port: int | None = None  # where workers serve /metrics; 0: a free one; None: nowhere
    metrics_host: str = "127.0.0.1"
    log_level: str = "info"  # of workers: debug, info, warning or error
    log_format: str = "console"  # or json
    task_log_level: str = "info"  # from which on what tasks say by `logging` is kept with the attempt; off: nothing
    otel: bool = False  # spans for OpenTelemetry
    trace_url: str | None = None  # where people look at a trace, with {trace_id}: the dashboard links to it

    host: str = "127.0.0.1"  # where `headrace server` and `headrace up` serve the API
    port: int = 8000  # 0: a free one
    auth: bool = True  # false: without users, on loopback alone
    body_limit: int = 1_048_576  # bytes that a request may have; given as 1MB, too
    rate_limit: int = 1200  # requests a minute of one token, or of one address; 0: no limit
    cors_origins: tuple[str, ...] = ()  # pages of these origins may read the API
    secure_cookies: bool = False  # cookies for HTTPS alone: set it behind a proxy that has it
    trust_proxy: tuple[str, ...] = ()  # addresses and networks whose X-Forwarded-For and -Proto are believed
    redis_url: str | None = None  # where servers tell each other what is new, in place of the database

    retry_ratio: float = 0.3
    retry_queue_warning: int = 1000
    retry_queue_critical: int = 5000
    circuit_failure_threshold: float = 0.5
    circuit_volume_threshold: int = 10
    circuit_timeout: float = 60.0

    pool_size: int = 10
    pool_overflow: int = 0
    echo: bool = False
    synchronous: str = "FULL"  # SQLite: FULL or NORMAL


class _Field(NamedTuple):
    variable: str
    parse: Callable[[str], Any]


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("not a finite number")
    return value


def _optional_number(text: str) -> float | None:
    return None if text.strip().lower() in ("none", "off") else _number(text)


def _flag(text: str) -> bool:
    try:
        return {
            "1": True,
            "true": True,
            "yes": True,
            "on": True,
            "0": False,
            "false": False,
            "no": False,
            "off": False,
        }[text.strip().lower()]
    except KeyError:
        raise ValueError("write true or false") from None


def _lower(text: str) -> str:
    return text.strip().lower()


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


_FIELDS: Mapping[str, _Field] = {
    "database_url": _Field("HEADRACE_DATABASE_URL", str.strip),
    "name": _Field("HEADRACE_NAME", str.strip),
    "token": _Field("HEADRACE_TOKEN", str.strip),
    "soft_timeout": _Field("HEADRACE_SOFT_TIMEOUT_SECONDS", _optional_number),
    "timeout": _Field("HEADRACE_TIMEOUT_SECONDS", _optional_number),
    "max_age": _Field("HEADRACE_MAX_AGE_SECONDS", _optional_number),
    "result_ttl": _Field("HEADRACE_RESULT_TTL_SECONDS", _optional_number),
    "job_timeout": _Field("HEADRACE_JOB_TIMEOUT_SECONDS", _optional_number),
    "keep": _Field("HEADRACE_KEEP_SECONDS", _number),
    "results_url": _Field("HEADRACE_RESULTS_URL", str.strip),
    "result_inline": _Field("HEADRACE_RESULT_INLINE_BYTES", int),
    "data_url": _Field("HEADRACE_DATA_URL", str.strip),
    "data_keep": _Field("HEADRACE_DATA_KEEP_SECONDS", _optional_number),
    "strict": _Field("HEADRACE_STRICT", _flag),
    "lease": _Field("HEADRACE_LEASE_SECONDS", _number),
    "heartbeat": _Field("HEADRACE_HEARTBEAT_SECONDS", _number),
    "concurrency": _Field("HEADRACE_CONCURRENCY", int),
    "processes": _Field("HEADRACE_PROCESSES", int),
    "children": _Field("HEADRACE_CHILDREN", int),
    "threads": _Field("HEADRACE_THREADS", int),
    "queues": _Field("HEADRACE_QUEUES", _names),
    "max_memory": _Field("HEADRACE_MAX_MEMORY", str.strip),
    "kill_memory": _Field("HEADRACE_KILL_MEMORY", str.strip),
    "drain": _Field("HEADRACE_DRAIN_SECONDS", _number),
    "metrics_port": _Field("HEADRACE_METRICS_PORT", int),
    "metrics_host": _Field("HEADRACE_METRICS_HOST", str.strip),
    "log_level": _Field("HEADRACE_LOG_LEVEL", _lower),
    "log_format": _Field("HEADRACE_LOG_FORMAT", _lower),
    "task_log_level": _Field("HEADRACE_TASK_LOG_LEVEL", _lower),
    "otel": _Field("HEADRACE_OTEL", _flag),
    "trace_url": _Field("HEADRACE_TRACE_URL", str.strip),
    "host": _Field("HEADRACE_HOST", str.strip),
    "port": _Field("HEADRACE_PORT", int),
    "auth": _Field("HEADRACE_AUTH", _flag),
    "body_limit": _Field("HEADRACE_BODY_LIMIT", str.strip),
    "rate_limit": _Field("HEADRACE_RATE_LIMIT", int),
    "cors_origins": _Field("HEADRACE_CORS_ORIGINS", _names),
    "secure_cookies": _Field("HEADRACE_SECURE_COOKIES", _flag),
    "trust_proxy": _Field("HEADRACE_TRUST_PROXY", _names),
    "redis_url": _Field("HEADRACE_REDIS_URL", str.strip),
    "retry_ratio": _Field("HEADRACE_RETRY_RATIO", _number),
    "retry_queue_warning": _Field("HEADRACE_RETRY_QUEUE_WARNING", int),
    "retry_queue_critical": _Field("HEADRACE_RETRY_QUEUE_CRITICAL", int),
    "circuit_failure_threshold": _Field("HEADRACE_CIRCUIT_FAILURE_THRESHOLD", _number),
    "circuit_volume_threshold": _Field("HEADRACE_CIRCUIT_VOLUME_THRESHOLD", int),
    "circuit_timeout": _Field("HEADRACE_CIRCUIT_TIMEOUT_SECONDS", _number),
    "pool_size": _Field("HEADRACE_POOL_SIZE", int),
    "pool_overflow": _Field("HEADRACE_POOL_OVERFLOW", int),
    "echo": _Field("HEADRACE_ECHO", _flag),
    "synchronous": _Field("HEADRACE_SYNCHRONOUS", str.strip),
    # Not a setting of its own: it is the budget inside `retry`.
    "max_retries": _Field("HEADRACE_MAX_RETRIES", int),
}
_DURATIONS = (
    "soft_timeout",
    "timeout",
    "max_age",
    "result_ttl",
    "job_timeout",
    "keep",
    "data_keep",
    "lease",
    "heartbeat",
    "drain",
    "circuit_timeout",
)


def read_settings(explicit: Mapping[str, Any], *, environ: Mapping[str, str] | None = None) -> Settings:
    """The settings of one app. `explicit` holds what `App(...)` was given."""
    environ = os.environ if environ is None else environ
    given = dict(explicit)
    unknown = sorted(set(given) - {field.name for field in dataclasses.fields(Settings)})
    if unknown:
        known = ", ".join(sorted(field.name for field in dataclasses.fields(Settings)))
        raise SettingsError(f"App has no setting {unknown[0]!r}; it has {known}")
    preset_name = given.pop("preset", None) or environ.get("HEADRACE_PRESET") or None
    preset = _preset(preset_name)

    values: dict[str, Any] = dict(preset.values)
    origins: dict[str, str] = dict.fromkeys(values, f"preset {preset_name}")
    if preset.database is not None:
        values["database_url"] = _database_url(preset.database, environ)
    preset_fields = {name: _Field(variable, _FIELDS[name].parse) for variable, name in preset.environment.items()}
    for fields in (preset_fields, _FIELDS):
        for name, read in fields.items():
            text = environ.get(read.variable, "")
            if text.strip():
                values[name] = _parse(read, text)
                origins[name] = read.variable
    for name, value in given.items():
        values[name] = value
        origins[name] = f"App({name}=…)"

    max_retries = values.pop("max_retries", None)
    if max_retries is not None and "retry" not in given:
        values["retry"] = _with_retries(values.get("retry", DEFAULT_RETRY), max_retries, origins["max_retries"])
    for name in _DURATIONS:
        if values.get(name) is not None:
            values[name] = _duration(values[name], origins.get(name, name))
    for name in ("max_memory", "kill_memory", "body_limit"):
        if values.get(name) is not None:
            values[name] = _memory(values[name], origins[name])
    # A heartbeat goes with its lease: one that nobody set, or that came from the preset with another lease, follows it.
    beat_is_own = "heartbeat" in origins and origins["heartbeat"] != f"preset {preset_name}"
    if "lease" in values and not beat_is_own and origins["lease"] != origins.get("heartbeat"):
        values["heartbeat"] = values["lease"] / 3
    settings = Settings(preset=preset_name, **values)
    _check(settings, origins)
    return settings


def _preset(name: str | None) -> Preset:
    if name is None:
        return Preset(values={})
    if name not in PRESETS:
        raise SettingsError(f"no preset {name!r}; there are {', '.join(sorted(PRESETS))}")
    return PRESETS[name]


def _database_url(parts: Mapping[str, tuple[str, str]], environ: Mapping[str, str]) -> str:
    found = {part: environ.get(variable, default) or default for part, (variable, default) in parts.items()}
    port = found["port"].strip()
    if not port.isdigit() or not 0 < int(port) < 65_536:
        raise SettingsError(f"{parts['port'][0]}={port!r} is not a port; write a number from 1 to 65535")
    password = f":{quote(found['password'], safe='')}" if found["password"] else ""
    host = f"[{found['host']}]" if ":" in found["host"] else quote(found["host"], safe="")
    user, database = quote(found["user"], safe=""), quote(found["database"], safe="")
    return f"postgresql+asyncpg://{user}{password}@{host}:{port}/{database}"


def _parse(field: _Field, text: str) -> Any:
    try:
        return field.parse(text)
    except ValueError as error:
        wanted = "a whole number" if field.parse is int else str(error) if field.parse is _flag else "a number"
        raise SettingsError(f"{field.variable}={text!r} is not understood: {wanted} is wanted") from None


def _with_retries(retry: Retry, max_retries: int, origin: str) -> Retry:
    if max_retries < 0:
        raise SettingsError(f"{origin}={max_retries} must not be negative")
    return dataclasses.replace(retry, max_attempts=max_retries + 1)


def _duration(value: Any, origin: str) -> float:
    try:
        return seconds(value, name=origin)
    except DefinitionError as error:
        raise SettingsError(str(error)) from None


def _memory(value: Any, origin: str) -> int:
    try:
        return memory_bytes(value, name=origin)
    except DefinitionError as error:
        raise SettingsError(str(error)) from None


def _check(settings: Settings, origins: Mapping[str, str]) -> None:
    def origin(name: str) -> str:
        return origins.get(name, f"{name}, by default")

    if not _NAME.fullmatch(settings.name):
        raise SettingsError(
            f"{origin('name')}: app name {settings.name!r} cannot be a schema: use lower-case letters, digits and _, "
            "a letter first, at most 41"
        )
    if settings.soft_timeout is not None and settings.timeout is not None and settings.soft_timeout >= settings.timeout:
        raise SettingsError(
            f"the soft time limit of {settings.soft_timeout:g} s ({origin('soft_timeout')}) must be less than the hard "
            f"limit of {settings.timeout:g} s ({origin('timeout')}): a task could never clean up"
        )
    for name in ("soft_timeout", "timeout", "lease", "heartbeat"):
        value: float | None = getattr(settings, name)
        if value is not None and value <= 0:
            raise SettingsError(f"{origin(name)}: {name} must be longer than zero")
    if settings.heartbeat > settings.lease / 2:
        raise SettingsError(
            f"a heartbeat each {settings.heartbeat:g} s ({origin('heartbeat')}) cannot keep a lease of "
            f"{settings.lease:g} s ({origin('lease')}): one missed beat would lose it; "
            "make the lease at least twice as long"
        )
    for name, least in (
        ("concurrency", 1),
        ("processes", 1),
        ("children", 0),
        ("threads", 0),
        ("pool_size", 1),
        ("pool_overflow", 0),
        ("result_inline", 0),
        ("port", 0),
        ("rate_limit", 0),
        ("body_limit", 1),
    ):
        count = getattr(settings, name)
        if isinstance(count, bool) or not isinstance(count, int) or count < least:
            raise SettingsError(f"{origin(name)}: {name} must be a whole number from {least}, not {count!r}")
    if settings.port > 65_535:
        raise SettingsError(f"{origin('port')}: {settings.port} is not a port; write a number up to 65535")
    for name in ("retry_ratio", "circuit_failure_threshold"):
        if not 0 <= getattr(settings, name) <= 1:
            raise SettingsError(f"{origin(name)}: {name} must be between 0 and 1, not {getattr(settings, name)!r}")
    if settings.max_memory and settings.kill_memory and settings.kill_memory < settings.max_memory:
        raise SettingsError(
            f"{origin('kill_memory')}: {shown_memory(settings.kill_memory)} must not be less than the "
            f"{shown_memory(settings.max_memory)} of {origin('max_memory')}: no child would live to be replaced"
        )
    if settings.retry_queue_warning > settings.retry_queue_critical:
        raise SettingsError(
            f"{origin('retry_queue_warning')}: the warning depth must not exceed the critical depth "
            f"({origin('retry_queue_critical')})"
        )
    levels = ("debug", "info", "warning", "error")
    choices = (("log_level", levels), ("task_log_level", (*levels, "off")), ("log_format", ("console", "json")))
    for name, known in choices:
        if getattr(settings, name) not in known:
            raise SettingsError(f"{origin(name)}: {name} must be {' or '.join(known)}, not {getattr(settings, name)!r}")
    if settings.trace_url and not _TRACE_URL.fullmatch(settings.trace_url):
        raise SettingsError(
            f"{origin('trace_url')}: an address with {{trace_id}} in it is wanted, as "
            f"https://jaeger.example.org/trace/{{trace_id}}, not {settings.trace_url!r}"
        )
    if settings.synchronous not in ("FULL", "NORMAL"):
        raise SettingsError(
            f"{origin('synchronous')}: synchronous must be FULL or NORMAL, not {settings.synchronous!r}"
        )
