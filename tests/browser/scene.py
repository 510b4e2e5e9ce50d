"""A ledger with something in every state, and where it is. Tests that act make their own; this is to look at."""

from dataclasses import dataclass
from datetime import timedelta

from headrace import Schedule, chain, chord, group
from headrace.core.states import TaskState
from tests.browser.stage import Stage
from tests.support.waiting import eventually

GATE = "the scene"  # opened at the end of all


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    completed: int
    failed: int  # with a traceback, a dead letter
    retrying: int
    scheduled: int
    running: int  # with progress and lines
    cancelled: int
    refund: int  # waits for an approval
    owned: int  # a task of uma's
    album: int  # a job that is completed
    going: int  # a job that runs
    broken: int  # a job that failed
    shrink: int  # a task inside of the album
    parked: int  # waits in a queue that is paused
    worker: str


async def set_up(stage: Stage) -> Scene:
    app = stage.app
    task = app.get_task
    completed = [await task("mail.welcome").aenqueue(user_id=number, password="hunter2") for number in range(12)]
    cards = ["declined"] * 4 + ["slow"] * 3 + ["garbled"] * 2
    failed = [await task("orders.charge").aenqueue(order=number, card=card) for number, card in enumerate(cards, 4_711)]
    retrying = [await task("mail.newsletter").aenqueue(issue=number) for number in range(2)]
    scheduled = await task("orders.ship").using(run_after=timedelta(days=2)).aenqueue(order=1)
    running = await task("catalogue.load").aenqueue(gate=GATE, rows=1_000)
    await app.queues.apause("parked")
    parked = [await task("orders.ship").using(queue="parked").aenqueue(order=number) for number in range(3)]
    cancelled = await task("orders.ship").using(run_after=timedelta(days=3)).aenqueue(order=2)
    await cancelled.acancel()

    shrink, bind, find = task("images.shrink"), task("images.bind"), task("images.find")
    album = (
        await chain(find.si("summer"), group(shrink.si(picture) for picture in range(12)), bind.s())
        .using(name="summer album")
        .aenqueue()
    )
    going = await chord([shrink.s(picture, GATE if picture else None) for picture in range(8)], bind.s()).aenqueue(
        name="winter album"
    )
    broken = await chain(find.si("spring"), task("images.fragile").si("never"), bind.si([1])).aenqueue(
        name="spring album"
    )
    with stage.sessions.client("uma") as uma:
        refund = uma.post("/tasks", json={"name": "orders.refund", "kwargs": {"order": 7, "cents": 1250}})
        owned = uma.post("/tasks", json={"name": "mail.welcome", "kwargs": {"user_id": 77}})
        command = uma.post("/tasks", json={"command": {"argv": ["ls", "-l"]}})
        for answer in (refund, owned, command):
            assert answer.status_code == 201, answer.text
    await app.breakers.aopen("postmaster", by="oskar")
    south = Schedule("0 6 * * 1", tz="Europe/Berlin", name="report-south")
    await app.schedules.aadd(task("reports.daily"), south, region="south")
    await app.schedules.arun_now("report-south")

    async def reached(id: int, *states: TaskState) -> bool:
        stage.worker.check()
        return (await app.tasks.aget(id)).state in states

    for handle in completed:
        await eventually(lambda id=handle.id: reached(id, TaskState.COMPLETED))
    for handle in failed:
        await eventually(lambda id=handle.id: reached(id, TaskState.FAILED))
    await eventually(lambda: reached(running.id, TaskState.RUNNING))
    for job, state in ((album, "completed"), (broken, "failed"), (going, "running")):

        async def in_state(job: int = job.id, state: str = state) -> bool:
            return (await app.jobs.aget(job)).state == state

        await eventually(in_state)

    async def tried() -> bool:
        return all([(await app.tasks.aget(handle.id)).attempt == 1 for handle in retrying])

    await eventually(tried)
    workers = await app.workers.alist(states=["active", "idle"])
    nodes = (await album.agraph()).nodes
    return Scene(
        completed=completed[0].id,
        failed=failed[0].id,
        retrying=retrying[0].id,
        scheduled=scheduled.id,
        running=running.id,
        cancelled=cancelled.id,
        refund=refund.json()["id"],
        owned=owned.json()["id"],
        album=album.id,
        going=going.id,
        broken=broken.id,
        shrink=next(node.id for node in nodes if node.task == "images.shrink"),
        parked=parked[0].id,
        worker=workers[0].id,
    )
