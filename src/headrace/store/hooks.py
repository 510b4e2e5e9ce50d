"""The stored form of the task that runs when a job ends."""

from dataclasses import asdict
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
