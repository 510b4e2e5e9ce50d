"""`Data`: the objects of one place. `app.data` is the one of an app."""

import dataclasses
import os
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from headrace.core.durations import Duration, as_timedelta
from headrace.core.errors import DataError, NotFound
from headrace.data.backend import Backend, Draft, ObjectMeta
from headrace.data.ids import is_id, new_id
from headrace.data.objects import Object
from headrace.data.places import is_remote, local_path, open_backend
from headrace.data.sources import SQL, SchemaLike, Source
from headrace.data.threads import blocking, in_thread
from headrace.executors.context import running
from headrace.store.connect import masked_url

if TYPE_CHECKING:
    from headrace.data.operations.launching import Launcher

type Keep = Duration | Literal["forever"]
DEFAULT_KEEP = timedelta(days=7)
# Two threads at once are to have one backend.
_opening = threading.Lock()


def _after_fork() -> None:
    """Another thread may have held it at the moment of the fork; here it is nobody's."""
    global _opening
    _opening = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


class Data:
    """The objects of one place, as `app.jobs` are the jobs of one store: `create` blocks, `acreate` is for async code.

    `keep` is how long an object stays that does not say so itself; None is for ever. `owner` stands for the ledger
    whose jobs and tasks make them, and `jobs` runs work over them. Nothing is opened before the first use.
    """

    def __init__(
        self,
        url: str,
        *,
        keep: Duration | None = DEFAULT_KEEP,
        owner: str | None = None,
        jobs: "Launcher | None" = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        # A relative path belongs to the working directory of now, not to the one of the first use.
        self._url = url if is_remote(url) else local_path(url).as_uri()
        self.url = masked_url(self._url)
        self.keep = None if keep is None else as_timedelta(keep, name="keep")
        self.owner = owner
        self.jobs = jobs
        self._clock = clock
        self._opened: tuple[int, Backend] | None = None

    @property
    def backend(self) -> Backend:
        """Opened at the first use, and once more in the child of a fork: connections are not shared."""
        process = os.getpid()
        opened = self._opened
        if opened is None or opened[0] != process:
            with _opening:
                opened = self._opened
                if opened is None or opened[0] != process:
                    opened = self._opened = process, open_backend(self._url)
        return opened[1]

    @blocking
    def create(
        self,
        source: Source,
        *,
        name: str | None = None,
        keep: Keep | None = None,
        schema: SchemaLike | None = None,
        id: str | None = None,
        replace: bool = False,
    ) -> Object:
        """Store a table and give its handle. Rows, Parquet, CSV and SQL are streamed.

        `keep`: it stays when its job fails, and for so long. `id` and `replace` are for a task that may be repeated:
        its object goes by an id that it knows beforehand, and the last complete one wins.
        """
        draft = self._draft(name, keep, id)
        if isinstance(source, SQL) and source.where is None:
            if source.parameters is not None or schema is not None:
                raise DataError("a query that the place runs itself takes no parameters and no schema")
            return Object(draft.id, data=self, meta=self.backend.query(draft, source.query, replace=replace))
        backend = self.backend  # says which library is missing, if one is
        from headrace.data.formats.incoming import opened

        with opened(source, schema) as incoming:
            meta = backend.write(draft, incoming.schema, incoming.batches, replace=replace)
        return Object(meta.id, data=self, meta=meta)

    @blocking
    def concat(
        self,
        parts: Sequence[Object | str],
        *,
        name: str | None = None,
        keep: Keep | None = None,
        schema: SchemaLike | None = None,
        id: str | None = None,
        replace: bool = False,
    ) -> Object:
        """One object of the rows of others, in this order, which can be dropped afterwards.

        Parts of the same columns are not read for it. Where columns differ they are widened: to the type that holds
        both (of no values and text: text; of int64 and double: double), and to nulls where a part has no such column;
        DataError when there is no such type. `schema` says what they are to become, and is that of no parts at all.
        """
        draft = self._draft(name, keep, id)
        metas = [self.meta(part if isinstance(part, str) else part.id) for part in parts]
        backend = self.backend
        from headrace.data.formats.schemas import checked_schema, widened, wider_schema

        wanted = checked_schema(schema) if schema is not None else wider_schema([meta.schema for meta in metas])
        if metas and all(meta.schema.equals(wanted) for meta in metas):
            meta = backend.concat(draft, [meta.id for meta in metas], replace=replace)
        else:
            batches = (widened(batch, wanted) for part in metas for batch in backend.read(part.id))
            meta = backend.write(draft, wanted, batches, replace=replace)
        return Object(meta.id, data=self, meta=meta)

    def write_run(self, schema: Any, parts: Sequence[Sequence[Any]], *, id: str) -> ObjectMeta:
        """Blocks, for a task that may be repeated: rows that are read a part at a time (`Backend.read_part`)."""
        return self.backend.write_run(self._draft(None, None, id), schema, parts, replace=True)

    @blocking
    def open(self, id: str) -> Object:
        """The object of that id; NotFound when there is none."""
        return Object(id, data=self, meta=self.meta(id))

    @blocking
    def list(self) -> "list[ObjectMeta]":
        """What is known of every object, oldest first."""
        return list(self.backend.list())

    @blocking
    def drop(self, object: "Object | str") -> bool:
        """Remove an object; whether there was one."""
        id = object if isinstance(object, str) else object.id
        return is_id(id) and self.backend.drop(id)

    acreate = in_thread(create)
    aconcat = in_thread(concat)
    aopen = in_thread(open)
    alist = in_thread(list)
    adrop = in_thread(drop)

    def close(self) -> None:
        """Let go of connections; the next use opens them again."""
        if self._opened is not None and self._opened[0] == os.getpid():
            self._opened[1].close()

    def new_id(self) -> str:
        return new_id(self._clock().timestamp())

    def meta(self, id: Any) -> ObjectMeta:
        """Blocks, for code on a thread. NotFound when there is no such object."""
        found = self.backend.meta(id) if is_id(id) else None
        if found is None:
            raise NotFound(
                f"there is no object {id!r} in {self.url}: it was never completed, has expired or was dropped"
            )
        return found

    def __repr__(self) -> str:
        return f"<Data {self.url}>"

    def _draft(self, name: str | None, keep: Keep | None, id: str | None) -> Draft:
        if id is not None and not is_id(id):
            raise DataError(f"{id!r} cannot be the id of an object: write obj_ and small letters, digits or _")
        now = self._clock()
        if keep == "forever":
            stays = None
        else:
            stays = self.keep if keep is None else as_timedelta(keep, name="keep")
        context = running.get()
        draft = Draft(
            id=id or new_id(now.timestamp()),
            name=name,
            created_at=now,
            kept=keep is not None,
            expires_at=None if stays is None else now + stays,
        )
        if context is None:
            return draft
        return dataclasses.replace(draft, owner=self.owner, job=context.job_id, task=context.task_id)
