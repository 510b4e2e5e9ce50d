"""A task of ten steps that is killed again and again, and others that give their slot back."""

import os
import random
import signal
import time
from typing import Any

from headrace import Retry, current
from tests.guarantees.declared import Declared, note

declared = Declared()
task = declared.task

STEPS = 10
# Each kill is charged; the proof kills more often than any sane policy allows.
UNENDING = Retry(max_attempts=100_000, backoff="fixed", base=0.02, jitter=0.0)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


class Fate:
    """Where an attempt dies: some steps after those that were stored before, in one of the moments around a step."""

    def __init__(self, kills: int, seed: int) -> None:
        rng = random.Random(f"{seed} {current.task_id} {current.claim_no}")
        self._doomed = current.attempt <= kills  # not by claims: one that was given back unstarted kills nobody
        self._steps = rng.randrange(max(1, 2 * STEPS // kills) + 1)  # that it may still do: kills meet every step
        self._inside = rng.choice((True, False))
        self._ran = False

    def ran(self, step: int) -> int:
        """The work of a step: its value says which attempt did it, and the line is there whatever comes."""
        note("ran", step)
        self._ran = True
        if self._inside:
            self.strike()
        return current.claim_no

    def stored(self, step: int, value: int) -> None:
        note("stored", step, value)
        if self._ran and not self._inside:
            self.strike()

    def strike(self) -> None:
        if self._doomed and self._steps == 0:
            _die()
        self._steps -= 1

    def end(self) -> None:
        if self._doomed:
            _die()


@task(retry=UNENDING, timeout=300)
def ten_steps(kills: int, seed: int) -> list[int]:
    """In a child."""
    fate, values = Fate(kills, seed), list[int]()
    for step in range(STEPS):
        values.append(current.step(f"step {step}", fate.ran, step))
        fate.stored(step, values[-1])
    fate.end()
    return values


@task(retry=UNENDING, timeout=300)
async def ten_steps_loop(kills: int, seed: int) -> list[int]:
    """On the loop of the worker process: what dies is the whole worker."""
    fate, values = Fate(kills, seed), list[int]()
    for step in range(STEPS):
        values.append(await current.step(f"step {step}", fate.ran, step))
        fate.stored(step, values[-1])
    fate.end()
    return values


@task(retry=UNENDING, timeout=300)
def slow_steps(seconds: float) -> list[int]:
    """For kills from outside, at any moment."""
    values: list[int] = []
    for step in range(STEPS):
        values.append(current.step(f"step {step}", _slow, step, seconds))
        note("stored", step, values[-1])
    return values


def _slow(step: int, seconds: float) -> int:
    note("ran", step)
    time.sleep(seconds)
    return current.claim_no


# One attempt: a charge would fail them.
ONCE = Retry(max_attempts=1)


@task(retry=ONCE)
async def child(n: int) -> int:
    return 2 * n


@task(retry=ONCE)
async def gives_back(n: int, key: str) -> list[Any]:
    """Sleeps, waits for an event, calls a task."""
    note("ran", "begin")
    first = await current.step("first", _first, n)
    await current.sleep(0.2)
    paid = await current.wait("paid", key, timeout=120)
    called = await current.call(tasks().child.s(first))
    return [first, paid, called]


def _first(n: int) -> int:
    note("first")
    return n


_made: list[Any] = []


def tasks() -> Any:
    return _made[0]


_made.append(declared.on())
app = _made[0].app
