"""Breakers: what counts, how they guard sync and async code, and how the processes of an app share them."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace import App
from headrace.client.breakers import Breaker
from headrace.core.breaker import BreakerPolicy, BreakerStatus
from headrace.core.errors import BreakerOpen, DefinitionError, OptionError

CLOSED, OPEN, HALF_OPEN = BreakerStatus.CLOSED, BreakerStatus.OPEN, BreakerStatus.HALF_OPEN
QUICK = BreakerPolicy(volume_threshold=2, timeout=0.3)
# A probe that takes longer than the timeout counts as dead: where one is under way, a slow machine needs room.
ROOMY = BreakerPolicy(volume_threshold=2, timeout=2)
SLOW = BreakerPolicy(volume_threshold=2, timeout=600)


@pytest.fixture
def other(store_url: str) -> Iterator[App]:
    """Another process, as far as breakers are concerned: its own app, connections and counts."""
    made = App(store_url)
    yield made
    made.close()


def fail(breaker: Breaker, error: Exception | None = None) -> None:
    with contextlib.suppress(type(error or ConnectionError()), BreakerOpen), breaker.call():
        raise error or ConnectionError("the service is down")


def until(met: Callable[[], Any], what: str, ceiling: float = 30.0) -> float:
    """Wait for it; the seconds that it took."""
    began = time.monotonic()
    while not met():
        assert time.monotonic() - began < ceiling, what
        time.sleep(0.01)
    return time.monotonic() - began


def refuses(breaker: Breaker) -> bool:
    """Asks as a caller does."""
    try:
        with breaker.call():
            return False
    except BreakerOpen:
        return True


def hear(app: App, breaker: Breaker) -> None:
    """What others said of it, without a call."""
    app.sharing.news()
    app.sharing.look().result(30)
    assert breaker.status is not CLOSED


def opened(app: App, service: str = "mail", policy: BreakerPolicy = SLOW) -> Breaker:
    """Two calls that failed, and everybody was told."""
    breaker = app.breaker(service, policy)
    fail(breaker)
    fail(breaker)
    until(lambda: any(r.service == service and r.status is not CLOSED for r in app.breakers.list()), "it was not told")
    return breaker


# In one process.


@pytest.mark.requirement("F41")
def test_of_an_async_function_what_it_comes_to_is_counted() -> None:
    """F41: ten coroutines are made and none awaited: nothing is counted. Ten that fail when awaited open the breaker,
    and the eleventh is not entered."""
    breaker = Breaker("mail")
    entered = 0

    @breaker
    async def send() -> None:
        nonlocal entered
        entered += 1
        await asyncio.sleep(0)
        raise TimeoutError

    async def main() -> None:
        for coroutine in [send() for _ in range(10)]:
            coroutine.close()
        assert breaker.state.calls == 0
        for _ in range(10):
            with pytest.raises(TimeoutError):
                await send()
        assert (entered, breaker.status) == (10, OPEN)
        with pytest.raises(BreakerOpen):
            await send()
        assert entered == 10

    asyncio.run(main())


@pytest.mark.requirement("F34", "F36")
def test_above_a_function_it_guards_each_call() -> None:
    """F34: another service is not touched. F36: open, the function is not entered."""
    breaker, calls = Breaker("mail", BreakerPolicy(volume_threshold=3, timeout=600)), []

    @breaker
    def send(number: int, *, works: bool = False) -> int:
        """Sends."""
        calls.append(number)
        if not works:
            raise ConnectionError
        return number

    assert (send.__name__, send.__doc__, send(1, works=True)) == ("send", "Sends.", 1)
    for number in (2, 3):
        with pytest.raises(ConnectionError):
            send(number)
    with pytest.raises(BreakerOpen) as refused:
        send(4, works=True)
    assert calls == [1, 2, 3]
    assert refused.value.delay is not None
    assert 0 < refused.value.delay <= 600
    assert Breaker("sms").status is CLOSED


def test_a_generator_is_refused() -> None:
    async def pages() -> Any:
        yield 1

    with pytest.raises(DefinitionError, match="generator"):
        Breaker("mail")(pages)


def test_only_what_the_service_did_wrong_counts() -> None:
    """5xx, 429, timeouts and lost connections; not the caller's 404, nor a bug, nor a cancelled call."""

    class Answered(Exception):
        def __init__(self, status: int) -> None:
            self.status_code = status

    breaker = Breaker("mail", BreakerPolicy(volume_threshold=1000))
    for error in (Answered(400), Answered(401), Answered(404), ValueError("a bug")):
        fail(breaker, error)
    assert (breaker.state.calls, breaker.state.failures) == (4, 0)
    for error in (Answered(500), Answered(503), Answered(429), TimeoutError(), ConnectionResetError()):
        fail(breaker, error)
    assert breaker.state.failures == 5
    with pytest.raises(asyncio.CancelledError), breaker.call():
        raise asyncio.CancelledError
    assert breaker.state.calls == 9


async def test_whoever_meets_a_probe_under_way_comes_back_soon() -> None:
    breaker = Breaker("mail", BreakerPolicy(volume_threshold=1, timeout=600), clock=(clock := _Clock()))
    fail(breaker)
    clock.now += 601
    async with breaker.call():
        with pytest.raises(BreakerOpen) as refused:
            await breaker.aenter()
    assert refused.value.delay is not None
    assert refused.value.delay <= 5
    assert breaker.status is CLOSED


class _Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.requirement("F69")
def test_the_policy_comes_from_the_settings(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """F69: 0.5, 10 and 60 by default; from the environment otherwise."""
    policy = App(sqlite_url).breaker("mail").state.policy
    assert (policy.failure_threshold, policy.volume_threshold, policy.timeout_seconds) == (0.5, 10, 60.0)
    monkeypatch.setenv("HEADRACE_CIRCUIT_FAILURE_THRESHOLD", "0.9")
    monkeypatch.setenv("HEADRACE_CIRCUIT_VOLUME_THRESHOLD", "3")
    monkeypatch.setenv("HEADRACE_CIRCUIT_TIMEOUT_SECONDS", "7")
    policy = App(sqlite_url).breaker("mail").state.policy
    assert (policy.failure_threshold, policy.volume_threshold, policy.timeout_seconds) == (0.9, 3, 7.0)


# Over processes.


@pytest.mark.requirement("F40", "F73")
def test_one_that_opens_is_seen_by_the_others_and_by_health(app: App, other: App) -> None:
    """F73: the other app refuses without having made a call, within seconds (the ceiling is generous, the figure is
    about one), and so does health. F40: the counts stay in their process; what is shared is a row with the state."""
    there = other.breaker("mail", SLOW)
    assert not refuses(there)
    breaker = opened(app)
    assert breaker.status is OPEN
    until(lambda: refuses(there), "the other process goes on calling")
    assert (there.status, there.state.failures) == (OPEN, 0)
    assert other.health_check().checks["breakers"].detail == "mail open"
    assert other.health_check().checks["breakers"].healthy
    [record] = other.breakers.list()
    assert (record.service, record.status, record.calls, record.failures) == ("mail", OPEN, 2, 2)


def test_a_process_that_comes_later_makes_no_call_at_all(app: App, other: App) -> None:
    """The first use waits for what others say, in sync code and in async code."""
    opened(app)
    assert refuses(other.breaker("mail", SLOW))

    async def first() -> None:
        third = App(app.url)
        try:
            with pytest.raises(BreakerOpen) as refused:
                async with third.breaker("mail", SLOW).call():
                    raise AssertionError("a call was made")
            assert refused.value.delay is not None
            assert refused.value.delay > 300, "until the breaker may be probed"
        finally:
            await third.aclose()

    asyncio.run(first())


def test_a_breaker_that_is_made_between_two_looks_knows_what_others_said(app: App, other: App) -> None:
    opened(app)
    other.breaker("sms", SLOW)
    other.sharing.look().result(30)
    other.sharing.news()
    assert other.breaker("mail", SLOW).status is OPEN


@pytest.mark.requirement("F37", "F38")
def test_one_probe_over_all_processes_closes_for_all(app: App, other: App) -> None:
    """F37: past its timeout one call is let through. F38: it goes well, and both are closed with fresh counts."""
    here = opened(app, policy=QUICK)
    there = other.breaker("mail", QUICK)
    until(lambda: not refuses(there), "nobody may probe")
    until(lambda: [r.status for r in app.breakers.list()] == [CLOSED], "the probe went well, and nobody was told")
    until(lambda: not refuses(here), "it stays open where it opened")
    assert (here.status, here.state.failures, there.status) == (CLOSED, 0, CLOSED)


def test_while_one_probes_the_other_is_refused_and_a_failure_opens_anew(app: App, other: App) -> None:
    here = opened(app, policy=ROOMY)
    there = other.breaker("mail", SLOW)
    hear(other, there)
    until(lambda: here.status is HALF_OPEN, "its time is never over")
    [before] = app.breakers.list()
    with contextlib.suppress(ConnectionError), here.call():
        [probing] = app.breakers.list()
        assert (probing.probe_by, probing.revision) == (app.sharing.by, before.revision)
        assert refuses(there)
        raise ConnectionError
    until(lambda: app.breakers.list()[0].revision == before.revision + 1, "the failed probe changed nothing")
    assert here.status is not CLOSED


def test_the_probe_of_many_threads_and_processes_is_one(app: App, other: App) -> None:
    """Both apps ask at once, from four threads each, in rounds: never two calls at a time while half open."""
    from concurrent.futures import ThreadPoolExecutor
    from threading import Lock

    here = opened(app, policy=ROOMY)
    there = other.breaker("mail", ROOMY)
    hear(other, there)
    lock, inside, most, calls = Lock(), 0, 0, 0

    def call(breaker: Breaker) -> None:
        nonlocal inside, most, calls
        with contextlib.suppress(BreakerOpen, ConnectionError), breaker.call():
            with lock:
                inside += 1
                calls += 1
                most = max(most, inside)
            time.sleep(0.02)
            with lock:
                inside -= 1
            raise ConnectionError

    began = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        while calls < 2 and time.monotonic() - began < 60:
            list(pool.map(call, [here, there] * 8))
            time.sleep(0.05)
    assert calls >= 2
    assert most == 1


@pytest.mark.requirement("F74")
def test_by_hand_it_is_opened_until_it_is_reset(app: App, other: App) -> None:
    """F74: opened by hand no process calls, however long; reset, both call again."""
    here, there = app.breaker("mail", QUICK), other.breaker("mail", QUICK)
    assert not refuses(there)
    record = app.breakers.open("mail", by="ada")
    assert (record.status, record.forced, record.changed_by) == (OPEN, True, "ada")
    assert refuses(here), "at once in the process where it was done"
    until(lambda: refuses(there), "the other one goes on calling")
    time.sleep(0.4)  # longer than the timeout of its policy, after which another would be probed
    assert (refuses(here), refuses(there), there.status) == (True, True, OPEN)
    assert app.health_check().checks["breakers"].detail == "mail open by hand"
    assert other.breakers.reset("mail").status is CLOSED
    assert not refuses(there)
    until(lambda: not refuses(here), "it was reset, and is not called")


def test_by_hand_for_a_while(app: App) -> None:
    app.breakers.open("mail", timeout=0.2)
    breaker = app.breaker("mail", QUICK)
    assert refuses(breaker) or breaker.status is CLOSED
    until(lambda: not refuses(breaker), "it is never probed")
    with pytest.raises(OptionError):
        app.breakers.open("mail", timeout=-1)


async def test_the_facade_has_async_forms(app: App) -> None:
    assert await app.breakers.alist() == []
    assert (await app.breakers.aopen("mail")).forced
    assert (await app.breakers.areset("mail")).status is CLOSED
    assert [record.service for record in await app.breakers.alist()] == ["mail"]


async def test_a_plain_with_inside_a_coroutine_does_not_stop_the_loop(app: App) -> None:
    """It cannot wait: it goes by what is known, asks in the background, and takes the probe when it was granted."""
    breaker = app.breaker("mail", QUICK)
    app_there = App(app.url)
    try:
        await app_there.breakers.aopen("mail", timeout=0.2)
        calls, refusals = 0, 0
        ceiling = time.monotonic() + 30
        while breaker.status is CLOSED and time.monotonic() < ceiling:
            refusals += refuses(breaker)
            await asyncio.sleep(0.01)
        while not calls and time.monotonic() < ceiling:
            try:
                with breaker.call():
                    calls += 1
            except BreakerOpen:
                refusals += 1
            await asyncio.sleep(0.01)
        assert (calls, breaker.status) == (1, CLOSED)
        assert refusals
    finally:
        await app_there.aclose()


def test_without_the_ledger_it_goes_by_its_own(caplog: pytest.LogCaptureFixture) -> None:
    """Calls are made, counted and refused as if there were no others; the log says so once."""
    app = App("postgresql://nobody@127.0.0.1:1/none")
    breaker = app.breaker("mail", QUICK)
    with caplog.at_level(logging.WARNING, "headrace.client"):
        assert not refuses(breaker)
        while breaker.status is CLOSED:
            fail(breaker)
        until(lambda: not refuses(breaker), "it is never probed")
        assert breaker.status is CLOSED
        until(lambda: caplog.messages, "nothing was logged")
    assert len([line for line in caplog.messages if "go by their own process" in line]) == 1


def test_a_ledger_that_hangs_keeps_one_call_waiting_not_all(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = App(sqlite_url)
    asked = 0

    async def hangs(act: Any) -> Any:
        nonlocal asked
        asked += 1
        await asyncio.sleep(600)

    monkeypatch.setattr(app.engine, "use_here", hangs)
    breaker = app.breaker("mail", SLOW)
    assert not refuses(breaker)
    began = time.monotonic()
    for _ in range(50):
        assert not refuses(breaker)
    assert time.monotonic() - began < 25, "each of them waited"
    assert asked == 1
    app.sharing.look().cancel()
    app.close()


def test_what_opened_without_the_ledger_is_told_later(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = App(sqlite_url)
    try:
        breaker = app.breaker("mail", SLOW)
        reached = False
        real = app.engine.use_here

        async def unreachable(act: Any) -> Any:
            if not reached:
                raise OSError("no way there")
            return await real(act)

        monkeypatch.setattr(app.engine, "use_here", unreachable)
        for _ in range(3):
            fail(breaker)
        assert (breaker.status, breaker.unwritten) == (OPEN, True)
        reached = True
        assert app.sharing.in_use
        app.sharing.look().result(30)
        assert [record.status for record in app.breakers.list()] == [OPEN]
        assert (breaker.status, breaker.unwritten) == (OPEN, False)
    finally:
        app.close()


def test_another_ledger_is_another_matter(app: App, tmp_path: Path) -> None:
    """Revisions are those of one ledger: what was heard from another says nothing."""
    for _ in range(3):
        app.breakers.open("mail")
        app.breakers.reset("mail")
    breaker = app.breaker("mail", SLOW)
    assert not refuses(breaker)
    elsewhere = App(f"sqlite:///{tmp_path}/elsewhere.db")
    elsewhere.upgrade()
    elsewhere.breakers.open("mail")
    elsewhere.close()
    back = app.engine.put_aside(elsewhere.url, app.settings, None)
    try:
        assert refuses(breaker)
    finally:
        app.close()
        back()
