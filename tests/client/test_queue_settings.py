"""`app.queues`: limits and rates that are set while it runs, and the share of retries."""

from datetime import timedelta

import pytest

from headrace import App, Limit, Queue, Rate
from headrace.core.errors import OptionError
from headrace.core.lanes import Lane
from headrace.core.task import Ref, Want
from headrace.testing.store_conformance.ledger import completed, failed
from tests.client.test_inspection import registered


def _queue(app: App, name: str = "mail"):
    return next(queue for queue in app.queues.list() if queue.name == name)


async def _started(store, worker: str) -> list:
    claims = await store.claim(worker, [Want(queue="mail", pool="coroutine", lane=lane, n=100) for lane in Lane])
    admission = await store.admit(worker, [claim for claim in claims if claim.gated])
    return [claim for claim in claims if not claim.gated or Ref(claim.id, claim.claim_no) in admission.admitted]


async def test_a_limit_and_a_rate_are_set_shown_and_lifted(app: App) -> None:
    await app.queues.alimit("mail", 3)
    await app.queues.arate("mail", 10, timedelta(minutes=1), burst=20)
    [queue] = await app.queues.alist()
    assert (queue.name, queue.limit, queue.rate) == ("mail", 3, Rate(10, per=60.0, burst=20))
    await app.queues.alimit("mail", None)
    await app.queues.arate("mail", None)
    [queue] = await app.queues.alist()
    assert (queue.limit, queue.rate) == (None, None)


def test_the_blocking_forms(app: App) -> None:
    app.queues.limit("mail", 3)
    app.queues.rate("mail", 10, 60)
    assert (_queue(app).limit, _queue(app).rate) == (3, Rate(10, per=60.0))
    assert app.queues.ratio("mail") == 0.3


@pytest.mark.parametrize("n", [0, -1, 2**31, True, 1.5])
def test_what_is_no_limit_is_refused(app: App, n: int) -> None:
    with pytest.raises(OptionError):
        app.queues.limit("mail", n)
    with pytest.raises(OptionError):
        app.queues.rate("mail", n, 1)
    with pytest.raises(OptionError):
        app.queues.limit("no\0queue", 1)
    with pytest.raises(OptionError):
        app.queues.rate("mail", 1, 0)
    assert app.queues.list() == []


async def test_the_smaller_of_code_and_setting_holds(store_url: str) -> None:
    app = App(store_url, queues={"mail": Queue(limit=Limit(2))})
    store = app.new_store()
    await store.open()
    try:

        @app.task(queue="mail", name="send")
        async def send() -> None: ...

        await send.aenqueue_many({} for _ in range(10))
        await app.queues.alimit("mail", 5)
        worker = await registered(store)
        first = await _started(store, worker)
        assert len(first) == 2
        await app.queues.alimit("mail", 1)
        await store.finish(worker, [completed(claim) for claim in first])
        assert len(await _started(store, worker)) == 1
    finally:
        await store.close()
        await app.aclose()


def test_keys_of_settings_are_not_for_code(sqlite_app: App) -> None:
    @sqlite_app.task(limit=Limit(1, key="{key}"), name="send")
    async def send(key: str) -> None: ...

    with pytest.raises(OptionError, match="run time"):
        send.enqueue("@queue:mail")
    with pytest.raises(OptionError, match="run time"):
        Limit(1, key="@queue:mail")


@pytest.mark.requirement("F16")
async def test_the_ratio_follows_the_depth_and_the_setting(store_url: str) -> None:
    """F16: the configured ratio is what is read; with as many retries ready as `retry_queue_warning` says it falls."""
    app = App(store_url, retry_ratio=0.4, retry_queue_warning=3, retry_queue_critical=5)
    store = app.new_store()
    await store.open()
    try:

        @app.task(queue="mail", name="send")
        async def send() -> None: ...

        assert await app.queues.aratio("mail") == 0.4
        worker = await registered(store)
        ratios: list[float] = []
        for _ in range(7):
            await send.aenqueue()
            wants = [Want(queue="mail", pool="coroutine", lane=Lane.PRIMARY, n=1)]
            [claim] = await store.claim(worker, wants)
            await store.finish(worker, [failed(claim)])
            await store.promote()
            ratios.append(await app.queues.aratio("mail"))
        assert ratios == [0.4, 0.4, 0.2, 0.2, 0.2, 0.1, 0.1]
    finally:
        await store.close()
        await app.aclose()
