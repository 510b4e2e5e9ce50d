"""The PostgreSQL ledger: the verbs of the seam, composed from one module a concern."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager

from headrace.store.base import StoreOptions
from headrace.store.postgres.accounts import Accounts
from headrace.store.postgres.administration import Administration
from headrace.store.postgres.admission import Admitting
from headrace.store.postgres.cancelling import Cancelling
from headrace.store.postgres.checkpoints import Checkpoints
from headrace.store.postgres.circuits import Circuits
from headrace.store.postgres.claiming import Claiming
from headrace.store.postgres.claims import HandedClaims
from headrace.store.postgres.connection import Database
from headrace.store.postgres.enqueueing import Enqueueing
from headrace.store.postgres.events import Events
from headrace.store.postgres.figures import Figures
from headrace.store.postgres.finishing import Finishing
from headrace.store.postgres.firing import Firings
from headrace.store.postgres.graphs import Graphs
from headrace.store.postgres.handing import Handing
from headrace.store.postgres.inspection import Inspection
from headrace.store.postgres.jobs import Jobs
from headrace.store.postgres.live import Announcer, Live, Watchers
from headrace.store.postgres.liveness import Liveness
from headrace.store.postgres.low_water import LowWater
from headrace.store.postgres.outlining import Outlines
from headrace.store.postgres.queues import Queues
from headrace.store.postgres.relations import Relations
from headrace.store.postgres.removing import Removing
from headrace.store.postgres.retrying import Retrying
from headrace.store.postgres.schedules import Schedules
from headrace.store.postgres.skimming import Skimming
from headrace.store.postgres.subscriptions import Subscribing
from headrace.store.postgres.upkeep import Upkeep
from headrace.store.postgres.wakeups import Waker
from headrace.store.queries import load_queries


class PostgresStore:
    dialect = "postgresql"

    def __init__(self, dsn: str, options: StoreOptions) -> None:
        self.url = dsn
        self.options = options
        self._database = database = Database(dsn, options)
        queries = load_queries("headrace.store.postgres.sql", options.name)
        self._waker = Waker(database, queries)
        self._announcer = announcer = Announcer(database, queries, notify=options.extra.get("notify", True))
        self._watchers = Watchers(database)
        self._administration = Administration(database, queries)
        claims = HandedClaims(database, queries)
        handing = Handing(database, queries, claims, notify=options.extra.get("notify", True))
        self._listener = handing.listener
        low_water = LowWater()
        claiming = Claiming(database, queries, claims, low_water, announcer)
        enqueueing = Enqueueing(database, queries, self._waker, announcer, notify=options.extra.get("notify", True))
        finishing = Finishing(database, queries, claims, low_water, announcer)
        inspection = Inspection(database, queries, announcer)

        self.enqueue = enqueueing.enqueue
        self.enqueue_program = enqueueing.enqueue_program
        self.claim = claiming.claim
        self.start = claiming.start
        self.stand_by = handing.stand_by
        self.still_stands = handing.still_stands
        self.stand_down = handing.stand_down
        self.leave = handing.leave
        self.record_handle = claiming.record_handle
        self.progress = claiming.progress
        self.promote = claiming.promote
        self.finish = finishing.finish
        self.warm = finishing.warm
        admitting = Admitting(database, queries, claims)
        cancelling = Cancelling(database, queries, announcer)
        retrying = Retrying(database, queries)
        upkeep = Upkeep(database, queries)
        removing = Removing(database, queries)
        liveness = Liveness(database, queries, finishing, claims, low_water)
        jobs = Jobs(database, queries, enqueueing, announcer)
        schedules = Schedules(database, queries)
        firings = Firings(database, queries, enqueueing, schedules)
        queues = Queues(database, queries, self._waker)
        outlines = Outlines(database, queries)
        checkpoints = Checkpoints(database, queries, enqueueing)
        events = Events(database, queries, enqueueing)
        subscribing = Subscribing(database, queries)
        graphs = Graphs(database, queries, inspection)
        accounts = Accounts(database, queries, enqueueing)
        circuits = Circuits(database, queries)
        live = Live(database, queries)
        skimming = Skimming(database, queries)
        relations = Relations(database, queries)
        figures = Figures(database, queries)

        self.admit = admitting.admit
        self.cancel = cancelling.cancel
        self.cancelling = cancelling.cancelling
        self.retry = retrying.retry
        self.clear = retrying.clear
        self.expire = upkeep.expire
        self.unpark = upkeep.unpark
        self.release = upkeep.release
        self.end_cancelling = upkeep.end_cancelling
        self.prune = upkeep.prune
        self.prunable = upkeep.prunable
        self.purge = removing.purge
        self.delete = removing.delete
        self.retry_depth = upkeep.retry_depth
        self.dead_letter_depth = upkeep.dead_letter_depth
        self.count_outcomes = upkeep.count_outcomes
        self.lead = upkeep.lead
        self.register = liveness.register
        self.heartbeat = liveness.heartbeat
        self.deregister = liveness.deregister
        self.workers = liveness.workers
        self.take_over = liveness.take_over
        self.stopped_holders = liveness.stopped_holders
        self.held = liveness.held
        self.watch_job_ends = jobs.watch_job_ends
        self.create_job = jobs.create_job
        self.get_job = jobs.get_job
        self.get_jobs = jobs.get_jobs
        self.list_jobs = jobs.list_jobs
        self.cancel_job = jobs.cancel_job
        self.retry_failed = retrying.retry_failed
        self.outline = outlines.outline
        self.tally = outlines.tally
        self.hooks_of_job = outlines.hooks_of_job
        self.bones = outlines.bones
        self.joints = outlines.joints
        self.labels = outlines.labels
        self.spans = outlines.spans
        self.put_schedules = schedules.put_schedules
        self.declare_schedules = schedules.declare_schedules
        self.schedules = schedules.schedules
        self.get_schedule = schedules.get_schedule
        self.pause_schedule = schedules.pause_schedule
        self.resume_schedule = schedules.resume_schedule
        self.remove_schedule = schedules.remove_schedule
        self.due_schedules = schedules.due_schedules
        self.set_schedule_aside = schedules.set_schedule_aside
        self.schedule_runs = schedules.schedule_runs
        self.last_runs = schedules.last_runs
        self.fire = firings.fire
        self.run_schedule = firings.run_schedule
        self.pause = queues.pause
        self.resume = queues.resume
        self.limit_queue = queues.limit_queue
        self.rate_queue = queues.rate_queue
        self.queue_names = queues.queue_names
        self.queues = queues.queues
        self.save_checkpoint = checkpoints.save_checkpoint
        self.spawn = checkpoints.spawn
        self.checkpoints = checkpoints.checkpoints
        self.checkpoint = checkpoints.checkpoint
        self.send = events.send
        self.send_program = events.send_program
        self.receive = events.receive
        self.deliver = events.deliver
        self.events = events.events
        self.skim_events = events.skim_events
        self.add_user = accounts.add_user
        self.add_first_admin = accounts.add_first_admin
        self.users = accounts.users
        self.get_user = accounts.get_user
        self.change_user = accounts.change_user
        self.renew_password = accounts.renew_password
        self.login_failed = accounts.login_failed
        self.login_succeeded = accounts.login_succeeded
        self.add_token = accounts.add_token
        self.find_token = accounts.find_token
        self.tokens = accounts.tokens
        self.touch_tokens = accounts.touch_tokens
        self.revoke_token = accounts.revoke_token
        self.write_audit = accounts.write_audit
        self.close_audit = accounts.close_audit
        self.audit = accounts.audit
        self.breakers = circuits.breakers
        self.breaker_changes = circuits.breaker_changes
        self.open_breaker = circuits.open_breaker
        self.probe_breaker = circuits.probe_breaker
        self.close_breaker = circuits.close_breaker
        self.reset_breaker = circuits.reset_breaker
        self.declare_subscriptions = subscribing.declare_subscriptions
        self.subscriptions = subscribing.subscriptions
        self.remove_subscription = subscribing.remove_subscription
        self.edges = graphs.edges
        self.inputs = graphs.inputs
        self.decide = graphs.decide
        self.get = inspection.get
        self.key_holders = inspection.key_holders
        self.list = inspection.list_tasks
        self.attempts = inspection.attempts
        self.counts = inspection.counts
        self.ended_counts = inspection.ended_counts
        self.waiting_retries = inspection.waiting_retries
        self.append_logs = inspection.append_logs
        self.logs = inspection.logs
        self.live_names = inspection.live_names
        self.gate_holders = inspection.gate_holders
        self.now = inspection.now
        self.skim_live = skimming.skim_live
        self.skim_ended = skimming.skim_ended
        self.skim_jobs = skimming.skim_jobs
        self.gates = relations.gates
        self.parents = relations.parents
        self.children = relations.children
        self.below = relations.below
        self.fired_by = relations.fired_by
        self.outcome_sums = figures.outcome_sums
        self.keep_depths = figures.keep_depths
        self.depth_series = figures.depth_series
        self.sample_ends = figures.sample_ends
        self.own_ends = figures.own_ends
        self.live_counts = figures.live_counts
        self.newest = figures.newest
        self.holding = figures.holding
        self.job_events = live.job_events
        self.last_job_events = live.last_job_events
        self.job_lines = live.job_lines
        self.last_job_lines = live.last_job_lines
        self.job_heads = live.job_heads
        self.task_heads = live.task_heads
        self.watch = self._watchers.watch
        self.upgrade = self._administration.upgrade
        self.downgrade = self._administration.downgrade
        self.schema_revision = self._administration.schema_revision
        self.facts = self._administration.facts
        self.check = self._administration.check

    @property
    def database(self) -> Database:
        return self._database

    async def open(self) -> None:
        await self._database.open()
        try:
            await self._administration.require_schema()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        self._waker.close()
        await self._announcer.close()
        await self._watchers.close()
        await self._listener.close()
        await self._database.close()

    async def identity(self) -> tuple[str, ...]:
        """Which database on which server; `client.transactions` asks a user's connection the same."""
        query = "SELECT current_database()::text, extract(epoch FROM pg_postmaster_start_time())::text"
        [row] = await self._database.fetch(query, repeatable=True)
        return tuple(row)

    def listen(self, worker: str, queues: Sequence[str]) -> AbstractAsyncContextManager[AsyncIterator[str]]:
        return self._listener.listen(worker, queues)

    async def wake(self, queues: Iterable[str]) -> None:
        await self._waker.wake(queues)

    async def announce(self, topics: Iterable[str]) -> None:
        self._announcer.note(topics)
