"""Callables by dotted path, `package.module.function`: they need no registration."""

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

from headrace.client.arguments import Arguments, Result
from headrace.client.task import Task
from headrace.core.errors import EntrypointError
from headrace.core.payload import dumps
from headrace.core.retry import Retry


class Entrypoint:
    """An imported function as a worker sees it (executors.base.Entry)."""

    def __init__(self, path: str, function: Callable[..., Any], *, retry: Retry) -> None:
        self.name = path
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function)
        self.retry = retry
        self._arguments = Arguments(function, name=path)
        self._result = Result(function, name=path)

    def load_arguments(self, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self._arguments.load(text)

    def dump_result(self, value: Any) -> str:
        """An object that names its table is stored as that reference; everything else as itself."""
        table = getattr(value, "table_id", None)
        return self._result.dump(value) if table is None else dumps({"table_id": table})

    def inject(self, context: Any, resources: Mapping[str, Any]) -> dict[str, Any]:
        return self._arguments.inject(context, resources)


def load_entrypoint(path: str, *, retry: Retry) -> Entrypoint:
    """Import what the path names. EntrypointError says which part of it is missing."""
    module_path, _, attribute = path.rpartition(".")
    if not module_path or not all(part.isidentifier() for part in path.split(".")):
        raise EntrypointError(f"entrypoint {path!r} is not a dotted path like 'package.module.function'")
    try:
        module = importlib.import_module(module_path)
    except ModuleNotFoundError as error:
        # Only the absence of the module itself: one that it fails to import is an error of that module.
        if error.name is None or not (module_path == error.name or module_path.startswith(error.name + ".")):
            raise EntrypointError(f"entrypoint {path!r}: importing {module_path!r} failed: {error}") from error
        raise EntrypointError(f"entrypoint {path!r}: there is no module {error.name!r}") from error
    except Exception as error:
        raise EntrypointError(
            f"entrypoint {path!r}: importing {module_path!r} failed: {type(error).__qualname__}: {error}"
        ) from error
    found: Any = getattr(module, attribute, None)
    if found is None:
        raise EntrypointError(f"entrypoint {path!r}: the module {module_path!r} has no {attribute!r}")
    function: Any = cast("Task[..., Any]", found).function if isinstance(found, Task) else found
    if not callable(function):
        raise EntrypointError(f"entrypoint {path!r}: {attribute!r} is a {type(function).__qualname__}, not a function")
    return Entrypoint(path, function, retry=retry)
