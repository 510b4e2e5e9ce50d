"""The stored form of the task that runs when a job ends."""

from dataclasses import asdict, fields, replace
from datetime import datetime
from typing import Any

import orjson

from headrace.core.limits import Gate
from headrace.core.task import Key, NewTask


def new_task_to_json(task: NewTask | None, *, defaults: bool = True) -> str | None:
    """Instants become ISO text; both databases keep the same form, so that a job can move from one to the other.

    Without defaults, an older version reads what a newer one wrote, unless it says what the older one does not know.
    A hook needs them: PostgreSQL enqueues its text as it is.
    """
    if task is None:
        return None
    if defaults:
        return orjson.dumps(asdict(task)).decode()
    parts = _said(task)
    for name in ("gates", "keys"):
        if name in parts:
            parts[name] = [_said(part) for part in parts[name]]
    return orjson.dumps(parts).decode()


def _said(value: NewTask | Gate | Key) -> dict[str, Any]:
    return {f.name: said for f in fields(value) if (said := getattr(value, f.name)) != f.default}


def new_task_from_json(text: str) -> NewTask:
    parts: dict[str, Any] = orjson.loads(text)
    parts["gates"] = tuple(Gate(**gate) for gate in parts.get("gates", ()))
    parts["keys"] = tuple(Key(**key) for key in parts.get("keys", ()))
    if parts.get("run_at") is not None:
        parts["run_at"] = datetime.fromisoformat(parts["run_at"])
    return NewTask(**parts)


def owned(task: NewTask | None, owner: str | None) -> NewTask | None:
    """As the owner of its job has it, unless it says whose it is."""
    return task if task is None or task.owner is not None else replace(task, owner=owner)


def hook_task(text: str) -> NewTask:
    """What is enqueued in the transaction that ends the job. There is nobody to be refused: a key that is held must not
    keep the job, and the batch its last task ended in, from ending."""
    task = new_task_from_json(text)
    keys = tuple(replace(key, on_conflict="return") if key.on_conflict == "reject" else key for key in task.keys)
    return replace(task, job=None, keys=keys)
