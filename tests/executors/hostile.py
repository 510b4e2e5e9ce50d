"""Sources that misbehave outside of the task's own code."""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from headrace.testing.executor_conformance.tasks import FunctionEntry, ModuleSource


class DiesLoading(FunctionEntry):
    def load_arguments(self, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        os._exit(9)


class DyingSource(ModuleSource):
    def resolve(self, name: str, options: Mapping[str, Any]) -> FunctionEntry:
        entry = super().resolve(name, options)
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
