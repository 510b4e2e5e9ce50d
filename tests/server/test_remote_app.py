"""`App("http://…", token=…)`: the same App for a process that cannot reach the database."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from headrace import App, Retry, chain, group
from headrace.cli.target import store_of
from headrace.core.accounts import Scope
from headrace.core.errors import (
    ArgumentError,
    DuplicateTask,
    ForeignConnection,
    NotAllowed,
    NotFound,
    SettingsError,
    StoreUnavailable,
    TaskFailed,
    WrongState,
)
from headrace.core.states import JobState, TaskState
from headrace.core.task import Ref, TaskFilter
from headrace.store.base import CancelAnswer, Store
from headrace.store.http.verbs import VERBS, form_of
from headrace.testing import adrain, override
from tests.server.serving import Serve, Serving, listening
from tests.server.tasks import make_app


@asynccontextmanager
async def remote(serving: Serving, *people: str) -> AsyncGenerator[list[App]]:
    """An app over HTTP for each person, with the same tasks as the server's."""
    async with listening(serving.api) as url:
        apps = [make_app(url, token=serving.secrets[person]) for person in people]
        try:
            yield apps
        finally:
            for app in apps:
                await app.aclose()


async def work(serving: Serving) -> None:
    """Run what waits, in the place of a worker."""
    worker = make_app(serving.app.url)
    async with override(worker, url=serving.app.url):
        await adrain(worker, raise_on_failure=False)


def test_every_verb_that_a_server_offers_has_a_form() -> None:
    for verb in VERBS:
        assert hasattr(Store, verb)
        assert form_of(verb).answer is not None


async def test_tasks_are_enqueued_run_and_read_as_with_a_database(serve: Serve) -> None:
    async with serve() as serving, remote(serving, "operator") as [app]:
        add, fail = app.get_task("add"), app.get_task("fail")
        handle = await add.aenqueue(1, 2)
        many = await add.aenqueue_many([{"a": n, "b": n} for n in range(5)])
        broken = await fail.using(retry=Retry(max_attempts=1)).aenqueue()
        assert (await app.tasks.aget(handle.id)).state is TaskState.PENDING
        assert (await app.tasks.aget(handle.id)).owner == "operator"
        await work(serving)
        assert await handle.aresult(timeout=30) == 3
        assert [await each.aresult(timeout=30) for each in many] == [0, 2, 4, 6, 8]
        with pytest.raises(TaskFailed):
            await broken.aresult(timeout=30)
        assert len(await app.tasks.aattempts(broken.id)) == 1
        assert await app.tasks.aretry(broken.id) == [broken.id]
        assert await app.tasks.acancel(broken.id) == {broken.id: CancelAnswer.CANCELLED}
        assert {task.id for task in await app.tasks.alist(states=["completed"])} == {
            handle.id,
            *(each.id for each in many),
        }


async def test_workflows_are_jobs_of_the_caller(serve: Serve) -> None:
    async with serve() as serving, remote(serving, "user", "other") as [mine, others]:
        add = mine.get_task("add")
        job = await chain(add.si(1, 1), group(add.si(2, 2), add.si(3, 3))).aenqueue()
        record = await mine.jobs.aget(job.id)
        assert (record.total, record.owner) == (3, "user")
        with pytest.raises(NotAllowed):
            await others.jobs.aget(job.id)
        with pytest.raises(NotAllowed):
            await others.jobs.acancel(job.id)
        assert await others.jobs.alist() == []
        assert [each.id for each in await mine.jobs.alist()] == [job.id]
        await work(serving)
        assert (await mine.jobs.aget(job.id)).state is JobState.COMPLETED
        assert len((await mine.jobs.agraph(job.id)).nodes) == 3


async def test_each_sees_and_controls_their_own(serve: Serve) -> None:
    async with serve() as serving, remote(serving, "user", "other", "viewer") as [mine, others, viewer]:
        handle = await mine.get_task("add").aenqueue(1, 2)
        with pytest.raises(NotAllowed):
            await others.tasks.aget(handle.id)
        with pytest.raises(NotAllowed):
            await others.tasks.acancel(handle.id)
        with pytest.raises(NotAllowed):
            await others.tasks.alogs(handle.id)
        assert await others.tasks.alist() == []
        assert [task.id for task in await viewer.tasks.alist()] == [handle.id]
        with pytest.raises(NotAllowed):
            await viewer.tasks.acancel(handle.id)
        with pytest.raises(NotAllowed):
            await viewer.get_task("add").aenqueue(1, 2)
        with pytest.raises(NotAllowed):
            await mine.queues.apause("default")
        assert (await mine.tasks.aget(handle.id)).state is TaskState.PENDING


async def test_what_the_client_says_of_the_owner_does_not_count(serve_sqlite: Serve) -> None:
    """Whoever writes the request by hand gets a task of their own, and no verb that is not offered."""
    async with serve_sqlite() as serving:
        task = {"name": "add", "arguments": '{"a":1,"b":2}', "owner": "admin"}
        answer = await serving.user.post("/api/v1/ledger/enqueue", json={"tasks": [task]})
        [[id, created]] = answer.json()
        assert created
        assert (await serving.app.tasks.aget(id)).owner == "user"
        for verb in ("claim", "finish", "users", "find_token", "prune", "__init__", "_ask"):
            answer = await serving.admin.post(f"/api/v1/ledger/{verb}", json={})
            assert answer.status_code == 404, verb
        bad = await serving.user.post("/api/v1/ledger/enqueue", json={"tasks": [{"name": 7}], "more": 1})
        assert bad.status_code == 422
        assert bad.headers["content-type"] == "application/problem+json"


async def test_errors_are_those_of_any_app(serve_sqlite: Serve) -> None:
    async with serve_sqlite() as serving, remote(serving, "operator") as [app]:
        add = app.get_task("add")
        with pytest.raises(ArgumentError):
            await add.aenqueue(1)
        await add.using(unique="one", on_conflict="reject").aenqueue(1, 2)
        with pytest.raises(DuplicateTask) as refused:
            await add.using(unique="one", on_conflict="reject").aenqueue(1, 2)
        assert refused.value.key
        assert (await app.tasks.aget(refused.value.task_id)).name == "add"
        with pytest.raises(NotFound):
            await app.jobs.acancel(12345)
        job = await group(add.si(1, 1)).aenqueue()
        with pytest.raises(WrongState):
            await app.jobs.aretry_failed(job.id)
        with pytest.raises(SettingsError, match="needs the database"):
            await app.engine.run(lambda store: store.start("w", [Ref(1, 1)]))
        with pytest.raises(ForeignConnection):
            await app.engine.run(_program)


async def _program(store: Store) -> None:
    store.enqueue_program([])


async def test_a_wrong_token_or_address_is_told_at_the_first_use(serve_sqlite: Serve) -> None:
    async with serve_sqlite() as serving, listening(serving.api) as url:
        stranger, nobody = make_app(url, token="hr_" + "x" * 43), make_app("http://127.0.0.1:1")
        with pytest.raises(NotAllowed, match="HEADRACE_TOKEN"):
            await stranger.get_task("add").aenqueue(1, 2)
        with pytest.raises(StoreUnavailable, match="does not answer"):
            await nobody.get_task("add").aenqueue(1, 2)
        reader = make_app(url, token=await serving.token("admin", Scope.READ))
        with pytest.raises(NotAllowed, match="submit"):
            await reader.get_task("add").aenqueue(1, 2)
        assert "hr_" not in repr(stranger.settings)
        for app in (stranger, nobody, reader):
            await app.aclose()


async def test_commands_take_the_token_from_the_environment(
    serve_sqlite: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve_sqlite() as serving, listening(serving.api) as url:
        monkeypatch.setenv("HEADRACE_TOKEN", serving.secrets["operator"])
        store = store_of(url, "headrace")
        await store.open()
        try:
            assert await store.list(TaskFilter()) == []
        finally:
            await store.close()
        nobody = await serving.nobody.get("/api/v1/tasks")
        assert nobody.json()["detail"] == "send a token, as a bearer in the header Authorization, or log in"


async def test_health_that_a_token_may_not_see_is_not_known(serve_sqlite: Serve) -> None:
    """It is no outage: the database is not said to be down."""
    async with serve_sqlite() as serving, remote(serving, "user", "operator") as [mine, operators]:
        seen = await mine.ahealth_check()
        assert {check.detail.partition(":")[0] for check in seen.checks.values()} == {"not known"}
        assert "403" in seen.checks["database"].detail
        assert (await operators.ahealth_check()).checks["workers"].detail == "0 active"
