"""`Object`, a table by its id, and `View`, a slice of one. Both are references: small, and the same for every process.

Methods are coroutines; `iter_batches` and `table` block, for functions that are not async. As arguments and results of
tasks they travel as JSON: {"table_id": …}, and a view with its offset and limit.
"""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, cast

from headrace.core.errors import DataError
from headrace.data.backend import ObjectMeta, RecordBatch, Schema
from headrace.data.current import current_data
from headrace.data.ids import is_id
from headrace.data.threads import in_thread

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler

    from headrace.data.catalog import Data, Keep
    from headrace.data.operations.callbacks import Given
    from headrace.data.operations.launching import FutureObject
    from headrace.data.sources import SchemaLike, Source

CHUNK_ROWS = 10_000
SHUFFLE_ROWS = 100_000


class Rows(ABC):
    """What a table and a slice have in common."""

    __slots__ = ("_data", "_meta", "id")

    def __init__(self, id: str, *, data: "Data | None" = None, meta: ObjectMeta | None = None) -> None:
        if not is_id(id):
            raise DataError(f"{id!r} is not the id of an object: that is obj_ and small letters, digits or _")
        self.id = id
        self._data = data
        self._meta = meta

    @property
    def table_id(self) -> str:
        """The id of the object."""
        return self.id

    @property
    def data(self) -> "Data":
        """Where it is. A reference that came from elsewhere finds its place at the first use."""
        if self._data is None:
            self._data = current_data()
        return self._data

    def known(self) -> ObjectMeta:
        """What is known of the object, without reading its rows. Blocks at the first time; `meta` is the async form."""
        if self._meta is None:
            self._meta = self.data.meta(self.id)
        return self._meta

    @property
    @abstractmethod
    def _slice(self) -> tuple[int, int | None]: ...

    def span(self) -> tuple[int, int]:
        """Its first row and the one after its last, as rows of the object. Blocks at the first time. DataError for a
        view that begins behind the end."""
        offset, limit = self._slice
        rows = self.known().rows
        _refuse_behind_end(self.id, offset, limit, rows)
        return offset, rows if limit is None else min(rows, offset + limit)

    def iter_batches(self, columns: Sequence[str] | None = None) -> Generator[RecordBatch]:
        """Its rows as Arrow record batches, in their order. Blocks; a few batches are in memory at a time."""
        start, end = self.span()
        yield from self.data.backend.read(self.id, offset=start, limit=end - start, columns=columns)

    def table(self, columns: Sequence[str] | None = None) -> Any:
        """All of it as an Arrow table. Blocks; `to_arrow` is the async form."""
        batches = list(self.iter_batches(columns))
        import pyarrow

        schema = self.known().schema
        pa = cast("Any", pyarrow)
        if columns is not None:
            schema = batches[0].schema if batches else pa.schema([schema.field(name) for name in columns])
        return pa.Table.from_batches(batches, schema)

    def _schema(self) -> Schema:
        return self.known().schema

    def _count(self) -> int:
        start, end = self.span()
        return end - start

    def _to_pandas(self, columns: Sequence[str] | None = None) -> Any:
        from headrace.data.formats import loaded

        return loaded("pandas").frame_of(self.table(columns))

    def _to_polars(self, columns: Sequence[str] | None = None) -> Any:
        from headrace.data.formats import loaded

        return loaded("polars").frame_of(self.table(columns))

    def _head(self, rows: int = 10) -> list[dict[str, Any]]:
        return self.view(0, rows).table().to_pylist()

    async def meta(self) -> ObjectMeta:
        """What is known of the object: rows, bytes, schema, who made it, until when it stays. Reads no rows."""
        return self._meta or await in_thread(self.known)()

    async def count(self) -> int:
        """How many rows. Reads none of them."""
        return self._count() if self._meta else await in_thread(self._count)()

    async def schema(self) -> Schema:
        """Its columns, as a pyarrow.Schema."""
        return self._meta.schema if self._meta else await in_thread(self._schema)()

    async def to_arrow(self, columns: Sequence[str] | None = None) -> Any:
        """All of it as a pyarrow.Table."""
        return await in_thread(self.table)(columns)

    async def to_pandas(self, columns: Sequence[str] | None = None) -> Any:
        return await in_thread(self._to_pandas)(columns)

    async def to_polars(self, columns: Sequence[str] | None = None) -> Any:
        return await in_thread(self._to_polars)(columns)

    async def head(self, rows: int = 10) -> list[dict[str, Any]]:
        """The first rows, as dicts."""
        return await in_thread(self._head)(rows)

    async def batches(self, columns: Sequence[str] | None = None) -> AsyncIterator[RecordBatch]:
        """`async for batch in obj.batches():` its rows as Arrow record batches, a few in memory at a time."""
        found = self.iter_batches(columns)
        try:
            while (batch := await in_thread(next)(found, None)) is not None:
                yield batch
        finally:
            with contextlib.suppress(ValueError):  # a thread still reads: who waited for it was cancelled
                found.close()

    async def rows(self, columns: Sequence[str] | None = None) -> AsyncIterator[dict[str, Any]]:
        """`async for row in obj.rows():` its rows as dicts."""
        async for batch in self.batches(columns):
            for row in batch.to_pylist():
                yield row

    def view(self, offset: int, limit: int) -> "View":
        """At most `limit` of its rows, from the one at `offset` on: a reference, not a copy.

        DataError when it would begin behind the end, at the call if the number of rows is known here (the handle came
        from `create` or `open`, or was used before), else at the first use.
        """
        _checked(offset, limit)
        first, own = self._slice
        view = View(
            self.id,
            first + offset,
            limit if own is None else max(0, min(limit, own - offset)),
            data=self._data,
            meta=self._meta,
        )
        if self._meta is not None:
            start, end = self.span()
            _refuse_behind_end(self.id, start + offset, limit, end)
        return view

    def views(self, chunk_size: int = CHUNK_ROWS) -> "Views":
        """Slices of so many rows that together have every row once, in their order: `async for view in obj.views()`,
        or `await obj.views()` for a list. None at all for an empty one."""
        if isinstance(chunk_size, bool) or not isinstance(chunk_size, int) or chunk_size < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DataError(f"chunk_size is a number of rows from 1 on, not {chunk_size!r}")
        return Views(self, chunk_size)

    # Work over it. Each makes one task for each chunk and one that puts the parts together, in a job of its own or in
    # that of the task that runs here, and gives a handle to the object that comes out. `options` are those of its
    # tasks: queue, priority, critical, max_attempts.

    async def map(
        self,
        fn: "Given",
        chunk_size: int = CHUNK_ROWS,
        *,
        schema: "SchemaLike | None" = None,
        mode: str | None = None,
        **options: Any,
    ) -> "FutureObject":
        """What a function makes of its rows, in their order. It takes one row, a dict, and gives one; or it is
        annotated with an Arrow table, a pandas or a polars frame, takes a chunk as that and gives any number of rows.

        EntrypointError, and nothing is written, when a worker could not import it. `schema` is that of the outcome, for
        functions whose chunks would not agree on one.
        """
        from headrace.data.operations.calls import map_rows

        return await map_rows(self, fn, chunk_size, schema=schema, mode=mode, **options)

    async def filter(
        self, fn: "Given", chunk_size: int = CHUNK_ROWS, *, mode: str | None = None, **options: Any
    ) -> "FutureObject":
        """The rows for which a function is true, in their order. One that takes a table or a frame gives a mask."""
        from headrace.data.operations.calls import filter_rows

        return await filter_rows(self, fn, chunk_size, mode=mode, **options)

    async def reduce(
        self, fn: "Given", chunk_size: int = CHUNK_ROWS, *, mode: str | None = None, **options: Any
    ) -> "FutureObject":
        """Its rows as one: `fn(a, b)` gives a row of two, in the order of the rows. One that takes a table or a frame
        gives a smaller one, and is called again on what it gave for several chunks. No rows of none."""
        from headrace.data.operations.calls import reduce_rows

        return await reduce_rows(self, fn, chunk_size, mode=mode, **options)

    async def sort(self, by: Any, chunk_size: int = SHUFFLE_ROWS, **options: Any) -> "FutureObject":
        """Its rows in the order of columns: `"a"`, `["a", "b"]`, `[("a", "descending")]`. Nulls come last, and rows of
        equal keys keep their order. It may be larger than memory; one key's rows may not."""
        from headrace.data.operations.calls import sort_rows

        return await sort_rows(self, by, chunk_size, **options)

    async def join(
        self,
        other: "Rows",
        on: "str | Sequence[str]",
        how: str = "inner",
        chunk_size: int = SHUFFLE_ROWS,
        *,
        suffix: str = "_right",
        **options: Any,
    ) -> "FutureObject":
        """Its rows with those of another that have the same values in these columns; `how="left"` keeps those without.
        Null equals nothing. The order of the outcome is not promised. `suffix` is for columns that both have."""
        from headrace.data.operations.calls import join_rows

        return await join_rows(self, other, on, how, chunk_size, suffix=suffix, **options)

    @abstractmethod
    def __headrace_json__(self) -> dict[str, Any]:
        """How it travels (core.payload asks for it)."""

    @classmethod
    @abstractmethod
    def load(cls, value: Any) -> Self:
        """From what `__headrace_json__` gave; ValueError for anything else."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: "GetCoreSchemaHandler") -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            cls.load, serialization=core_schema.plain_serializer_function_ser_schema(_plain)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: "GetJsonSchemaHandler") -> dict[str, Any]:
        properties: dict[str, Any] = {"table_id": {"type": "string"}}
        properties |= {name: {"type": "integer", "minimum": 0} for name in cls._NUMBERS}
        return {"type": "object", "title": cls.__name__, "properties": properties, "required": list(properties)}

    _NUMBERS: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.__headrace_json__() == cast("Rows", other).__headrace_json__()

    def __hash__(self) -> int:
        return hash((type(self), *self.__headrace_json__().values()))


class Object(Rows):
    """A table that is stored once and never changes. `Object.create(…)`, `Object.open(id)`, or a parameter annotated
    `Object`."""

    __slots__ = ()

    @classmethod
    async def create(
        cls,
        source: "Source",
        *,
        name: str | None = None,
        keep: "Keep | None" = None,
        schema: "SchemaLike | None" = None,
        data: "Data | None" = None,
    ) -> "Object":
        """Store a table: rows (dicts), an Arrow table or reader, a pandas or polars frame, the path of Parquet (a file
        or a folder) or CSV, or `SQL(…)`. Streamed where the source can be.

        `keep`: it stays when its job fails or is cancelled, and for so long (a duration, or "forever"); without it, it
        goes with such a job, and else after the app's `data_keep`. `data`: the place; else that of the task's app.
        """
        return await (data or current_data()).acreate(source, name=name, keep=keep, schema=schema)

    @classmethod
    async def open(cls, id: str, *, data: "Data | None" = None) -> "Object":
        """The object of that id; NotFound when there is none."""
        return await (data or current_data()).aopen(id)

    async def drop(self) -> bool:
        """Remove it; whether it was still there."""
        return await self.data.adrop(self)

    @property
    def _slice(self) -> tuple[int, int | None]:
        return 0, None

    def __headrace_json__(self) -> dict[str, Any]:
        return {"table_id": self.id}

    @classmethod
    def load(cls, value: Any) -> "Object":
        """An Object, its id, or {"table_id": id}; whether it is there shows at the first use."""
        if isinstance(value, Object):
            return value
        if isinstance(value, Mapping):
            given = cast("Mapping[Any, Any]", value)
            if set(given) != {"table_id"}:
                raise ValueError('an object is given as {"table_id": id}')
            value = given["table_id"]
        if not is_id(value):
            raise ValueError("an object is given by its id, obj_…")
        return cls(value)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Object, (self.id,))

    def __repr__(self) -> str:
        return f"<Object {self.id}{f': {self._meta.rows} rows' if self._meta else ''}>"


class View(Rows):
    """At most `limit` rows of an object from `offset` on. Views of one object that do not overlap share no row."""

    __slots__ = ("limit", "offset")
    _NUMBERS = ("offset", "limit")

    def __init__(
        self, id: str, offset: int, limit: int, *, data: "Data | None" = None, meta: ObjectMeta | None = None
    ) -> None:
        super().__init__(id, data=data, meta=meta)
        _checked(offset, limit)
        self.offset = offset
        self.limit = limit

    @property
    def object(self) -> Object:
        """The whole that it is a slice of."""
        return Object(self.id, data=self._data, meta=self._meta)

    @property
    def _slice(self) -> tuple[int, int | None]:
        return self.offset, self.limit

    def __headrace_json__(self) -> dict[str, Any]:
        return {"table_id": self.id, "offset": self.offset, "limit": self.limit}

    @classmethod
    def load(cls, value: Any) -> "View":
        """A View, or {"table_id": id, "offset": n, "limit": n}; whether it is there shows at the first use."""
        if isinstance(value, View):
            return value
        given: Mapping[Any, Any] = cast("Mapping[Any, Any]", value) if isinstance(value, Mapping) else {}
        if set(given) != {"table_id", "offset", "limit"} or not is_id(given["table_id"]):
            raise ValueError('a view is given as {"table_id": id, "offset": rows, "limit": rows}')
        return cls(given["table_id"], given["offset"], given["limit"])

    def __reduce__(self) -> tuple[Any, ...]:
        return (View, (self.id, self.offset, self.limit))

    def __repr__(self) -> str:
        return f"<View {self.id}: at most {self.limit} rows from {self.offset} on>"


class Views:
    """The slices of one table; see `Rows.views`."""

    def __init__(self, of: Rows, chunk_size: int) -> None:
        self._of = of
        self._chunk_size = chunk_size

    def __await__(self) -> Generator[Any, Any, list[View]]:
        return self._list().__await__()

    async def __aiter__(self) -> AsyncIterator[View]:
        for view in await self._list():
            yield view

    async def _list(self) -> list[View]:
        rows = await self._of.count()
        size = self._chunk_size
        return [self._of.view(offset, min(size, rows - offset)) for offset in range(0, rows, size)]


def _checked(offset: Any, limit: Any) -> None:
    for name, number in (("offset", offset), ("limit", limit)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise DataError(f"{name} is a number of rows from 0 on, not {number!r}")


def _refuse_behind_end(id: str, offset: int, limit: int | None, end: int) -> None:
    """At the end itself there is nothing to see, so only an empty view may stand there, or one of an empty table."""
    if offset > end or (offset == end and offset and limit):
        raise DataError(f"a view cannot begin at row {offset} of object {id}: the rows end at {end}")


def _plain(value: Any) -> Any:
    return value.__headrace_json__() if isinstance(value, Rows) else value
