"""The client's side: a store whose verbs are calls of a server."""

import asyncio
import builtins
import dataclasses
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Never

import httpx

from headrace._version import __version__
from headrace.core.errors import ForeignConnection, NotAllowed, SettingsError, StoreError, StoreUnavailable
from headrace.core.task import Enqueued, NewJob, TaskFilter, TaskRecord
from headrace.store.base import Store, StoreClosed, StoreOptions
from headrace.store.http import failures
from headrace.store.http.jobs import WiredJob
from headrace.store.http.verbs import MOST_AT_ONCE, MOST_ROWS, VERBS, form_of

_PATH = "api/v1/ledger"
_TIMEOUT = httpx.Timeout(30.0, connect=5.0)
_OF_IDS = frozenset({"get", "edges", "task_heads", "cancel", "retry"})
# By the last row of a page, what asks for the next.
_NEXT: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "list_jobs": lambda job: {"before": job.id},
    "logs": lambda line: {"seen": (line.claim_no, line.seq)},
    "outline": lambda task: {"after": task.id},
    "job_events": lambda event: {"after": event.seq},
    "job_lines": lambda line: {"after": line.seq},
    "schedule_runs": lambda run: {"before": run.tick},
}
_LOOK = 1.0  # seconds between two hints: nothing is pushed to an app


class HttpStore:
    """What its table of verbs names is called on the server; the rest needs the database, and says so.

    A call that could not be sent is safe to repeat. One that was sent and not answered may have happened: it raises
    StoreUnavailable, and whoever must not enqueue twice gives an idempotency key.
    """

    dialect = "http"

    def __init__(self, url: str, options: StoreOptions) -> None:
        self.url = url.rstrip("/")
        self._token = options.extra.get("token")
        self._connections = options.pool_size
        self._client: httpx.AsyncClient | None = None

    async def open(self) -> None:
        """Asks the server who we are: a wrong address or token is told now, not at the first task."""
        headers = {"User-Agent": f"headrace/{__version__}"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        limits = httpx.Limits(max_connections=self._connections)
        self._client = httpx.AsyncClient(
            base_url=f"{self.url}/{_PATH}/", headers=headers, timeout=_TIMEOUT, limits=limits
        )
        await self._ask("GET", "")

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        if name in VERBS:
            form = form_of(name)

            async def call(*args: Any, **kwargs: Any) -> Any:
                if name in _OF_IDS and args and len(args[0]) > MOST_AT_ONCE:
                    return await self._in_parts(name, *args, **kwargs)
                if name in _NEXT and "limit" in kwargs:
                    return await self._in_pages(name, *args, **kwargs)
                answer = await self._ask("POST", name, form.write_arguments(*args, **kwargs))
                return form.read_answer(answer)

            return call
        if not name.startswith("_") and hasattr(Store, name):
            return self._needs_the_database(name)
        raise AttributeError(name)

    async def create_job(self, job: NewJob) -> tuple[int, Sequence[Enqueued]]:
        form = form_of("create_job")
        return form.read_answer(await self._ask("POST", "create_job", form.write_arguments(WiredJob.of(job))))

    async def list(self, criteria: TaskFilter) -> builtins.list[TaskRecord]:
        """In pages: one answer of a server has an end."""
        form, found = form_of("list"), builtins.list[TaskRecord]()
        while len(found) < criteria.limit:
            n = min(criteria.limit - len(found), MOST_AT_ONCE)
            wanted = dataclasses.replace(criteria, limit=n)
            page = form.read_answer(await self._ask("POST", "list", form.write_arguments(wanted)))
            found += page
            if len(page) < n:
                break
            last = found[-1]
            criteria = dataclasses.replace(criteria, before=(last.finished_at or last.created_at, last.id))
        return found

    async def _in_parts(self, name: str, ids: Sequence[int], **kwargs: Any) -> Any:
        call = getattr(self, name)
        parts = [await call(part, **kwargs) for part in itertools.batched(ids, MOST_AT_ONCE)]
        if isinstance(parts[0], dict):
            return {id: each for part in parts for id, each in part.items()}
        return [each for part in parts for each in part]

    async def _in_pages(self, name: str, *args: Any, limit: int, **kwargs: Any) -> builtins.list[Any]:
        """One answer of a server has an end; what is asked for need not."""
        form, most, found = form_of(name), MOST_ROWS.get(name, MOST_AT_ONCE), builtins.list[Any]()
        while len(found) < limit:
            n = min(limit - len(found), most)
            page = form.read_answer(await self._ask("POST", name, form.write_arguments(*args, limit=n, **kwargs)))
            found += page
            if len(page) < n:
                break
            kwargs |= _NEXT[name](found[-1])
        return found

    @asynccontextmanager
    async def watch(self) -> AsyncGenerator[AsyncIterator[str]]:
        async def hints() -> AsyncIterator[str]:
            while True:
                await asyncio.sleep(_LOOK)
                yield "*"

        yield hints()

    async def announce(self, topics: Iterable[str]) -> None:
        """Whoever watches sees it by its own poll."""

    async def wake(self, queues: Iterable[str]) -> None:
        """The server has woken workers with the very enqueue."""

    def watch_job_ends(self, listener: object) -> None:
        """No verb of an app over HTTP ends a job in this process."""

    def enqueue_program(self, tasks: object) -> Never:
        raise ForeignConnection(
            f"this app speaks to {self.url}, so it cannot enqueue within a transaction of your database: "
            "enqueue after your commit, or give App the URL of the database"
        )

    send_program = enqueue_program

    def _needs_the_database(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def refuse(*_: object, **__: object) -> Never:
            raise SettingsError(
                f"this app speaks to the server {self.url}, and {name!r} needs the database itself: "
                "give App (or HEADRACE_DATABASE_URL) the URL of the database where workers and upkeep run"
            )

        return refuse

    async def _ask(self, method: str, verb: str, arguments: dict[str, Any] | None = None) -> Any:
        client = self._client
        if client is None:
            raise StoreClosed(f"the connection to {self.url} is closed")
        try:
            response = await client.request(method, verb, json=arguments)
        except httpx.TransportError as error:
            raise StoreUnavailable(f"{self.url} does not answer ({type(error).__name__}: {error})") from error
        if response.is_success:
            return response.json()
        raise self._failure(response)

    def _failure(self, response: httpx.Response) -> Exception:
        try:
            problem = response.json()
        except ValueError:
            problem = {}
        if isinstance(problem, dict) and (found := failures.read(problem)) is not None:  # pyright: ignore[reportUnknownArgumentType]
            return found
        said = problem.get("detail") or problem.get("title") if isinstance(problem, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        words = f"{self.url} answered {response.status_code}{f': {said}' if said else ''}"
        if response.status_code == 401:
            return NotAllowed(f"{words}; give App, or HEADRACE_TOKEN, a token that is good there")
        if response.status_code == 403:
            return NotAllowed(words)
        if response.status_code == 413:
            return StoreError(f"{words}; send less at once, or raise the server's HEADRACE_BODY_LIMIT")
        if response.status_code in (429, 502, 503, 504):
            return StoreUnavailable(words)
        return StoreError(f"{words}; is this the address of a headrace server, and of this version?")
