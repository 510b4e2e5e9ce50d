"""When somebody waits for a task and there is no worker: run what can run, or say why it never will."""

from collections.abc import Sequence

from headrace.core.states import TaskState
from headrace.core.task import TaskRecord
from headrace.testing.errors import StillWaiting
from headrace.testing.running import Runner
from headrace.testing.tally import Tally, around


class WhileWaiting:
    """For a drain (client.engine.Inline): an enqueue is only written, a result that is asked for brought about."""

    def __init__(self, runner: Runner, *, limit: int) -> None:
        self.runner = runner
        self.limit = limit

    async def readied(self, ids: Sequence[int]) -> None:
        pass

    async def run_ready(self) -> None:
        outside = around.get()
        await self.runner.run_ready(Tally() if outside is None else outside.tally, limit=self.limit)

    async def wanted(self, task: int) -> None:
        record = await self._record(task)
        if record is None or record.state.terminal:
            return
        await self.run_ready()
        record = await self._record(task)
        # One that is in hand is run by another thread, or around this very code; how that ends is the caller's limit.
        if record is not None and not record.state.terminal and task not in self.runner.in_hand:
            raise StillWaiting(await self._explained(record))

    async def _record(self, task: int) -> TaskRecord | None:
        return next(iter(await self.runner.records([task])), None)

    async def _explained(self, record: TaskRecord) -> str:
        app, what = self.runner.app, f"task {record.id} ({record.name})"
        now = await app.engine.run(lambda store: store.now())
        if record.state is not TaskState.PENDING:
            return f"{what} is {record.state}, and nothing in this process would end it"
        if record.waiting_on is not None:
            return f"{what} waits for room: {record.waiting_on}"
        if record.name not in app.registry:
            return f"{what} is not defined on this app; it has {', '.join(sorted(app.registry)) or 'no tasks'}"
        if record.eligible_at > now:
            after = "its next attempt" if record.claim_no else "its time"
            return (
                f"{what} waits for {after} at {record.eligible_at.isoformat()}, in {record.eligible_at - now}: "
                "move the clock and call drain(app), or call drain(app, with_scheduled=True, with_retries=True)"
            )
        return f"{what} is pending in the queue {record.queue!r} and was not run: is the queue paused?"
