"""What is read of one task has an end, and what is said of it names nobody else's."""

import dataclasses

import pytest

from headrace import App, Limit
from headrace.core.lanes import Lane
from headrace.core.task import Want
from headrace.store.base import Store
from headrace.testing import adrain
from tests.server.routed import routed
from tests.server.serving import Serve

TASKS = "/api/v1/tasks"


async def test_the_last_attempts_and_the_way_to_the_others(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("lives", "seeing"):
        monkeypatch.setattr(f"headrace.server.{module}.ATTEMPTS", 3)
    async with routed(serve) as server:
        handle = await server.app.get_task("fail").aenqueue()

        async def shown(runs: int) -> tuple[list[int], bool]:
            for _ in range(runs):
                await adrain(server.app, raise_on_failure=False)
                await server.app.tasks.aretry(handle.id)
            detail = (await server.viewer.get(f"{TASKS}/{handle.id}")).json()
            return [each["claim_no"] for each in detail["attempts"]], detail["more_attempts"]

        assert await shown(runs=3) == ([1, 2, 3], False)
        assert await shown(runs=1) == ([2, 3, 4], True)
        whole = await server.viewer.get(f"{TASKS}/{handle.id}/attempts")
        assert [each["claim_no"] for each in whole.json()] == [1, 2, 3, 4]
        assert "Link" not in whole.headers
        last = await server.viewer.get(f"{TASKS}/{handle.id}/attempts?limit=3")
        assert last.json() == whole.json()[1:]
        path = last.headers["Link"].partition(">")[0].removeprefix("<")
        before = await server.viewer.get(path)
        assert (before.json(), "Link" in before.headers) == (whole.json()[:1], False)
        assert (await server.viewer.get(f"{TASKS}/{handle.id}/attempts?cursor=x")).status_code == 422


async def test_others_who_hold_a_limit_are_not_named(serve: Serve) -> None:
    app = App(serve.url)

    @app.task(name="print", limit=Limit(1, key="printer"))
    async def print_() -> None: ...

    async with routed(serve, app) as server:
        new = print_.prepare()
        answers = await app.engine.enqueue([dataclasses.replace(new, owner=owner) for owner in ("other", "user")])
        theirs, mine = (answer.id for answer in answers)

        async def park(store: Store) -> None:
            claims = await store.claim("w", [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=10)])
            admission = await store.admit("w", claims)
            assert [ref.id for ref in admission.admitted] == [theirs]

        await app.engine.run(park)

        async def why(who: str) -> dict[str, object]:
            answer = await server.of(who).get(f"{TASKS}/{mine}/explain")
            return answer.json()["reasons"][0]

        hidden = await why("user")
        assert hidden["what"] == "it waits for room at the limit 'printer', held by another's task"
        assert hidden["act"] is None
        for who in ("viewer", "operator"):
            told = await why(who)
            assert str(told["what"]).endswith(f"held by task {theirs}")
            assert told["act"] == {"kind": "look_at_task", "subject": str(theirs)}
