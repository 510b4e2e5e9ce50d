"""Who may call what: a row for each route, and things of `user` to try it on.

Whoever adds a route adds its row here; test_authorisation.py says so if they forget.
"""

import dataclasses
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from headrace.core.task import NewJob, NewTask, Ref
from headrace.scheduling.declaration import Schedule
from headrace.server.faces.ids import uuid_of
from headrace.testing import adrain
from tests.server.serving import Serving

CALLERS = ("nobody", "viewer", "user", "other", "operator", "admin")

# Which of them are let in, by the kind of the route. Things belong to `user`; `other` is another of the same role.
EVERYBODY = frozenset(CALLERS)
KNOWN = EVERYBODY - {"nobody"}
SEES = KNOWN - {"other"}  # a thing of user's
OVERSEES = KNOWN - {"user", "other"}  # what belongs to nobody
SUBMITS = KNOWN - {"viewer"}
CONTROLS = frozenset({"user", "operator", "admin"})  # a thing of user's
OPERATES = frozenset({"operator", "admin"})
ADMINISTERS = frozenset({"admin"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    allowed: frozenset[str]
    status: int  # of who is let in
    body: Any = None
    query: str = ""
    thing: str = ""  # what {id} or {name} is: a method of Things
    refusal: int = 403  # of who is known, may do such things, and is not let in


class Things:
    """Each call makes a new one, so that every caller of the matrix finds it untouched."""

    def __init__(self, server: Serving) -> None:
        self._server = server
        self._app = server.app
        self._dead: list[int] = []
        self._n = 0

    async def prepare(self, dead: int) -> None:
        """Dead letters have to fail first: all that will be needed do so at once."""
        fail = self._app.get_task("fail")
        tasks = [_owned(fail.prepare()) for _ in range(dead)]
        self._dead = [answer.id for answer in await self._app.engine.enqueue(tasks)]
        await adrain(self._app, raise_on_failure=False, limit=10_000)

    async def task(self) -> str:
        return str(await self._task(_owned(self._app.get_task("add").prepare(1, 2))))

    async def dead_letter(self) -> str:
        return str(self._dead.pop())

    async def uuid(self) -> str:
        return str(uuid_of(int(await self.task())))

    async def dead_uuid(self) -> str:
        return str(uuid_of(int(await self.dead_letter())))

    async def verb(self) -> str:
        return "now"

    async def unapproved(self) -> str:
        import dataclasses

        return str(
            await self._task(dataclasses.replace(_owned(self._app.get_task("add").prepare(1, 2)), approval=True))
        )

    async def job(self) -> str:
        return str(await self._job(self._app.get_task("add").prepare(1, 2)))

    async def job_group(self) -> str:
        id = await self.job()
        (task,) = await self._app.tasks.alist(job=int(id))
        return f"{id} g{task.id}"

    async def talking_job(self) -> str:
        """One of whose tasks has logged something."""
        id = await self._job(self._app.get_task("add").prepare(1, 2))
        (task,) = await self._app.tasks.alist(job=id)
        await self._app.engine.run(lambda store: store.append_logs([(Ref(task.id, 0), 0, "info", "at work")]))
        return str(id)

    async def failed_job(self) -> str:
        id = await self._job(self._app.get_task("add").prepare(1, 2))
        await self._app.jobs.acancel(id)
        return str(id)

    async def registered(self) -> str:
        return "add"

    async def queue(self) -> str:
        return "mail"

    async def service(self) -> str:
        return "chat"

    async def opened_service(self) -> str:
        await self._app.engine.run(lambda store: store.open_breaker("chat", by="w1", timeout=60))
        return "chat"

    async def schedule(self) -> str:
        self._n += 1
        name = f"every-{self._n}"
        await self._app.schedules.aadd(self._app.get_task("add"), Schedule(3600, name=name), 1, 2)
        return name

    async def worker(self) -> str:
        found = await self._app.workers.alist()
        return found[0].id

    async def own_token(self) -> str:
        """Nobody's here: for others it is not there."""
        return str(2**40)

    async def person(self) -> str:
        return "viewer"

    async def _task(self, new: NewTask) -> int:
        (answer,) = await self._app.engine.enqueue([new])
        return answer.id

    async def _job(self, *tasks: NewTask) -> int:
        job = NewJob(name="nightly", tasks=[_owned(task) for task in tasks], owner="user")
        id, _ = await self._app.engine.run(lambda store: store.create_job(job))
        return id

    def makers(self) -> Mapping[str, Callable[[], Awaitable[str]]]:
        return {name: getattr(self, name) for name in dir(self) if not name.startswith("_")}


def _owned(new: NewTask) -> NewTask:
    return dataclasses.replace(new, owner="user")


_ADD = {"name": "add", "args": [1, 2]}
_SOME = {"name": ["no.such.task"]}
_V1 = "/api/v1"

ROWS: dict[tuple[str, str], Row] = {
    ("GET", "/api/openapi.json"): Row(allowed=EVERYBODY, status=200),
    ("GET", "/api/docs"): Row(allowed=EVERYBODY, status=200),
    # What the first page shows, and what can be submitted.
    ("GET", f"{_V1}/overview"): Row(allowed=KNOWN, status=200),
    ("GET", f"{_V1}/registry"): Row(allowed=KNOWN, status=200),
    ("GET", f"{_V1}/registry/{{name}}"): Row(allowed=KNOWN, status=200, thing="registered"),
    # Tasks.
    ("POST", f"{_V1}/tasks"): Row(allowed=SUBMITS, status=201, body=_ADD),
    ("POST", f"{_V1}/tasks/batch"): Row(allowed=SUBMITS, status=201, body={"tasks": [_ADD, _ADD]}),
    ("GET", f"{_V1}/tasks"): Row(allowed=KNOWN, status=200),
    ("POST", f"{_V1}/tasks/retry"): Row(allowed=OPERATES, status=200, body=_SOME),
    ("POST", f"{_V1}/tasks/cancel"): Row(allowed=OPERATES, status=200, body=_SOME),
    ("POST", f"{_V1}/tasks/delete"): Row(allowed=OPERATES, status=200, body=_SOME),
    ("POST", f"{_V1}/tasks/requeue-orphaned"): Row(allowed=OPERATES, status=200),
    ("GET", f"{_V1}/tasks/{{id}}"): Row(allowed=SEES, status=200, thing="task"),
    ("GET", f"{_V1}/tasks/{{id}}/attempts"): Row(allowed=SEES, status=200, thing="task"),
    ("GET", f"{_V1}/tasks/{{id}}/result"): Row(allowed=SEES, status=409, thing="task"),
    ("GET", f"{_V1}/tasks/{{id}}/logs"): Row(allowed=SEES, status=200, thing="task"),
    ("GET", f"{_V1}/tasks/{{id}}/logs/download"): Row(allowed=SEES, status=200, thing="task"),
    ("GET", f"{_V1}/tasks/{{id}}/explain"): Row(allowed=SEES, status=200, thing="task"),
    ("POST", f"{_V1}/tasks/{{id}}/clear"): Row(allowed=CONTROLS, status=200, thing="dead_letter"),
    ("POST", f"{_V1}/tasks/{{id}}/reenqueue"): Row(allowed=CONTROLS, status=201, thing="task"),
    ("DELETE", f"{_V1}/tasks/{{id}}"): Row(allowed=CONTROLS, status=204, thing="task"),
    ("POST", f"{_V1}/tasks/{{id}}/retry"): Row(allowed=CONTROLS, status=200, thing="dead_letter"),
    ("POST", f"{_V1}/tasks/{{id}}/cancel"): Row(allowed=CONTROLS, status=200, thing="task"),
    ("POST", f"{_V1}/tasks/{{id}}/approve"): Row(allowed=OPERATES, status=200, thing="unapproved"),
    ("POST", f"{_V1}/tasks/{{id}}/reject"): Row(allowed=OPERATES, status=200, thing="unapproved"),
    ("GET", f"{_V1}/results/{{id}}"): Row(allowed=SEES, status=409, thing="task"),
    # AsyncTaskFlow's own paths; a task that is not for you is not there.
    ("POST", f"{_V1}/tasks/summarize/"): Row(allowed=SUBMITS, status=200, body={"content": "long"}),
    ("GET", f"{_V1}/tasks/"): Row(allowed=KNOWN, status=200),
    ("GET", f"{_V1}/tasks/{{task_id}}"): Row(allowed=SEES, status=200, thing="uuid", refusal=404),
    ("DELETE", f"{_V1}/tasks/{{task_id}}"): Row(allowed=CONTROLS, status=204, thing="uuid", refusal=404),
    ("POST", f"{_V1}/tasks/{{task_id}}/retry"): Row(allowed=CONTROLS, status=200, thing="dead_uuid", refusal=404),
    ("GET", f"{_V1}/queues/status"): Row(allowed=KNOWN, status=200),
    ("GET", f"{_V1}/queues/dlq"): Row(allowed=KNOWN, status=200),
    ("GET", "/health"): Row(allowed=EVERYBODY, status=200),
    # The ledger, for apps over HTTP. Each of its verbs has its own scope: see tests of store.http.
    ("GET", f"{_V1}/ledger/"): Row(allowed=KNOWN, status=200),
    ("POST", f"{_V1}/ledger/{{verb}}"): Row(allowed=KNOWN, status=200, body={}, thing="verb"),
    # Jobs.
    ("POST", f"{_V1}/jobs"): Row(allowed=SUBMITS, status=201, body={"name": "nightly", "tasks": [_ADD]}),
    ("GET", f"{_V1}/jobs"): Row(allowed=KNOWN, status=200),
    ("GET", f"{_V1}/jobs/{{id}}"): Row(allowed=SEES, status=200, thing="job"),
    ("GET", f"{_V1}/jobs/{{id}}/graph"): Row(allowed=SEES, status=200, thing="job"),
    ("GET", f"{_V1}/jobs/{{id}}/groups"): Row(allowed=SEES, status=200, thing="job"),
    ("GET", f"{_V1}/jobs/{{id}}/groups/{{group}}/tasks"): Row(allowed=SEES, status=200, thing="job_group"),
    ("GET", f"{_V1}/jobs/{{id}}/gantt"): Row(allowed=SEES, status=200, thing="job"),
    ("GET", f"{_V1}/jobs/{{id}}/events"): Row(allowed=SEES, status=200, thing="job"),
    ("GET", f"{_V1}/jobs/{{id}}/logs"): Row(allowed=SEES, status=200, thing="job"),
    ("POST", f"{_V1}/jobs/{{id}}/tasks"): Row(allowed=CONTROLS, status=201, body={"tasks": [_ADD]}, thing="job"),
    ("POST", f"{_V1}/jobs/{{id}}/cancel"): Row(allowed=CONTROLS, status=200, thing="job"),
    ("POST", f"{_V1}/jobs/{{id}}/retry-failed"): Row(allowed=CONTROLS, status=200, thing="failed_job"),
    # Queues and dead letters.
    ("GET", f"{_V1}/queues"): Row(allowed=KNOWN, status=200),
    ("GET", f"{_V1}/queues/{{name}}/rates"): Row(allowed=KNOWN, status=200, thing="queue"),
    ("POST", f"{_V1}/queues/{{name}}/pause"): Row(allowed=OPERATES, status=200, thing="queue"),
    ("POST", f"{_V1}/queues/{{name}}/resume"): Row(allowed=OPERATES, status=200, thing="queue"),
    ("PUT", f"{_V1}/queues/{{name}}/limit"): Row(allowed=OPERATES, status=200, body={"n": 5}, thing="queue"),
    ("PUT", f"{_V1}/queues/{{name}}/rate"): Row(allowed=OPERATES, status=200, body={"n": 5}, thing="queue"),
    ("GET", f"{_V1}/dead-letters"): Row(allowed=KNOWN, status=200),
    ("GET", f"{_V1}/dead-letters/groups"): Row(allowed=KNOWN, status=200),
    ("POST", f"{_V1}/dead-letters/replay"): Row(allowed=OPERATES, status=200, body=_SOME),
    ("POST", f"{_V1}/dead-letters/discard"): Row(allowed=OPERATES, status=200, body=_SOME),
    ("POST", f"{_V1}/dead-letters/{{id}}/replay"): Row(allowed=CONTROLS, status=200, thing="dead_letter"),
    ("DELETE", f"{_V1}/dead-letters/{{id}}"): Row(allowed=CONTROLS, status=204, thing="dead_letter"),
    # Schedules belong to nobody.
    ("GET", f"{_V1}/schedules"): Row(allowed=OVERSEES, status=200),
    ("POST", f"{_V1}/schedules"): Row(
        allowed=OPERATES, status=201, body={"name": "hourly-{n}", "task": "add", "args": [1, 2], "every": 3600}
    ),
    ("GET", f"{_V1}/schedules/{{name}}"): Row(allowed=OVERSEES, status=200, thing="schedule"),
    ("GET", f"{_V1}/schedules/{{name}}/runs"): Row(allowed=OVERSEES, status=200, thing="schedule"),
    ("PATCH", f"{_V1}/schedules/{{name}}"): Row(allowed=OPERATES, status=200, body={"jitter": 5}, thing="schedule"),
    ("DELETE", f"{_V1}/schedules/{{name}}"): Row(allowed=OPERATES, status=204, thing="schedule"),
    ("POST", f"{_V1}/schedules/{{name}}/pause"): Row(allowed=OPERATES, status=200, thing="schedule"),
    ("POST", f"{_V1}/schedules/{{name}}/resume"): Row(allowed=OPERATES, status=200, thing="schedule"),
    ("POST", f"{_V1}/schedules/{{name}}/run"): Row(allowed=OPERATES, status=202, thing="schedule"),
    ("POST", f"{_V1}/schedules/{{name}}/trigger"): Row(allowed=OPERATES, status=202, thing="schedule"),
    ("POST", f"{_V1}/schedules/{{name}}/trigger/"): Row(allowed=OPERATES, status=202, thing="schedule"),
    # Workers, breakers, events, audit.
    ("GET", f"{_V1}/workers"): Row(allowed=KNOWN, status=200),
    ("GET", f"{_V1}/workers/{{id}}"): Row(allowed=KNOWN, status=200, thing="worker"),
    ("GET", f"{_V1}/breakers"): Row(allowed=KNOWN, status=200),
    ("GET", f"{_V1}/breakers/{{service}}/history"): Row(allowed=KNOWN, status=200, thing="opened_service"),
    ("POST", f"{_V1}/breakers/{{service}}/reset"): Row(allowed=OPERATES, status=200, thing="opened_service"),
    ("POST", f"{_V1}/breakers/{{service}}/open"): Row(allowed=OPERATES, status=200, thing="service"),
    ("GET", f"{_V1}/events"): Row(allowed=OVERSEES, status=200),
    ("POST", f"{_V1}/events"): Row(allowed=OPERATES, status=201, body={"event": "paid", "key": "17"}),
    ("GET", f"{_V1}/audit"): Row(allowed=ADMINISTERS, status=200),
    # Probes and metrics.
    ("GET", "/live"): Row(allowed=EVERYBODY, status=200),
    ("GET", "/ready"): Row(allowed=EVERYBODY, status=200),
    ("GET", "/metrics"): Row(allowed=KNOWN, status=200),
    # Users, tokens, sessions.
    ("POST", f"{_V1}/session"): Row(allowed=EVERYBODY, status=422, body={}),
    ("POST", f"{_V1}/session/token"): Row(allowed=EVERYBODY, status=422, body={}),
    ("GET", f"{_V1}/session"): Row(allowed=KNOWN, status=200),
    ("DELETE", f"{_V1}/session"): Row(allowed=KNOWN, status=409),
    ("GET", f"{_V1}/tokens"): Row(allowed=KNOWN, status=200),
    ("POST", f"{_V1}/tokens"): Row(allowed=SUBMITS, status=201, body={"label": "laptop"}),
    ("DELETE", f"{_V1}/tokens/{{id}}"): Row(allowed=SUBMITS, status=404, thing="own_token"),
    ("GET", f"{_V1}/users"): Row(allowed=ADMINISTERS, status=200),
    ("POST", f"{_V1}/users"): Row(allowed=ADMINISTERS, status=201, body={"name": "ada-{n}", "role": "viewer"}),
    ("GET", f"{_V1}/users/{{name}}"): Row(allowed=ADMINISTERS, status=200, thing="person"),
    ("PATCH", f"{_V1}/users/{{name}}"): Row(allowed=ADMINISTERS, status=200, body={"role": "viewer"}, thing="person"),
    # Streams of server-sent events.
    ("GET", f"{_V1}/live/jobs/{{id}}/status"): Row(allowed=SEES, status=200, query="?follow=false", thing="job"),
    ("GET", f"{_V1}/live/jobs/{{id}}/logs"): Row(allowed=SEES, status=200, query="?follow=false", thing="job"),
    ("GET", f"{_V1}/live/tasks/{{id}}"): Row(allowed=SEES, status=200, query="?follow=false", thing="task"),
    ("GET", f"{_V1}/live/queues"): Row(allowed=KNOWN, status=200, query="?follow=false"),
    ("GET", f"{_V1}/live/system"): Row(allowed=KNOWN, status=200, query="?follow=false"),
    ("GET", f"{_V1}/live/overview"): Row(allowed=KNOWN, status=200, query="?follow=false"),
    ("GET", f"{_V1}/live/tasks"): Row(allowed=KNOWN, status=200, query="?follow=false"),
}

# By path: who is let in. The others are told by a close code, 4401 or 4403.
SOCKETS: dict[str, tuple[frozenset[str], str]] = {
    "/ws/job/{id}/status/": (SEES, "job"),
    "/ws/job/{id}/logs/": (SEES, "talking_job"),
    "/ws/task/{id}/": (SEES, "task"),
    "/ws/queues/": (KNOWN, ""),
    "/ws/system/": (KNOWN, ""),
    "/ws/overview/": (KNOWN, ""),
    "/ws/tasks/": (KNOWN, ""),
}


def routes_of(api: FastAPI) -> set[tuple[str, str]]:
    """(method, path) of everything that it serves over HTTP."""
    return {
        (method, route.path_format or route.path or "")
        for route in iter_route_contexts(api.routes)
        for method in route.methods or ()
        if method != "HEAD"
    }


def sockets_of(api: FastAPI) -> set[str]:
    return {route.path or "" for route in iter_route_contexts(api.routes) if route.methods is None}


def filled(body: Any, n: int) -> Any:
    """Names that are given once have the number of the call in them."""
    return None if body is None else json.loads(json.dumps(body).replace("{n}", str(n)))
