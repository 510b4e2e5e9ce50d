"""Every verb that an app over HTTP may call, as every role, about things of `user`'s: a table without gaps.

Whoever is not let in, and whoever is, but not to another's things, never sees the word that is in all of them.
"""

import dataclasses
from typing import Any

import pytest

from headrace.core.accounts import Scope
from headrace.core.task import NewJob
from headrace.scheduling.declaration import Schedule
from headrace.store.http.verbs import VERBS, form_of
from headrace.testing import adrain
from tests.server.routed import routed
from tests.server.serving import Serve, Serving

MARK = "zebra-crossing"  # in whatever `user` has, and in what belongs to nobody
ADD = {"name": "add", "arguments": '{"a":1,"b":2}'}
PEOPLE = ("viewer", "user", "other", "operator", "admin")  # `user` owns, `other` is of the same role

# Who is answered 200; everybody else gets 403.
EVERYBODY = PEOPLE
SUBMITS = ("user", "other", "operator", "admin")
SEES = ("viewer", "user", "operator", "admin")
OVERSEES = ("viewer", "operator", "admin")
CONTROLS = ("user", "operator", "admin")
OPERATES = ("operator", "admin")


@dataclasses.dataclass(slots=True)
class Things:
    """Of `user`'s."""

    done: int
    failed: int
    waiting: int
    unapproved: int
    job: int
    failed_job: int
    live_job: int


def rows(things: Things) -> dict[str, tuple[tuple[str, ...], dict[str, Any]]]:
    done, job = {"task": things.done}, {"job": things.job}
    schedule = {"name": "new", "cadence": '{"every":3600}', "task": ADD}
    breaker = {"service": "chat", "by": "me"}
    return {
        "enqueue": (SUBMITS, {"tasks": [ADD]}),
        "create_job": (SUBMITS, {"job": {"name": "j", "tasks": [ADD]}}),
        "send": (OPERATES, {"event": "e", "key": "k", "payload": "{}"}),
        "get": (SEES, {"ids": [things.done]}),
        "list": (EVERYBODY, {"criteria": {"owner": "user"}}),
        "attempts": (SEES, done),
        "logs": (SEES, done),
        "checkpoints": (SEES, done),
        "edges": (SEES, {"tasks": [things.done]}),
        "parents": (SEES, {**done, "limit": 10}),
        "children": (SEES, {**done, "limit": 10}),
        "task_heads": (SEES, {"tasks": [things.done]}),
        "get_job": (SEES, job),
        "list_jobs": (EVERYBODY, {"owner": "user"}),
        "outline": (SEES, job),
        "tally": (SEES, job),
        "hooks_of_job": (SEES, job),
        "job_events": (SEES, job),
        "last_job_events": (SEES, job),
        "job_lines": (SEES, job),
        "last_job_lines": (SEES, job),
        "now": (EVERYBODY, {}),
        "counts": (OVERSEES, {}),
        "queues": (EVERYBODY, {}),
        "queue_names": (EVERYBODY, {}),
        "workers": (EVERYBODY, {}),
        "stopped_holders": (OVERSEES, {}),
        "breakers": (EVERYBODY, {}),
        "cancel": (CONTROLS, {"ids": [things.waiting]}),
        "retry": (CONTROLS, {"ids": [things.failed]}),
        "clear": (CONTROLS, done),
        "decide": (OPERATES, {"task": things.unapproved, "approved": True, "by": "me"}),
        "cancel_job": (CONTROLS, {"job": things.live_job}),
        "retry_failed": (CONTROLS, {"job": things.failed_job}),
        "pause": (OPERATES, {"queue": "mail"}),
        "resume": (OPERATES, {"queue": "mail"}),
        "schedules": (OVERSEES, {}),
        "get_schedule": (OVERSEES, {"name": "hourly"}),
        "schedule_runs": (OVERSEES, {"name": "hourly"}),
        "put_schedules": (OPERATES, {"schedules": [schedule]}),
        "pause_schedule": (OPERATES, {"name": "hourly"}),
        "resume_schedule": (OPERATES, {"name": "hourly"}),
        "remove_schedule": (OPERATES, {"name": "gone"}),
        "run_schedule": (OPERATES, {"name": "hourly"}),
        "open_breaker": (OPERATES, {**breaker, "timeout": 60}),
        "reset_breaker": (OPERATES, breaker),
    }


async def made(server: Serving) -> Things:
    app = server.app
    greet = dataclasses.replace(
        app.get_task("greet").using(metadata={"note": MARK}, tags=[MARK]).prepare(name=MARK), owner="user"
    )
    fail = dataclasses.replace(app.get_task("fail").prepare(why=MARK), owner="user")
    done, failed = [answer.id for answer in await app.engine.enqueue([greet, fail])]

    async def job(*tasks: Any) -> int:
        new = NewJob(name=MARK, description=MARK, tasks=tasks, owner="user", metadata=f'{{"w":"{MARK}"}}')
        return (await app.engine.run(lambda store: store.create_job(new)))[0]

    jobs = [await job(greet, fail), await job(fail)]
    await adrain(app, raise_on_failure=False)
    live = await app.engine.enqueue([greet, dataclasses.replace(greet, approval=True)])
    await app.schedules.aadd(app.get_task("greet"), Schedule(3600, name="hourly"), MARK)
    waiting, unapproved = [answer.id for answer in live]
    return Things(
        done=done,
        failed=failed,
        waiting=waiting,
        unapproved=unapproved,
        job=jobs[0],
        failed_job=jobs[1],
        live_job=await job(greet),
    )


# What a second act on the same thing may be told by then: it is no longer in the state for it.
_LATER = ("cancel_job", "retry_failed", "decide", "clear")


@pytest.mark.requirement("K106")
@pytest.mark.timeout(300)
async def test_every_verb_and_every_caller(serve_sqlite: Serve):
    """K106: `other`, of the same role as the owner, gets 403 or nothing of the owner's; the operator and the admin are
    let in wherever the owner is."""
    async with routed(serve_sqlite) as server:
        things = await made(server)
        table = rows(things)
        assert set(table) == set(VERBS), "each verb has a row here, and each row is a verb"
        wrong: list[str] = []
        for verb, (allowed, given) in table.items():
            form_of(verb).read_arguments(given)  # the row is about the verb, not about a mistake in the row
            served = 0
            for person in PEOPLE:
                answer = await server.of(person).post(f"/api/v1/ledger/{verb}", json=given)
                expected = {200} if person in allowed else {403}
                if verb in _LATER and served:
                    expected |= {409} if person in allowed else set()
                if answer.status_code not in expected:
                    wrong.append(f"{verb} as {person}: {answer.status_code}, not {expected}: {answer.text[:200]}")
                if (person == "other" or answer.status_code == 403) and MARK in answer.text:
                    wrong.append(f"{verb} as {person} shows what is another's: {answer.text[:300]}")
                served += answer.status_code == 200
            nobody = await server.nobody.post(f"/api/v1/ledger/{verb}", json=given)
            if nobody.status_code != 401 or MARK in nobody.text:
                wrong.append(f"{verb} as nobody: {nobody.status_code}: {nobody.text[:200]}")
        assert not wrong, "\n".join(wrong)
        # The word is there to be seen, for who may.
        assert MARK in (await server.operator.post("/api/v1/ledger/get", json=table["get"][1])).text


async def test_no_verb_without_its_scope_and_no_act_without_an_entry(serve_sqlite: Serve):
    async with routed(serve_sqlite) as server:
        table = rows(await made(server))
        narrow = {
            scope: server.client(await server.token("admin", *(set(Scope) - {scope})))
            for scope in (Scope.READ, Scope.SUBMIT, Scope.CONTROL)
        }
        for verb, (_, given) in table.items():
            refused = await narrow[VERBS[verb].scope].post(f"/api/v1/ledger/{verb}", json=given)
            assert refused.status_code == 403, (verb, refused.text)
            if VERBS[verb].scope is Scope.CONTROL:
                assert (await server.admin.post(f"/api/v1/ledger/{verb}", json=given)).status_code in (200, 409)
                entries = (await server.admin.get("/api/v1/audit", params={"act": f"ledger.{verb}"})).json()["items"]
                assert [entry["actor"] for entry in entries] == ["admin"], verb
                if verb == "send":  # as over REST: the key says which of many it was, the payload is nobody's business
                    assert [(entry["subject"], entry["detail"]) for entry in entries] == [("event/e/k", {})]
        for client in narrow.values():
            await client.aclose()
