"""Clients of ClickHouse, lent to one caller at a time. The only file that imports the drivers.

A client does one thing at a time, and several threads use one backend: each borrows a client, idle ones are kept. chDB
is one engine per process and one process per folder, and it does not survive a fork; here that becomes a sentence.
"""

import contextlib
import fcntl
import os
import re
import threading
import weakref
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from headrace.core.errors import DataError, MissingExtra, StoreUnavailable
from headrace.data.formats.clickhouse.address import Address

# Busy, out of memory, cut off or read-only for a while: the same act may succeed later.
_TRANSIENT = {159, 202, 203, 209, 210, 236, 241, 242, 243, 252, 279, 319, 394, 439, 999}
UNKNOWN_TABLE, TABLE_EXISTS, UNKNOWN_DATABASE, BAD_PASSWORD = 60, 57, 81, 516
_SETTINGS = {
    "async_insert": 0,  # what is acknowledged is stored, not gathered
    "max_query_size": 1 << 24,  # a wide table's definition passes the 256 KiB that are usual
    "output_format_arrow_string_as_string": 1,
    "query_plan_remove_redundant_sorting": 0,  # the order of a query is what its rows are numbered by
}
# Compression is for a wire, and there is none. What ClickHouse gathers of a SELECT before it stores it is our memory.
_IN_PROCESS = {"output_format_arrow_compression_method": "none", "min_insert_block_size_bytes": 32 << 20}

_engine_guard = threading.Lock()
_engine_opened_by: int | None = None  # the process that opened chDB; a child that it forks inherits the number

# Clients of the process that this one was forked from. They are kept, not closed: an engine waits for ever for its
# threads, which a fork does not copy, when the garbage collector closes it here.
_inherited: list[Any] = []


class Refused(DataError):
    """ClickHouse refused a statement; `code` is its number for the reason."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[type["Refused"], tuple[str, int]]:
        return (Refused, (str(self), self.code))


class Connections:
    def __init__(self, address: Address) -> None:
        self.address = address
        self._guard = threading.Lock()
        self._idle: list[Any] = []
        self._opened_by = os.getpid()
        self._closed_times = 0
        weakref.finalize(self, _let_go, self._idle, self._opened_by).atexit = False

    @contextlib.contextmanager
    def client(self) -> Generator[Any]:
        """A client for one statement. What the driver raises comes out as StoreUnavailable or Refused."""
        client, lent_after = self._borrow()
        try:
            with translated(self.address):
                yield client
        except StoreUnavailable:
            client.close()
            raise
        except BaseException:
            self._give_back(client, lent_after)
            raise
        else:
            self._give_back(client, lent_after)

    def close(self) -> None:
        with self._guard:
            idle = self._idle[:]
            self._idle.clear()
            self._closed_times += 1
            opened_by, self._opened_by = self._opened_by, os.getpid()
        _let_go(idle, opened_by)

    def _borrow(self) -> tuple[Any, int]:
        _refuse_forked(self.address)
        with self._guard:
            if self._opened_by != os.getpid():
                _let_go(self._idle[:], self._opened_by)
                self._idle.clear()
                self._opened_by = os.getpid()
            if self._idle:
                return self._idle.pop(), self._closed_times
            closed_times = self._closed_times
        return connect(self.address), closed_times

    def _give_back(self, client: Any, lent_after: int) -> None:
        with self._guard:
            if lent_after == self._closed_times:
                self._idle.append(client)
                return
        client.close()


def _let_go(clients: list[Any], opened_by: int) -> None:
    if opened_by != os.getpid():
        _inherited.extend(clients)
        return
    for client in clients:
        client.close()


def require_drivers(address: Address) -> None:
    """Looks, and does not import: that takes a while, and is for the first use."""
    needed = ["clickhouse_connect"] if address.path is None else ["clickhouse_connect", "chdb"]
    if missing := [name for name in needed if find_spec(name) is None]:
        raise MissingExtra(
            f"{address.url} needs {' and '.join(missing)}, not installed here: pip install 'headrace[clickhouse]'"
        )


def connect(address: Address) -> Any:
    """A new client."""
    import clickhouse_connect

    driver: Any = cast("Any", clickhouse_connect)
    if address.path is not None:
        return _open_engine(driver, address)
    with translated(address):
        return driver.get_client(
            host=address.host,
            port=address.port,
            username=address.user,
            password=address.password,
            database=address.database,
            interface="https" if address.secure else "http",
            settings=_SETTINGS,
            autogenerate_session_id=False,  # a session takes one query at a time, even of other clients
            client_name="headrace",
            **address.options,
        )


def _open_engine(driver: Any, address: Address) -> Any:
    global _engine_opened_by
    path = Path(address.path or "")
    with _engine_guard:
        _refuse_forked(address)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"{address.url}: the folder cannot be made: {error}") from None
        try:
            settings = {**_SETTINGS, **_IN_PROCESS}
            client = driver.get_client(interface="chdb", path=str(path), settings=settings)
        except driver.driver.exceptions.ProgrammingError as error:
            raise _why_not_opened(path, address, str(error)) from None
        _engine_opened_by = os.getpid()
    with translated(address):
        # Not chDB's `default`: that is not of the kind that renames and exchanges tables atomically.
        client.command(f"CREATE DATABASE IF NOT EXISTS `{address.database}` ENGINE = Atomic")
        client.database = address.database
    return client


def _refuse_forked(address: Address) -> None:
    if address.path is not None and _engine_opened_by not in (None, os.getpid()):
        raise DataError(
            f"{address.url}: chDB was opened by process {_engine_opened_by}, and this one, {os.getpid()}, was forked "
            "from it: the engine does not survive a fork. Use it from one process, or use a ClickHouse server"
        )


def _why_not_opened(path: Path, address: Address, words: str) -> DataError:
    if other := re.search(r"already initialized with path '(.*?)'", words):
        return DataError(
            f"{address.url}: this process has chDB open on {other[1]}, and a process has one chDB folder at a time; "
            "close the other, or use its folder with ?database=another_name"
        )
    if holder := _holder(path / "status"):
        return DataError(
            f"{address.url}: {holder} has this folder open, and chDB takes one process per folder. Run one "
            "worker process and use the data from it alone, or use a ClickHouse server (clickhouse://...)"
        )
    return DataError(f"{address.url}: chDB cannot open the folder: {words}")


def _holder(status: Path) -> str | None:
    """Who holds the engine's lock on its folder, if anybody does."""
    try:
        with status.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                found = re.search(rb"PID: (\d+)", file.read())
                return f"process {int(found[1])}" if found else "another process"
    except OSError:
        pass
    return None


@contextlib.contextmanager
def translated(address: Address) -> Generator[None]:
    from clickhouse_connect.driver.exceptions import ClickHouseError, OperationalError

    try:
        yield
    except (ClickHouseError, OSError) as error:
        words = str(error)
        if address.password:  # no message of the driver has it today
            words = words.replace(address.password, "***")
        code = re.search(r"\bCode: (\d+)", words)
        if code is not None:
            raise _refusal(int(code[1]), words[code.start() :], address) from None
        if isinstance(error, OperationalError | OSError):
            raise StoreUnavailable(f"{address.url} cannot be reached: {words}") from None
        raise Refused(f"{address.url}: {words}", 0) from None


def _refusal(code: int, words: str, address: Address) -> Exception:
    if code in _TRANSIENT:
        return StoreUnavailable(f"{address.url} cannot do this now: {words}")
    if code == UNKNOWN_DATABASE:
        return Refused(f"{address.url}: there is no database {address.database}; create it once, ENGINE = Atomic", code)
    if code == BAD_PASSWORD:
        return Refused(f"{address.url} refused the user or the password", code)
    return Refused(f"{address.url}: {words}", code)
