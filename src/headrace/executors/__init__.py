"""How one attempt runs: on the loop, in a thread, in a killable child, as a command.

An executor knows one attempt. It does not know queues, retries or stores.

    slots = SlotRange(table, worker=0, first=0, count=None)       # one per worker process, shared by its executors
    host = Host(channel=..., resources={...}, worker="name", result_limit=16 MiB)

    CoroutineExecutor(concurrency=100, slots=slots, host=host)    # launch.entry is needed
    ThreadExecutor(threads=4, slots=slots, host=host, supervised=True)
    ProcessExecutor(target="module:app", children=2, slots=slots, host=host, max_tasks=None, memory_limit=None,
                    kill_memory=None, unstarted_after=1.0)        # gives Released() for what found no child in time
    CommandExecutor(concurrency=10, slots=slots, host=host)
    MockExecutor(script, concurrency=100)

    Watchdog(table).run_once(now)             # supervisor process: signals and kills; WatchdogThread(table) without one
    end_groups(table, worker=0)               # after a worker process died: ends the commands it left

`open()` is called on the running loop, on the main thread where there is a choice (signals). Coroutine, thread and
command executors each take one slot per running attempt, the process executor one per child.
A name that is not registered comes back as Ran(Released(), unknown=True) and the worker chooses the delay; use
`invocation.resolve(source, name, options, policy)` to get the same answers in the worker process.
`headrace.executors.context.current` is what users see; `Channel` is what the worker implements.
"""
