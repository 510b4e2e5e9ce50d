"""A plain FastAPI application that enqueues into Celery or Dramatiq, as their users write one: no users, no tokens."""

import asyncio
from typing import Any

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from bench.adapters import OPTIONS

api = FastAPI()


class Submitted(BaseModel):
    name: str
    kwargs: dict[str, Any]


class Made(BaseModel):
    id: str


def _send(given: Submitted) -> Made:
    if OPTIONS["peer"] == "celery":
        from bench.adapters import celery

        return Made(id=celery.app.send_task(given.name, kwargs=given.kwargs).id)
    from bench.adapters import dramatiq

    return Made(id=dramatiq.noop.send(**given.kwargs).message_id)


if OPTIONS.get("route") == "async":

    @api.post("/api/v1/tasks", status_code=201)
    async def submit(given: Submitted) -> Made:
        """The call blocks the loop for as long as Redis takes; it spares a thread."""
        return _send(given)

else:

    @api.post("/api/v1/tasks", status_code=201)
    def submit(given: Submitted) -> Made:
        return _send(given)


def setup() -> None:
    pass


def worker() -> None:
    config = uvicorn.Config(api, host="127.0.0.1", port=OPTIONS["port"], log_config=None, access_log=False)
    asyncio.set_event_loop_policy(None)
    uvicorn.Server(config).run()
