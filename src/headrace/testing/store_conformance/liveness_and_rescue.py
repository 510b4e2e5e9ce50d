"""Workers, leases, and what the dead leave behind."""

from headrace.core.outcome import Released
from headrace.core.settlement import Execution
from headrace.core.states import TaskState
from headrace.core.task import WorkerRecord
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import Ledger, completed, lost, ref, settled, task

cases = Cases("liveness_and_rescue")


async def worker(ledger: Ledger, worker_id: str) -> WorkerRecord:
    (found,) = [record for record in await ledger.store.workers() if record.id == worker_id]
    return found


@cases.add("A23")
async def a_registered_worker_is_listed(ledger: Ledger) -> None:
    """A23: with its fields and zero counts, under the id it gave."""
    record = await ledger.worker_record("host:77:1234", pid=77, queues=("default", "mail"), lease=12.5, version="9.9")
    before = await ledger.store.now()
    await ledger.store.register(record)
    found = await worker(ledger, "host:77:1234")
    after = await ledger.store.now()
    assert before <= found.started_at <= after
    assert before <= found.last_heartbeat <= after
    assert (found.hostname, found.pid, found.state, found.kind) == ("host", 77, "active", "worker")
    assert (found.queues, found.lease, found.version) == (("default", "mail"), 12.5, "9.9")
    assert (found.tasks_completed, found.tasks_failed, found.stopped_at) == (0, 0, None)
    assert [w.id for w in await ledger.store.workers(states=["active"])] == ["host:77:1234"]
    assert await ledger.store.workers(states=["stopped"]) == []


@cases.add("A51")
async def a_heartbeat_of_an_unknown_worker_is_answered_so(ledger: Ledger) -> None:
    """A51: it is not among the living, and no row was made for it."""
    await ledger.register("a")
    assert await ledger.store.heartbeat(["a", "ghost"]) == {"a"}
    assert [w.id for w in await ledger.store.workers()] == ["a"]
    assert await ledger.store.heartbeat([]) == set()


@cases.add()
async def a_heartbeat_raises_the_beat(ledger: Ledger) -> None:
    """Each one changes the counter and the instant."""
    await ledger.register("a", "b")
    before = await worker(ledger, "a")
    await ledger.let_pass(0.01)
    assert await ledger.store.heartbeat(["a", "b"], states={"a": "idle"}) == {"a", "b"}
    after = await worker(ledger, "a")
    assert after.beat == before.beat + 1
    assert after.last_heartbeat > before.last_heartbeat
    assert after.state == "idle"
    assert (await worker(ledger, "b")).state == "active"


@cases.add("A52")
async def a_deregistered_worker_stays_as_history(ledger: Ledger) -> None:
    """A52: stopped, with its row; its heartbeats are not taken any more."""
    await ledger.register("a")
    assert await ledger.store.deregister("a") == 0
    gone = await worker(ledger, "a")
    assert gone.state == "stopped"
    assert gone.stopped_at is not None
    assert await ledger.store.heartbeat(["a"]) == set()
    assert (await worker(ledger, "a")).beat == gone.beat
    assert [w.id for w in await ledger.store.workers(states=["stopped"])] == ["a"]
    assert await ledger.store.deregister("a") == 0


@cases.add("A68")
async def deregistering_gives_back_what_it_held(ledger: Ledger) -> None:
    """A68: claimed and running alike are pending, uncharged, and another worker gets them; the rest is not touched."""
    await ledger.register("a", "b")
    await ledger.enqueue(*[task() for _ in range(4)])
    mine = await ledger.claim("a", 3)
    theirs = await ledger.claim_one("b")
    await ledger.store.start("a", [ref(mine[0])])
    assert await ledger.store.deregister("a") == 3
    for claim in mine:
        record = await ledger.get(claim.id)
        assert (record.state, record.attempt, record.worker) == (TaskState.PENDING, 0, None)
    assert await ledger.state(theirs.id) == "claimed"
    await ledger.let_pass(0.01)
    assert {claim.id for claim in await ledger.claim("b")} == {claim.id for claim in mine}
    report = await ledger.store.finish("a", [completed(claim) for claim in mine])
    assert report.refused == {ref(claim) for claim in mine}


@cases.add()
async def deregistering_ends_what_was_being_cancelled(ledger: Ledger) -> None:
    await ledger.register("a")
    task_id = await ledger.enqueue_one()
    await ledger.claim_one("a")
    await ledger.store.cancel([task_id])
    await ledger.store.deregister("a")
    assert await ledger.state(task_id) == "cancelled"


@cases.add()
async def one_rescuer_takes_over(ledger: Ledger) -> None:
    await ledger.register("a")
    beat = (await worker(ledger, "a")).beat
    assert await ledger.store.take_over("a", beat=beat)
    assert not await ledger.store.take_over("a", beat=beat)
    assert (await worker(ledger, "a")).state == "stopped"
    assert not await ledger.store.take_over("ghost", beat=0)


@cases.add()
async def a_worker_that_beat_meanwhile_is_not_taken_over(ledger: Ledger) -> None:
    await ledger.register("a")
    seen = (await worker(ledger, "a")).beat
    await ledger.store.heartbeat(["a"])
    assert not await ledger.store.take_over("a", beat=seen)
    assert (await worker(ledger, "a")).state == "active"
    assert await ledger.store.heartbeat(["a"]) == {"a"}


@cases.add()
async def a_worker_that_was_taken_over_learns_it(ledger: Ledger) -> None:
    await ledger.register("a")
    await ledger.store.take_over("a", beat=(await worker(ledger, "a")).beat)
    assert await ledger.store.heartbeat(["a"]) == set()


@cases.add("A68", "F17")
async def what_a_dead_worker_held_is_found_and_given_back(ledger: Ledger) -> None:
    """F17: a worker that died after the claim loses nothing; A68: unstarted ones return uncharged as suspects,
    started ones are charged."""
    await ledger.register("dead", "b")
    await ledger.enqueue(task(), task())
    one, two = await ledger.claim("dead")
    await ledger.store.start("dead", [ref(one)])
    assert await ledger.store.stopped_holders() == []
    await ledger.store.take_over("dead", beat=(await worker(ledger, "dead")).beat)
    assert await ledger.store.stopped_holders() == ["dead"]
    held = {claim.id: claim for claim in await ledger.store.held("dead")}
    assert {claim.state for claim in held.values()} == {"running", "claimed"}
    assert held[one.id].state == "running"
    assert held[one.id].claim_no == one.claim_no
    by_rescuer = Execution(recorded_by="rescuer")
    await ledger.finish("dead", lost(held[one.id]), settled(held[two.id], Released(suspect=True), execution=by_rescuer))
    assert await ledger.store.stopped_holders() == []
    assert await ledger.store.held("dead") == []
    first, second = await ledger.get(one.id), await ledger.get(two.id)
    assert (first.state, first.attempt, first.losses) == (TaskState.PENDING, 1, 0)
    assert (second.state, second.attempt, second.losses) == (TaskState.PENDING, 0, 1)
    await ledger.let_pass(0.01)
    assert {claim.id for claim in await ledger.claim("b")} == {one.id, two.id}


@cases.add()
async def the_holdings_of_an_unknown_worker_are_found_too(ledger: Ledger) -> None:
    await ledger.enqueue_one()
    await ledger.claim_one("never-registered")
    assert await ledger.store.stopped_holders() == ["never-registered"]


@cases.add()
async def holders_that_are_gone_are_found_among_those_that_live(ledger: Ledger) -> None:
    """Before the first, between two, and behind the last of them; by their ids, and no more than were asked for."""
    living, gone = ("b", "d", "f"), ("a", "c1", "c2", "g")
    await ledger.register(*living)
    for holder in (*living, *gone):
        await ledger.enqueue_one()
        await ledger.claim_one(holder)
    assert await ledger.store.stopped_holders() == [*gone]
    assert await ledger.store.stopped_holders(limit=2) == ["a", "c1"]


@cases.add()
async def held_is_bounded_and_says_what_is_being_cancelled(ledger: Ledger) -> None:
    await ledger.enqueue(*[task() for _ in range(5)])
    claims = await ledger.claim("a")
    await ledger.store.cancel([claims[0].id])
    assert len(await ledger.store.held("a", limit=3)) == 3
    states = {claim.id: claim.state for claim in await ledger.store.held("a")}
    assert states[claims[0].id] == "cancelling"
    assert len(states) == 5
    assert await ledger.store.held("b") == []


@cases.add()
async def a_rescue_races_with_the_report(ledger: Ledger) -> None:
    """Both read the same claim; whoever writes first wins, the other is refused, and the ledger has one outcome."""
    await ledger.register("a")
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one("a")
    await ledger.store.take_over("a", beat=(await worker(ledger, "a")).beat)
    await ledger.finish("a", completed(claim, "1"))
    report = await ledger.store.finish("a", [lost(claim)])
    assert ref(claim) not in report.accepted
    done = await ledger.get(task_id)
    assert (done.state, done.attempt, done.result) == (TaskState.COMPLETED, 1, "1")


@cases.add()
async def registering_again_is_not_a_second_row(ledger: Ledger) -> None:
    """The answer was lost; the worker repeats."""
    await ledger.register("a")
    await ledger.register("a")
    assert len(await ledger.store.workers()) == 1
