"""What commands print: a table for people, JSON for programs."""

import dataclasses
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

from rich.console import Console

if TYPE_CHECKING:
    from headrace.telemetry.redaction import Redaction

# Soft wrap: a line is broken by the terminal, never by us, so that it can be searched and copied whole.
console = Console(highlight=False, soft_wrap=True)

# What commands show of tasks goes through these rules: the built-in ones, or those of the App that was named.
_of_the_app: "Redaction | None" = None


def use_redaction(redaction: "Redaction") -> None:
    """From now on by the rules of this App."""
    global _of_the_app
    _of_the_app = redaction


def _redaction() -> "Redaction":
    # Imported where it is used, as in every file here: `headrace --help` and completion load all of them.
    from headrace.telemetry.redaction import DEFAULT

    return _of_the_app or DEFAULT


def redacted(text: str) -> str:
    """For a text of a task that is printed otherwise than by the functions below, which do it themselves."""
    return _redaction().text(text)


def as_json(value: Any, *, whole: bool = False) -> str:
    """One JSON text; ids are strings, because programs in other languages lose digits above 2^53."""
    import orjson

    return orjson.dumps(plain(value, whole=whole), option=orjson.OPT_INDENT_2).decode()


# How things are called is no secret of theirs, though it may look like one: a queue `auth`, a task `auth:emails`.
_CALLED = frozenset({
    "id", "name", "task", "queue", "queues", "worker", "workers", "schedule", "table", "job", "kind", "state",
    "hostname", "executor", "log_ref", "error_class", "recorded_by", "declared_by",
})  # fmt: skip
# What tasks put in: searched by name too.
_GIVEN = frozenset({
    "arguments", "options", "metadata", "result", "progress", "error", "error_message", "traceback", "line", "message",
    "env", "extra", "fields",
})  # fmt: skip


def plain(value: Any, *, whole: bool = False) -> Any:
    """Without secrets, unless the `whole` is asked for: by name in what tasks put in, and in texts. The fields of our
    own records, and what things are called, are no secrets by their names.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        if hasattr(value, "log_ref"):
            names.append("log_ref")
        return {name: _item(name, getattr(value, name), whole=whole) for name in names}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str) and not whole:
        return redacted(value)
    if isinstance(value, Mapping):
        found = cast("Mapping[Any, Any]", value)
        return {
            str(key): _hidden(str(key), item) if not whole and _is_secret(str(key), item)
            else _item(str(key), item, whole=whole)
            for key, item in found.items()
        }  # fmt: skip
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item, whole=whole) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def _is_secret(name: str, value: Any) -> bool:
    """A text under such a key; what else is there may be about a queue or a table of that name."""
    return isinstance(value, str) and name not in _CALLED and _redaction().is_secret(name)


def _hidden(name: str, value: str) -> Any:
    return _redaction().value(value, name)


def _item(name: str, value: Any, *, whole: bool) -> Any:
    value = _stringly(name, value)
    if not whole and name in _CALLED and (isinstance(value, str) or _are_texts(value)):
        return plain(value, whole=True)
    if not whole and name in _GIVEN and isinstance(value, (Mapping, list, tuple)):
        return plain(_redaction().value(value), whole=True)
    return plain(value, whole=whole)


def _are_texts(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in cast("Sequence[Any]", value))


def _stringly(name: str, value: Any) -> Any:
    return str(value) if name in ("id", "task", "job") and isinstance(value, int) else value


def print_json(value: Any, *, whole: bool = False) -> None:
    """Without secrets, see `plain`."""
    print(as_json(value, whole=whole), flush=True)


def print_json_line(value: Any) -> None:
    """One value, one line: what goes on for a while is read as it comes."""
    import orjson

    print(orjson.dumps(plain(value)).decode(), flush=True)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    texts = [[_cell(column, cell) for column, cell in zip(columns, row, strict=True)] for row in rows]
    if not texts:
        console.print(f"[dim]{empty}[/]")
    elif console.is_terminal:
        _print_for_people(title, columns, texts)
    else:
        _print_for_programs(title, columns, texts)


def _cell(column: str, cell: object) -> str:
    if cell is None:
        return ""
    return visible(str(cell) if column in _CALLED else redacted(str(cell)))


def _print_for_people(title: str, columns: Sequence[str], rows: list[list[str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table, soft_wrap=False)


def _print_for_programs(title: str, columns: Sequence[str], rows: list[list[str]]) -> None:
    """One task, one line: what reads it has no width."""
    lines = [list(columns), *rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    if title:
        print(title)
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    sys.stdout.flush()


def print_lines(lines: Iterable[Sequence[tuple[str, str]]]) -> None:
    """Lines of (text, style). What a task put in has gone through `redacted` and `visible` before."""
    from rich.text import Text

    for line in lines:
        console.print(Text.assemble(*line))


def visible(text: str) -> str:
    """Text of a task on one line, without what would move the cursor of the reader's terminal."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else " " for character in text)


def ago(instant: datetime | None) -> str:
    """How long ago, in the largest unit that fits."""
    if instant is None:
        return ""
    seconds = (datetime.now(UTC) - instant).total_seconds()
    sign, seconds = ("in ", -seconds) if seconds < -0.5 else ("", max(seconds, 0.0))
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{sign}{seconds / size:.0f}{unit}{'' if sign else ' ago'}"
    return f"{sign}{seconds:.0f}s{'' if sign else ' ago'}"
