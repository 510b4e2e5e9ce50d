"""The name under which a function is found again by another process."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headrace.core.errors import OptionError

_LONGEST = 300


def task_name(function: Callable[..., Any], given: str | None = None) -> str:
    """`module.qualname`; a module that is run as a program has the name it would have when imported."""
    qualname = getattr(function, "__qualname__", None)
    module = getattr(function, "__module__", None)
    if qualname is not None and qualname.rpartition(".")[2] == "<lambda>":
        raise OptionError("a lambda cannot be a task: write a function, which has a name in logs and in the ledger")
    if given is not None:
        return checked_name(given)
    if not isinstance(qualname, str) or not isinstance(module, str):
        raise OptionError(f"{function!r} has no name of its own: give it one with @app.task(name=…)")
    if "<locals>" in qualname:
        raise OptionError(
            f"{module}.{qualname} is defined inside a function, where a worker may not find it: move it to the module, "
            "or give it a name with @app.task(name=…) and make sure that the worker defines it too"
        )
    return checked_name(f"{_main_name() if module == '__main__' else module}.{qualname}")


def checked_name(name: object) -> str:
    if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST or "\0" in name or name != name.strip():
        raise OptionError(f"a task name is 1 to {_LONGEST} characters of text without spaces around it, not {name!r}")
    return name


def _main_name() -> str:
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    file = getattr(main, "__file__", None)
    if file is None:
        raise OptionError(
            "a task of an interactive session needs a name, and a worker that defines it: @app.task(name=…)"
        )
    return Path(file).stem
