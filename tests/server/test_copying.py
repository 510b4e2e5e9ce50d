"""A copy of a task: once for each idempotency key, and with all that the call had which is copied."""

import dataclasses
from typing import Any

from headrace import App, Limit, Queue, Rate, Retry
from headrace.core.limits import Gate
from headrace.core.task import NewTask
from tests.server.routed import routed
from tests.server.serving import Serve, Serving

TASKS = "/api/v1/tasks"


async def enqueued(server: Serving, new: NewTask) -> int:
    (answer,) = await server.app.engine.enqueue([dataclasses.replace(new, owner="user")])
    return answer.id


async def test_a_copy_is_made_once_for_each_key(serve: Serve) -> None:
    async with routed(serve) as server:
        id = await enqueued(server, server.app.get_task("add").prepare(1, 2))

        async def copy(key: str, who: str = "user", **body: Any) -> tuple[int, Any]:
            answer = await server.of(who).post(f"{TASKS}/{id}/reenqueue", json=body, headers={"Idempotency-Key": key})
            return answer.status_code, answer.json()

        status, made = await copy("order-{a}")
        assert (status, made["created"]) == (201, True)
        status, again = await copy("order-{a}")
        assert (status, again["created"], again["id"]) == (200, False, made["id"])
        status, other = await copy("another")
        assert (status, other["id"] != made["id"]) == (201, True)
        status, theirs = await copy("order-{a}", "operator")
        assert (status, theirs["id"] != made["id"]) == (201, True)
        status, problem = await copy("order-{a}", args=[3, 4])
        assert (status, problem["title"]) == (422, "Idempotency key was used")
        assert len(await server.app.tasks.alist()) == 4
        assert (await copy(""))[0] == 422


def make_app(url: str) -> App:
    app = App(url, queues={"mail": Queue(limit=Limit(9))})

    @app.task(name="charge", limit=Limit(3, key="bank-{bank}"), retry=Retry(max_attempts=1))
    def charge(bank: str, amount: int) -> None: ...

    return app


async def test_a_copy_has_what_its_call_had(serve: Serve) -> None:
    """The order that a call asked for, its limits, rates and executor, also when other arguments are given; what the
    declaration makes of the arguments is made of the new ones."""
    app = make_app(serve.url)
    async with routed(serve, app) as server:
        charge = app.get_task("charge").using(
            order_key="acct-7", rate=Rate(5, 60, key="slowly"), executor="thread", queue="mail", cpus=2
        )
        new = charge.prepare("a", 5)
        new = dataclasses.replace(new, options=new.options.replace("{", '{"label":"the second",', 1))
        id = await enqueued(server, new)

        async def copied(**body: Any) -> tuple[int, set[Gate]]:
            answer = await server.user.post(f"{TASKS}/{id}/reenqueue", json=body)
            assert answer.status_code == 201, answer.text
            copy = answer.json()["id"]
            gates = await app.engine.run(lambda store: store.gates(copy))
            assert gates is not None
            assert list(gates) == sorted(gates, key=lambda gate: (gate.kind, gate.key))
            return copy, set(gates)

        copy, gates = await copied()
        assert gates == set(new.gates) == set(await app.engine.run(lambda store: store.gates(id)) or ())
        assert {gate.key for gate in gates} == {"acct-7", "slowly", "bank-a", "queue:mail"}
        record = await app.tasks.aget(copy)
        assert record.pool == "thread"
        shown = (await server.user.get(f"{TASKS}/{copy}")).json()
        assert shown["label"] == "the second"
        assert '"cpus"' in record.options

        _, gates = await copied(kwargs={"bank": "b", "amount": 5})
        assert {gate.key for gate in gates} == {"acct-7", "slowly", "bank-b", "queue:mail"}
        _, gates = await copied(queue="default")
        assert {gate.key for gate in gates} == {"acct-7", "slowly", "bank-a"}

        id = await enqueued(server, app.get_task("charge").using(limit=None).prepare("a", 5))
        assert (await copied())[1] == set()
        id = await enqueued(server, app.get_task("charge").using(limit=Limit(1, key="bank-{bank}")).prepare("a", 5))
        assert (await copied())[1] == {Gate(kind="limit", key="bank-a", n=1)}
        id = await enqueued(server, app.commands.prepare(["true"], order_key="files"))
        assert (await copied())[1] == {Gate(kind="order", key="files")}
