"""Which keys a call takes: `unique`, `idempotency_key`, `debounce`. A key belongs to the task's name."""

import hashlib
from collections.abc import Mapping
from typing import Any

from headrace.client.options import Options
from headrace.core.durations import seconds
from headrace.core.limits import resolve_key
from headrace.core.task import Key


def keys_of(
    options: Options, *, name: str, arguments: str, values: Mapping[str, Any], retention: float
) -> tuple[Key, ...]:
    """`arguments` is the canonical JSON of the call, `values` the same by parameter name."""
    keys: list[Key] = []

    def add(scope: Any, key: str, **more: Any) -> None:
        keys.append(Key(scope=scope, key=f"{name}:{key}", **more))

    if options.unique is True:
        digest = hashlib.sha256(arguments.encode()).hexdigest()
        add("unique", digest, on_conflict=options.on_conflict)
    elif options.unique:
        key = resolve_key(options.unique, values, name=f"task {name}: unique")
        add("unique", key, on_conflict=options.on_conflict)
    if options.debounce is not None:
        key = resolve_key(options.debounce.key, values, name=f"task {name}: debounce")
        add("unique", f"debounce:{key}", on_conflict="replace")
    if options.idempotency_key is not None:
        given = options.idempotency_key
        # The caller's own word, often from outside: it is taken as it is and never as a template.
        key = resolve_key(given, values, name=f"task {name}: idempotency_key") if callable(given) else given
        conflict = "return" if options.on_conflict == "replace" else options.on_conflict
        add("idem", key, ttl=retention, on_conflict=conflict)
    return tuple(keys)


def debounce_delay(options: Options) -> tuple[float, float | None]:
    """(delay, longest delay) of a debounced call."""
    assert options.debounce is not None
    longest = options.debounce.max_wait
    return (
        seconds(options.debounce.wait, name="Debounce.wait"),
        None if longest is None else seconds(longest, name="Debounce.max_wait"),
    )
