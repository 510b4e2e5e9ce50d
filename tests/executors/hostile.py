"""Sources that misbehave outside of the task's own code."""

import os
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from headrace.executors.context import current
from headrace.testing.executor_conformance.tasks import FunctionEntry, ModuleSource


class DiesLoading(FunctionEntry):
    def load_arguments(self, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        os._exit(9)


class HangsLoading(FunctionEntry):
    def load_arguments(self, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        time.sleep(1000)
        raise AssertionError


class DyingSource(ModuleSource):
    def resolve(self, name: str, options: Mapping[str, Any]) -> FunctionEntry:
        entry = super().resolve(name, options)
        if options.get("hang"):
            return HangsLoading(name, entry.function)
        return DiesLoading(name, entry.function) if options.get("die") else entry


class BrokenLifespan(ModuleSource):
    def resources(self) -> AbstractAsyncContextManager[Mapping[str, Any]]:
        return _broken()


@asynccontextmanager
async def _broken() -> AsyncGenerator[Mapping[str, Any]]:
    raise RuntimeError("the pool could not be opened")
    yield {}


dying = DyingSource()
broken = BrokenLifespan()


class TwoPartError(Exception):
    """Pickles, and cannot be unpickled: the usual mistake in exceptions with arguments of their own."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


def task_talk_oddly() -> str:
    current.log("failed", error=TwoPartError(3, "words"), where=Path("somewhere"))
    current.progress(Decimal("0.5"), total=Fraction(1))
    return "said"


class OddSource(ModuleSource):
    def resolve(self, name: str, options: Mapping[str, Any]) -> FunctionEntry:
        return FunctionEntry(name, task_talk_oddly) if name == "talk_oddly" else super().resolve(name, options)


odd = OddSource()
