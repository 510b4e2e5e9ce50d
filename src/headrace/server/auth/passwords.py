"""Passwords: argon2id, in threads of their own, because one check takes as long as a hundred requests."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import argon2
from argon2.exceptions import InvalidHashError, VerificationError

from headrace.core.errors import OptionError
from headrace.core.values import value

SHORTEST, LONGEST = 8, 1000
_AT_ONCE = 2  # each takes 64 MiB
_HASHER = argon2.PasswordHasher()


@value
class Verdict:
    good: bool
    stale: bool = False  # good, but made with other parameters than those of now: hash it anew


def check_password(password: str) -> None:
    if not SHORTEST <= len(password) <= LONGEST:
        raise OptionError(f"a password has {SHORTEST} to {LONGEST} characters")


def hash_password(password: str) -> str:
    """Takes a few hundredths of a second; on an event loop use `Passwords`."""
    check_password(password)
    return _HASHER.hash(password)


def verify_password(hashed: str | None, password: str) -> Verdict:
    """Takes as long where there is no such user, or none with a password: nobody learns names by the clock."""
    try:
        _HASHER.verify(_of_nobody() if hashed is None else hashed, password)
    except (VerificationError, InvalidHashError):
        return Verdict(good=False)
    return Verdict(good=hashed is not None, stale=hashed is not None and _HASHER.check_needs_rehash(hashed))


class Passwords:
    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_AT_ONCE, "headrace-passwords")

    async def hash(self, password: str) -> str:
        return await asyncio.get_running_loop().run_in_executor(self._threads, hash_password, password)

    async def verify(self, hashed: str | None, password: str) -> Verdict:
        return await asyncio.get_running_loop().run_in_executor(self._threads, verify_password, hashed, password)

    async def __aenter__(self) -> "Passwords":
        # Else the first who asks for a name that is not there would wait twice as long.
        await asyncio.get_running_loop().run_in_executor(self._threads, _of_nobody)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


@cache
def _of_nobody() -> str:
    return _HASHER.hash("the password of nobody")
