"""`app.commands`: programs as tasks. One attempt and no time limit, unless asked for."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

from headrace.client.bridge import sync_form
from headrace.client.engine import Engine
from headrace.client.handles import Handle
from headrace.client.keys import debounce_delay, keys_of
from headrace.client.options import OptionArguments, Options
from headrace.client.preparing import effective_max_age, merged_gates, queue_gates, stored_options
from headrace.core import payload
from headrace.core.errors import ArgumentError
from headrace.core.limits import gates_for
from headrace.core.retry import Retry
from headrace.core.task import NewTask

NAME = "command"
ONCE = Retry(max_attempts=1)


class CommandResult(TypedDict):
    """What a command's `result()` gives."""

    exit_code: int
    stdout: str  # the last 64 KiB of it
    stderr: str
    stdout_bytes: int  # how many there were
    stderr_bytes: int


class Commands:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def asubmit(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        stdin: str | None = None,
        **options: Unpack[OptionArguments],
    ) -> Handle[CommandResult]:
        """Run a program on a worker. `argv` is passed as it is: no shell reads it."""
        task = self.prepare(argv, env=env, cwd=cwd, stdin=stdin, **options)
        (answer,) = await self._engine.enqueue((task,), connection=options.get("connection"))
        return Handle(self._engine, answer.id, created=answer.created, name=NAME)

    def prepare(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        stdin: str | None = None,
        **options: Unpack[OptionArguments],
    ) -> NewTask:
        """What `submit` would write; for `app.jobs.create(tasks=[...])`."""
        checked = _COMMAND.changed(NAME, options)
        arguments = _arguments(argv, env, cwd, stdin)
        text = payload.dumps(arguments)
        retry = checked.retry or ONCE
        delay, max_wait = debounce_delay(checked) if checked.debounce is not None else (checked.delay, None)
        queue = self._engine.queues.get(checked.queue)
        gates = gates_for(
            task_name=NAME, arguments=arguments, limit=checked.limit, rate=checked.rate, order_key=checked.order_key
        )
        return NewTask(
            name=NAME,
            kind="command",
            arguments=text,  # read by the executor itself, so no codec of the app is in between
            queue=checked.queue,
            pool="command",
            priority=checked.priority,
            delay=delay,
            run_at=checked.run_at,
            max_attempts=retry.max_attempts,
            max_age=effective_max_age(self._engine, checked, retry),
            options=stored_options(self._engine, checked, retry=retry),
            gates=merged_gates(gates, () if queue is None else queue_gates(checked.queue, queue.limit, queue.rate)),
            keys=keys_of(checked, name=NAME, arguments=text, values=arguments, retention=self._engine.settings.keep),
            job=checked.job,
            critical=checked.critical,
            dead_letter=retry.dead_letter,
            max_wait=max_wait,
        )

    submit = sync_form(asubmit)


_COMMAND = Options(soft_timeout=None, timeout=None)


def _arguments(
    argv: Sequence[str], env: Mapping[str, str] | None, cwd: str | os.PathLike[str] | None, stdin: str | None
) -> dict[str, Any]:
    if isinstance(argv, str) or not argv:
        raise ArgumentError(f"argv must be a list of words, for example ['python', 'train.py'], not {argv!r}")
    for word in (*argv, *(env or {}).keys(), *(env or {}).values()):
        if not isinstance(word, str) or "\0" in word:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(f"argv and env hold texts without NUL, not {word!r}")
    if any("=" in name or not name for name in env or {}):
        raise ArgumentError("a name in env is empty or holds '='")
    arguments: dict[str, Any] = {"argv": list(argv)}
    if env is not None:
        arguments["env"] = dict(env)
    if cwd is not None:
        arguments["cwd"] = os.fspath(cwd)
    if stdin is not None:
        arguments["stdin"] = stdin
    return arguments
