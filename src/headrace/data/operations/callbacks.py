"""A user's function over rows: found by name in whatever process, and called with what it asks for."""

import asyncio
import inspect
import sys
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, cast, get_args

from headrace.core.errors import DataError, EntrypointError
from headrace.data.formats import loaded

type Mode = Literal["row", "arrow", "pandas", "polars"]
type Given = Callable[..., Any] | str

MODES: tuple[str, ...] = get_args(Mode.__value__)
# Libraries by the first part of the module that an annotation names.
_LIBRARIES: dict[str, Mode] = {"pyarrow": "arrow", "pandas": "pandas", "polars": "polars"}
_SHORT = {"pa": "pyarrow", "pd": "pandas", "pl": "polars"}
_CLASSES: dict[str, str] = {"arrow": "Table", "pandas": "DataFrame", "polars": "DataFrame"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Callback:
    """How a task names it: a path that every worker can import, and what it takes."""

    path: str
    mode: Mode

    def function(self) -> Callable[..., Any]:
        return found_at(self.path)


def callback(given: Given, mode: str | None = None, *, rows: int = 1) -> Callback:
    """Check a callback before anything is written. It takes an Arrow table or a frame where its first parameter is
    annotated so (or `mode` says so), else so many rows, each a dict. EntrypointError when a worker could not import
    it, DataError when it cannot be called so."""
    if mode is not None and mode not in MODES:
        raise DataError(f"mode is one of {', '.join(MODES)}, not {mode!r}")
    path = given if isinstance(given, str) else _path_of(given)
    # A script that runs would be run again by its import: what it defines is at hand.
    function = found_at(path) if isinstance(given, str) or not _is_main(given) else _bare(given)
    if not isinstance(given, str) and function is not _bare(given):
        raise EntrypointError(f"{path} is not {given!r}: a worker would find another function by that name")
    found = cast("Mode", mode) if mode is not None else _asked_for(function)
    _refuse_arity(path, function, rows if found == "row" else 1)
    return Callback(path=path, mode=found)


def found_at(path: str) -> Callable[..., Any]:
    """Import `package.module.function`, or `package.module:function`. EntrypointError says what is missing."""
    module_path, _, attribute = path.partition(":") if ":" in path else path.rpartition(".")
    if not module_path or not attribute:
        raise EntrypointError(f"callback {path!r} is not a dotted path like 'package.module.function'")
    try:
        found: Any = import_module(module_path)
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        raise EntrypointError(f"callback {path!r}: the module {module_path!r} has no {attribute!r}") from error
    except Exception as error:
        raise EntrypointError(f"callback {path!r}: importing {module_path!r} failed: {error}") from error
    function = _bare(found)
    if not callable(function):
        raise EntrypointError(f"callback {path!r}: {attribute!r} is a {type(function).__qualname__}, not a function")
    return function


def _bare(function: Any) -> Callable[..., Any]:
    """A task is called as the function that it was made of."""
    return getattr(function, "function", function)


def _is_main(function: Any) -> bool:
    return getattr(_bare(function), "__module__", None) == "__main__"


def _path_of(function: Any) -> str:
    bare = _bare(function)
    module, qualname = getattr(bare, "__module__", None), getattr(bare, "__qualname__", None)
    if not callable(bare) or not isinstance(module, str) or not isinstance(qualname, str):
        raise EntrypointError(f"{function!r} is no function with a name; give one that a worker can import")
    if "<" in qualname:
        what = "a lambda" if qualname.endswith("<lambda>") else f"{qualname}, which is defined inside a function,"
        raise EntrypointError(f"{what} cannot be imported by a worker: write a function at the top of a module")
    # A colon, where the last dot does not part the module from the name.
    return f"{_main_name() if module == '__main__' else module}{':' if '.' in qualname else '.'}{qualname}"


def _main_name() -> str:
    main = sys.modules["__main__"]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    if file is None:
        raise EntrypointError("a worker cannot import a function of an interactive session; put it into a module")
    return Path(file).stem


def _asked_for(function: Callable[..., Any]) -> Mode:
    """By the annotation of the first parameter."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # one of C, which says nothing
        return "row"
    if not parameters:
        raise DataError(f"{function.__qualname__} takes no arguments; a callback takes a row, a table or a frame")
    try:
        annotation = typing.get_type_hints(function).get(parameters[0].name)
    except Exception:
        annotation = parameters[0].annotation
    text = annotation
    if not isinstance(text, str):
        text = f"{getattr(annotation, '__module__', '')}.{getattr(annotation, '__qualname__', '')}"
    first = text.partition(".")[0]
    mode = _LIBRARIES.get(_SHORT.get(first, first), "row")
    if mode != "row" and text.rpartition(".")[2] != _CLASSES[mode]:
        raise DataError(
            f"{function.__qualname__} asks for {text}; a callback takes a row (a dict), a pyarrow.Table, a "
            "pandas.DataFrame or a polars.DataFrame"
        )
    return mode


def _refuse_arity(path: str, function: Callable[..., Any], arguments: int) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # one of C, which says nothing
        return
    try:
        signature.bind(*([None] * arguments))
    except TypeError as error:
        what = "two rows" if arguments == 2 else "one argument: a row, a table or a frame"
        raise DataError(f"{path}{signature} cannot be called with {what}: {error}") from None


def called(function: Callable[..., Any], *args: Any) -> Any:
    """Also an `async def`: a step runs in a child process, where no loop does."""
    answer = function(*args)
    return asyncio.run(cast("Any", answer)) if inspect.isawaitable(answer) else answer


def mapped(callback: Callback, table: Any, schema: Any = None) -> Any:
    """What the function makes of a chunk, as a table."""
    function = callback.function()
    if callback.mode == "row":
        return _of_rows([called(function, row) for row in table.to_pylist()], schema)
    return _conformed(_table_of(called(function, _frame(callback.mode, table)), callback), schema)


def filtered(callback: Callback, table: Any) -> Any:
    """The rows of a chunk for which the function is true; it may also give the rows themselves, as it got them."""
    import pyarrow

    pa, function = cast("Any", pyarrow), callback.function()
    if callback.mode == "row":
        mask = pa.array([bool(called(function, row)) for row in table.to_pylist()], pa.bool_())
        return table.filter(mask)
    answer = called(function, _frame(callback.mode, table))
    if hasattr(answer, "columns") and hasattr(answer, "shape") and len(answer.shape) == 2:
        return _table_of(answer, callback).cast(table.schema)
    mask = answer if isinstance(answer, pa.Array | pa.ChunkedArray) else pa.array(list(answer))
    if len(mask) != table.num_rows:
        raise DataError(f"{callback.path} gave {len(mask)} answers for {table.num_rows} rows")
    return table.filter(mask.cast(pa.bool_()))


def reduced(callback: Callback, table: Any) -> Any:
    """The rows of a table as fewer: of row callbacks `f(f(a, b), c)`, of others what they make of the whole."""
    if not table.num_rows:
        return table
    if callback.mode == "row":
        return reduced_rows(callback, table.to_pylist())
    return _table_of(called(callback.function(), _frame(callback.mode, table)), callback)


def reduced_rows(callback: Callback, rows: Sequence[Any]) -> Any:
    function = callback.function()
    first, *rest = rows
    for row in rest:
        first = called(function, first, row)
    return _of_rows([first], None)


def _frame(mode: Mode, table: Any) -> Any:
    return table if mode == "arrow" else loaded(mode).frame_of(table)


def _table_of(answer: Any, callback: Callback) -> Any:
    import pyarrow

    pa = cast("Any", pyarrow)
    if isinstance(answer, pa.Table):
        return answer
    if isinstance(answer, pa.RecordBatch):
        return pa.Table.from_batches([answer])
    if isinstance(answer, dict):
        return pa.table(answer)
    if hasattr(answer, "__arrow_c_stream__"):
        table = pa.table(answer)
        # An index that pandas keeps beside the columns is none of the rows.
        return table.select([name for name in table.column_names if not name.startswith("__index_level_")])
    raise DataError(f"{callback.path} gave {type(answer).__qualname__}, and no table, frame or dict of columns")


def _of_rows(rows: Sequence[Any], schema: Any) -> Any:
    import pyarrow

    pa = cast("Any", pyarrow)
    dicts: list[dict[str, Any]] = [row if isinstance(row, dict) else {"value": row} for row in rows]
    names = list(dict.fromkeys(name for row in dicts for name in row))
    if schema is None:
        return pa.table({name: [row.get(name) for row in dicts] for name in names})
    return pa.Table.from_pylist(dicts, schema)


def _conformed(table: Any, schema: Any) -> Any:
    return table if schema is None or table.schema.equals(schema) else table.select(schema.names).cast(schema)
