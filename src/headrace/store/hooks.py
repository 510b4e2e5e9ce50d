"""The stored form of the task that runs when a job ends."""

from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

import orjson

from headrace.core.limits import Gate
from headrace.core.task import Key, NewTask


def new_task_to_json(task: NewTask | None) -> str | None:
    """Instants become ISO text; both databases keep the same form, so that a job can move from one to the other."""
    return None if task is None else orjson.dumps(asdict(task)).decode()


def new_task_from_json(text: str) -> NewTask:
    fields: dict[str, Any] = orjson.loads(text)
    fields["gates"] = tuple(Gate(**gate) for gate in fields.get("gates", ()))
    fields["keys"] = tuple(Key(**key) for key in fields.get("keys", ()))
    if fields.get("run_at") is not None:
        fields["run_at"] = datetime.fromisoformat(fields["run_at"])
    return NewTask(**fields)


def hook_task(text: str) -> NewTask:
    """What is enqueued in the transaction that ends the job. There is nobody to be refused: a key that is held must not
    keep the job, and the batch its last task ended in, from ending."""
    task = new_task_from_json(text)
    keys = tuple(replace(key, on_conflict="return") if key.on_conflict == "reject" else key for key in task.keys)
    return replace(task, job=None, keys=keys)
