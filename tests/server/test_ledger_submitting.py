"""What comes over the ledger, by hand: held to what the server's app declares, bounded, and shown as pages show it."""

import contextlib
import sqlite3
from datetime import UTC, date, datetime
from typing import Any

import pytest

from headrace import Limit, Queue, Rate, current
from headrace.core.accounts import Scope
from headrace.core.errors import EnqueueError
from headrace.core.limits import gates_from_json
from headrace.core.live import JobLine, TaskHead
from headrace.core.states import TaskState
from headrace.core.task import TaskFilter
from headrace.server.ledger.seeing import Curtain
from headrace.store.base import LogLine
from headrace.store.http.verbs import form_of
from headrace.testing import adrain
from tests.server.routed import make_app, routed
from tests.server.serving import Serve, Serving
from tests.server.test_remote_app import remote

LEDGER = "/api/v1/ledger"
WIRED: dict[str, Any] = {"name": "add", "arguments": '{"a":1,"b":2}'}


async def call(client: Any, verb: str, **arguments: Any) -> Any:
    return await client.post(f"{LEDGER}/{verb}", json=arguments)


async def record(server: Serving, id: int) -> Any:
    return await server.app.tasks.aget(id)


@pytest.mark.requirement("K71")
async def test_a_command_that_asks_for_the_word_of_its_own_sender_waits(serve_sqlite: Serve):
    """K71: whatever role a user's command names for its approval, it waits, and they cannot give it."""
    async with routed(serve_sqlite) as server:
        for role in ("user", "viewer", "operator", "finance"):
            options = f'{{"appro\\u0076al":{{"role":"{role}"}}}}'
            given = {"name": "command", "kind": "command", "pool": "command", "options": options}
            answer = await call(server.user, "enqueue", tasks=[{**given, "arguments": '{"argv":["true"]}'}])
            id = answer.json()[0][0]
            assert (await record(server, id)).state == "pending_approval", role
            assert (await call(server.user, "decide", task=id, approved=True, by="user")).status_code == 403
        for options in ("[]", "7", "{", '{"approval":[]}', '{"approval":{"role":{}}}'):
            assert (await call(server.user, "enqueue", tasks=[{**WIRED, "options": options}])).status_code == 422


@pytest.mark.requirement("K71")
async def test_an_alias_is_as_guarded_as_its_task(serve_sqlite: Serve):
    """K71: by whichever of its names a task is called, its declaration counts."""
    app = make_app(serve_sqlite.url)

    @app.task(name="deploy", approval="operator", aliases=["release"])
    async def deploy() -> None: ...

    async with routed(serve_sqlite, app) as server:
        answer = await call(server.user, "enqueue", tasks=[{"name": "release"}])
        assert (await record(server, answer.json()[0][0])).state == "pending_approval"
        job = {"name": "j", "tasks": [WIRED], "on_success": {"name": "release"}}
        assert (await call(server.user, "create_job", job=job)).status_code == 403


async def test_what_the_server_does_not_know_is_refused(serve_sqlite: Serve):
    async with routed(serve_sqlite) as server:
        unknown = {"name": "nobody.knows"}
        refused = await call(server.user, "enqueue", tasks=[WIRED, unknown])
        assert (refused.status_code, refused.json()["error"]) == (422, "UnknownTask")
        for job in ({"tasks": [unknown]}, {"tasks": [WIRED], "on_failure": unknown}):
            assert (await call(server.user, "create_job", job={"name": "j", **job})).status_code == 422
        assert (await call(server.user, "list", criteria={})).json() == []  # nothing of it was written
        assert (await call(server.operator, "enqueue", tasks=[unknown])).status_code == 200


async def test_pool_kind_and_owner_are_the_servers(serve_sqlite: Serve):
    async with routed(serve_sqlite) as server:
        answer = await call(server.user, "enqueue", tasks=[{**WIRED, "pool": "thread", "owner": "admin"}])
        made = await record(server, answer.json()[0][0])
        assert (made.pool, made.kind, made.owner) == ("coroutine", "function", "user")
        hook = {**WIRED, "pool": "thread", "owner": "admin"}
        await call(server.user, "create_job", job={"name": "j", "tasks": [WIRED], "on_success": hook, "owner": "admin"})
        await adrain(server.app)
        found = await server.app.tasks.alist()
        assert {task.owner for task in found} == {"user"}
        assert {task.pool for task in found} == {"coroutine"}
        assert len(found) == 3


def gates_of(server: Serving, id: int) -> set[tuple[str, str, int]]:
    """What is stored: of a gate no record speaks."""
    with contextlib.closing(sqlite3.connect(server.app.url.removeprefix("sqlite:///"))) as connection:
        ((text,),) = connection.execute("SELECT gates FROM headrace_tasks WHERE id = ?", (id,)).fetchall()
    return {(gate.kind, gate.key, gate.n) for gate in gates_from_json(text)}


async def test_declared_limits_hold_for_whoever_leaves_them_out(serve_sqlite: Serve):
    """By the app of the server, as over REST: what a client adds holds as well, what it says of the same key does
    not. An operator may leave them out: limits are theirs to set."""
    app = make_app(serve_sqlite.url, queues={"narrow": Queue(limit=Limit(3))})

    @app.task(name="mail", limit=Limit(2, key="user-{user_id}"), rate=Rate(5, per=1), order_key="{user_id}")
    async def mail(user_id: int, text: str = "") -> None: ...

    given = {"name": "mail", "arguments": '{"user_id":7}'}
    declared = {("limit", "user-7", 2), ("rate", "mail", 5), ("order", "7", 1)}

    async def stored(person: Any, **more: Any) -> set[tuple[str, str, int]]:
        answer = await call(person, "enqueue", tasks=[{**given, **more}])
        assert answer.status_code == 200, answer.text
        return gates_of(server, answer.json()[0][0])

    async with routed(serve_sqlite, app) as server:
        assert await stored(server.user) == declared
        wide = [{"kind": "limit", "key": "user-7", "n": 99}, {"kind": "limit", "key": "mine", "n": 1}]
        assert await stored(server.user, gates=wide) == declared | {("limit", "mine", 1)}
        mine = [{"kind": "order", "key": "mine"}]
        assert await stored(server.user, gates=mine) == declared - {("order", "7", 1)} | {("order", "mine", 1)}
        assert await stored(server.user, queue="narrow") == declared | {("limit", "queue:narrow", 3)}
        assert await stored(server.operator) == set()
        job = {"name": "j", "tasks": [given]}
        made = (await call(server.user, "create_job", job=job)).json()
        assert gates_of(server, made[1][0][0]) == declared
        sealed = await call(server.user, "enqueue", tasks=[{**given, "codec": "aes/1", "arguments": "sealed"}])
        assert sealed.status_code == 422
        assert "has not the codec 'aes/1'" in sealed.json()["detail"]
        plain = await call(server.user, "enqueue", tasks=[{**WIRED, "codec": "aes/1", "arguments": "sealed"}])
        assert plain.status_code == 200  # the worker may have the key


async def test_arguments_are_checked_before_anything_is_written(serve_sqlite: Serve):
    """As the worker would, of whatever the server's app knows; also for operators."""
    app = make_app(serve_sqlite.url)

    @app.task(name="many")
    async def many(parts: list[int], *rest: int, day: date | None = None, **more: str) -> None: ...

    wrong: list[tuple[str, str, str]] = [
        ("add", '{"a":1}', "'b' is missing"),
        ("add", '{"a":1,"b":"x"}', "'b'"),
        ("add", '{"a":1,"b":2,"c":3}', "no parameter 'c'"),
        ("add", "[1,2]", "task add"),
        ("add", "{", "task add"),
        ("hello", "{}", "'name' is missing"),
        ("many", '{"parts":[1,"x"]}', "parts"),
        ("many", '{"parts":[],"day":"soon"}', "day"),
    ]
    async with routed(serve_sqlite, app) as server:
        for name, arguments, said in wrong:
            bad = {"name": name, "arguments": arguments}
            for person in (server.user, server.operator):
                answer = await call(person, "enqueue", tasks=[WIRED, bad])
                assert (answer.status_code, answer.json()["error"]) == (422, "ArgumentError"), (bad, answer.text)
                assert said in answer.json()["detail"]
                assert (await call(person, "create_job", job={"name": "j", "tasks": [bad]})).status_code == 422
        assert await app.tasks.alist() == []
        fits = '{"*":[3,4],"day":"2026-05-01","parts":[1],"word":"x"}'
        assert (await call(server.user, "enqueue", tasks=[{"name": "many", "arguments": fits}])).status_code == 200


async def test_arguments_that_results_give_are_not_missed(serve_sqlite: Serve):
    """A workflow over the ledger: what is given is checked, what comes is not missed, what nobody gives is."""
    one, into_b = {"task": 0, "local": True, "input": 0}, '{"inputs":[{"at":"b","shape":"one"}]}'
    into_list = '{"inputs":[{"at":["parts",1],"shape":"one"}]}'
    cases: list[tuple[str, str, str, int]] = [
        ("add", '{"a":1}', into_b, 200),
        ("add", '{"a":"x"}', into_b, 422),
        ("add", "{}", into_b, 422),
        ("add", "[]", into_b, 422),
        ("total", '{"parts":[1,null]}', into_list, 200),
        ("add", '{"a":1}', '{"inputs":[{"shape":"one"}]}', 422),
        ("add", '{"a":1}', '{"inputs":7}', 422),
    ]
    async with routed(serve_sqlite) as server:
        for name, arguments, options, status in cases:
            second = {"name": name, "arguments": arguments, "options": options, "after": [one]}
            answer = await call(server.user, "create_job", job={"name": "j", "tasks": [WIRED, second]})
            assert answer.status_code == status, (name, arguments, options, answer.text)


@pytest.mark.requirement("K106")
async def test_keys_of_two_callers_do_not_meet_and_a_held_one_hides_its_holder(serve: Serve):
    """K106: the same idempotency key makes a task for each; a unique one of another's answers 409 without an id."""
    async with routed(serve) as server:
        idem = {**WIRED, "keys": [{"scope": "idem", "key": "add:k", "ttl": 60}]}
        mine, theirs = [(await call(person, "enqueue", tasks=[idem])).json() for person in (server.user, server.other)]
        assert mine[0][1]
        assert theirs[0][1]
        assert (await call(server.user, "enqueue", tasks=[idem])).json() == [[mine[0][0], False]]
        rest = {"name": "add", "args": [1, 2], "idempotency_key": "k"}
        assert (await server.user.post("/api/v1/tasks", json=rest)).json()["id"] == mine[0][0]
        for conflict in ("return", "reject"):
            key = {"scope": "unique", "key": f"add:{conflict}", "on_conflict": conflict}
            keyed = {**WIRED, "keys": [key]}
            held = (await call(server.other, "enqueue", tasks=[keyed])).json()[0][0]
            for verb, given in (
                ("enqueue", {"tasks": [keyed]}),
                ("create_job", {"job": {"name": "j", "tasks": [keyed]}}),
            ):
                refused = await call(server.user, verb, **given)
                assert refused.status_code in ((409,) if verb == "enqueue" else (409, 422)), refused.text
                assert "task_id" not in refused.json()
                assert f" {held}" not in refused.json()["detail"]
            again = await call(server.other, "enqueue", tasks=[keyed])
            assert (again.json()[0] == [held, False]) if conflict == "return" else (again.json()["task_id"] == held)


async def test_an_app_is_told_that_a_key_is_held(serve_sqlite: Serve):
    async with serve_sqlite() as server, remote(server, "user", "other") as [mine, others]:
        await others.get_task("add").using(unique="k").aenqueue(1, 2)
        with pytest.raises(EnqueueError, match="held by another's"):
            await mine.get_task("add").using(unique="k").aenqueue(1, 2)


_CLEAN = ("logs", "job_lines", "last_job_lines")  # a worker takes the secrets out before it writes a line
SECRETS = ("hunter2", "sk-result-secret", "result-token", "abcdef0123456789")


async def test_who_only_looks_is_shown_no_secrets(serve_sqlite: Serve):
    async with routed(serve_sqlite) as server:
        greet = server.app.get_task("greet").using(metadata={"password": "hunter2"})
        fail = server.app.get_task("fail")
        new = [greet.prepare(name="ada", password="hunter2"), fail.prepare(why="password=hunter2")]
        job = {"name": "j", "metadata": '{"password":"hunter2"}'}
        wired = [
            {name: getattr(task, name) for name in ("name", "arguments", "options", "queue", "max_attempts")}
            for task in new
        ]
        made = (await call(server.user, "create_job", job={**job, "tasks": wired})).json()
        job_id, (first, second) = made[0], [id for id, _ in made[1]]
        await adrain(server.app, raise_on_failure=False)
        ways: list[tuple[str, dict[str, Any]]] = [
            ("get", {"ids": [first, second]}),
            ("list", {"criteria": {}}),
            ("attempts", {"task": second}),
            ("logs", {"task": first}),
            ("get_job", {"job": job_id}),
            ("list_jobs", {}),
            ("outline", {"job": job_id}),
            ("job_lines", {"job": job_id}),
            ("last_job_lines", {"job": job_id}),
        ]
        reader = server.client(await server.token("user", Scope.READ))
        watcher = server.client(await server.token("admin", Scope.READ))
        for verb, given in ways:
            for client in (server.viewer, reader, watcher):
                answer = await call(client, verb, **given)
                assert answer.status_code == 200, answer.text
                assert not [secret for secret in SECRETS if secret in answer.text], (verb, answer.text)
            for client in (server.user, server.operator):
                whole = (await call(client, verb, **given)).text
                if verb in _CLEAN:
                    continue
                assert [secret for secret in SECRETS if secret in whole], (verb, whole)
        await reader.aclose()
        await watcher.aclose()


async def test_what_was_written_with_its_secrets_is_shown_without_them(serve_sqlite: Serve):
    """Lines, steps and progress of whoever writes them by other means than a worker of today."""
    app = make_app(serve_sqlite.url)
    at = datetime.now(UTC)
    line = {"task": 1, "claim_no": 1, "seq": 0, "at": at, "stream": "info", "line": "password=hunter2"}
    text = '{"password":"hunter2"}'
    answers: list[tuple[str, Any]] = [
        ("logs", [LogLine(**line)]),
        ("job_lines", [JobLine(job=1, **line)]),
        ("checkpoints", {"step": text, "api_key": '"hunter2"'}),
        ("task_heads", {1: TaskHead(TaskState.RUNNING, 1, 0, text)}),
    ]
    for verb, answer in answers:
        assert "hunter2" in repr(answer)
        shown = Curtain(app).answer(verb, answer)
        assert "hunter2" not in repr(shown), verb
        assert "redacted" in repr(shown), verb
        form_of(verb).write_answer(shown)


async def test_bounds(serve: Serve):
    async with routed(serve) as server:
        ids = [(await call(server.user, "enqueue", tasks=[WIRED])).json()[0][0] for _ in range(3)]
        for limit, n in ((1, 1), (2, 2), (1000, 3)):
            assert len((await call(server.user, "list", criteria={"limit": limit})).json()) == n
        job = (await call(server.user, "create_job", job={"name": "j", "tasks": [WIRED]})).json()[0]
        assert len((await call(server.user, "outline", job=job, limit=10_000)).json()) == 1
        refused: list[tuple[str, dict[str, Any]]] = [
            *(("get", {"ids": [*ids, id]}) for id in (0, -1, 2**63)),
            *(("cancel", {"ids": [id]}) for id in (0, 2**63)),
            *(("attempts", {"task": id}) for id in (0, 2**63)),
            *(("get_job", {"job": id}) for id in (0, 2**63)),
            ("get", {"ids": [ids[0]] * 1001}),
            *(("list", {"criteria": {"limit": limit}}) for limit in (-5, 0, 1001, 10**30)),
            *(("list_jobs", {"limit": limit}) for limit in (0, 1001)),
            *(("logs", {"task": ids[0], "limit": limit}) for limit in (0, 1001)),
            *(("outline", {"job": job, "limit": limit}) for limit in (-1, 0, 10_001)),
            ("outline", {"job": job, "after": 2**63}),
            ("list", {"criteria": {"job": 2**63}}),
            ("enqueue", {"tasks": [{**WIRED, "delay": "nan"}]}),
            ("enqueue", {"tasks": [{**WIRED, "max_age": "inf"}]}),
            ("enqueue", {"tasks": [{**WIRED, "priority": 2**31}]}),
            ("enqueue", {"tasks": [{**WIRED, "job": 0}]}),
            ("enqueue", {"tasks": [{**WIRED, "after": [{"task": 0}]}]}),
            ("enqueue", {"tasks": [{**WIRED, "run_at": "9999-01-01T00:00:00Z"}]}),
            ("create_job", {"job": {"name": "j", "tasks": [WIRED], "timeout": "-inf"}}),
        ]
        for verb, given in refused:
            answer = await call(server.user, verb, **given)
            assert answer.status_code == 422, (verb, given, answer.text)
        assert (await call(server.operator, "open_breaker", service="s", by="x", timeout="inf")).status_code == 422


async def test_an_app_may_ask_for_more_than_one_call_answers(serve_sqlite: Serve):
    """More ids, or a longer list, become several calls."""
    async with serve_sqlite() as server, remote(server, "operator") as [app]:
        many = await app.get_task("add").aenqueue_many([{"a": n, "b": n} for n in range(1002)])
        ids = [each.id for each in many]
        assert set(await app.engine.run(lambda store: store.get(ids))) == set(ids)
        listed = await app.engine.run(lambda store: store.list(TaskFilter(limit=5000)))
        assert sorted(record.id for record in listed) == sorted(ids)
        assert len(await app.engine.run(lambda store: store.list(TaskFilter(limit=1001)))) == 1001


async def test_jobs_and_lines_come_in_as_many_pages_as_are_asked_for(
    serve_sqlite: Serve, monkeypatch: pytest.MonkeyPatch
):
    """With pages of three, so that few rows are many pages; the server refuses what is larger than its own."""
    monkeypatch.setattr("headrace.store.http.store.MOST_AT_ONCE", 3)
    monkeypatch.setattr("headrace.server.ledger.bounds.MOST_AT_ONCE", 3)
    app = make_app(serve_sqlite.url)

    @app.task(name="talk")
    async def talk() -> None:
        for n in range(8):
            current.log(f"line {n}")

    async with routed(serve_sqlite, app) as server, remote(server, "operator") as [far]:
        jobs = [(await app.jobs.acreate(f"job {n}", [talk.prepare()])).id for n in range(7)]
        await adrain(app)
        found = await far.jobs.alist(limit=5)
        assert [job.id for job in found] == jobs[:1:-1]
        assert [job.id for job in await far.jobs.alist(limit=5000)] == jobs[::-1]
        (task,) = [row.id for row in await far.engine.run(lambda store: store.outline(jobs[0], limit=50_000))]
        assert [line.line for line in await far.tasks.alogs(task, limit=5000)] == [f"line {n}" for n in range(8)]
        assert len(await far.tasks.alogs(task, limit=4)) == 4
        assert [line.line for line in await far.tasks.alogs(task, after=5, limit=100)] == ["line 6", "line 7"]
        lines = await far.engine.run(lambda store: store.job_lines(jobs[0], limit=5000))
        assert [line.seq for line in lines] == list(range(8))
        assert await far.jobs.alist(limit=0) == []


async def test_a_schedule_over_the_ledger_runs_what_its_maker_may_run(serve_sqlite: Serve):
    app = make_app(serve_sqlite.url)

    @app.task(name="wipe", approval="admin")
    async def wipe() -> None: ...

    async with routed(serve_sqlite, app) as server:
        cadence = '{"every":3600}'

        def put(person: Any, task: dict[str, Any]) -> Any:
            return call(person, "put_schedules", schedules=[{"name": "s", "cadence": cadence, "task": task}])

        assert (await put(server.user, WIRED)).status_code == 403
        assert (await put(server.operator, {"name": "wipe"})).status_code == 403
        secret = {"name": "greet", "arguments": '{"name":"ada","password":"hunter2"}', "owner": "other"}
        answer = await put(server.operator, secret)
        assert answer.status_code == 200, answer.text
        assert answer.json()[0]["task"]["owner"] is None
        assert "hunter2" not in (await call(server.viewer, "schedules")).text
        assert "hunter2" not in (await server.admin.get("/api/v1/audit", params={"act": "ledger.put_schedules"})).text
