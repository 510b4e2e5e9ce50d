"""Objects in chDB, in the process of the tests that test_chdb.py starts for it."""

import gc
import os
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.core.errors import DataError
from headrace.data import Data
from headrace.data.formats.clickhouse.backend import ClickHouseBackend
from headrace.testing.data_conformance import Case, DataConformance
from tests.data.clickhouse.cases import ID, NUMBERS, PlaceCases, draft, rows, write
from tests.support.chdb import python

_numbers = count()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("chdb") / "my tables"


@pytest.fixture
def url(folder: Path) -> str:
    return f"{folder.as_uri().replace('file://', 'chdb://')}?database=d{next(_numbers)}"


@pytest.fixture
def place(url: str) -> Iterator[ClickHouseBackend]:
    place = ClickHouseBackend(url)
    yield place
    place.close()


class Engine:
    """Held open, since to open it again takes longer than most tests."""

    def __init__(self, folder: Path) -> None:
        self._keeper = ClickHouseBackend(f"{folder.as_uri().replace('file://', 'chdb://')}?database=keeper")

    def hold(self) -> None:
        self._keeper.meta(ID)

    def let_go(self) -> None:
        self._keeper.close()


@pytest.fixture(scope="session")
def engine(folder: Path) -> Iterator[Engine]:
    engine = Engine(folder)
    yield engine
    engine.let_go()


@pytest.fixture
def held(engine: Engine) -> None:
    engine.hold()


@pytest.mark.usefixtures("held")
class TestChdb(PlaceCases):
    pass


class TestChdbConformance(DataConformance):
    refused = frozenset({"list_of_lists"})  # it has a null list within a list
    megabytes = 400

    @pytest.fixture(autouse=True)
    def place(self, url: str, engine: Engine, case: Case) -> None:
        self.url = url
        if case.needs_url:  # another process will open the folder
            engine.let_go()
        else:
            engine.hold()

    def make_backend(self) -> ClickHouseBackend:
        assert self.url is not None
        return ClickHouseBackend(self.url)


TRIES = """
import sys
from headrace.core.errors import DataError
from headrace.data.formats.clickhouse import ClickHouseBackend
try:
    print(ClickHouseBackend(sys.argv[1]).meta("obj_01"))
except DataError as error:
    print("refused:", error)
"""


def test_a_second_process_is_told_who_has_the_folder(place: ClickHouseBackend, url: str):
    write(place, NUMBERS.slice(0, 5))
    assert not place.shared
    with python("-c", TRIES, url) as second:
        said, _ = second.communicate(timeout=100)
    assert f"refused: {place.url}: process {os.getpid()} has this folder open" in said
    assert "one process per folder" in said
    assert len(rows(place)) == 5


def test_a_second_folder_is_told_which_is_open(place: ClickHouseBackend, engine: Engine, folder: Path, tmp_path: Path):
    engine.let_go()
    write(place, NUMBERS.slice(0, 5))
    with pytest.raises(DataError, match=f"has chDB open on {folder}"):
        ClickHouseBackend(f"chdb://{tmp_path}/other").meta(ID)
    place.close()
    other = ClickHouseBackend(f"chdb://{tmp_path}/other")
    assert other.meta(ID) is None
    other.close()
    assert len(rows(place)) == 5


def test_a_folder_that_cannot_be_made(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot be made"):
        ClickHouseBackend(f"chdb://{tmp_path}/file/data").meta(ID)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_is_told(place: ClickHouseBackend):
    write(place, NUMBERS.slice(0, 5))
    read, written = os.pipe()
    if (child := os.fork()) == 0:
        signal.alarm(60)  # a dead child, where one that hangs would be waited for
        try:
            place.meta(ID)
        except DataError as error:
            os.write(written, str(error).encode())
        finally:
            place.close()
            os.write(written, b" closed")
            os._exit(0)
    os.close(written)
    with os.fdopen(read) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    assert f"opened by process {os.getpid()}, and this one, {child}, was forked from it" in said
    assert said.endswith(" closed")
    assert len(rows(place)) == 5


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_may_forget_the_place(url: str):
    data = Data(url)
    object = data.create([{"a": 1}])
    read, written = os.pipe()
    if (child := os.fork()) == 0:
        signal.alarm(60)
        try:
            object.table()  # opens the place once more, and forgets the one of its parent
        except DataError:
            gc.collect()
            os.write(written, b"told")
        finally:
            os._exit(0)
    os.close(written)
    with os.fdopen(read) as answer:
        assert answer.read() == "told"
    os.waitpid(child, 0)
    assert object.table().to_pylist() == [{"a": 1}]
    data.close()


def test_a_null_within_is_refused_by_the_path_to_it(place: ClickHouseBackend):
    table = pa.table({"a": pa.array([[{"b": [1]}], [{"b": None}]])})
    with pytest.raises(DataError, match=r"'a\[\]\.b': ClickHouse cannot hold a null list<"):
        place.write(draft(), table.schema, table.to_batches())
    assert place.meta(ID) is None


async def test_work_over_a_table_runs_in_the_worker_itself(url: str, tmp_path: Path):
    """No child could open the folder beside the worker: each step is a thread of the worker's process."""
    from headrace.testing import adrain, override
    from tests.data import callbacks
    from tests.data.callbacks import app

    table = pa.table({"k": [n % 5 for n in range(50)], "v": pa.array(range(50), pa.int64()), "t": ["x"] * 50})
    with override(app, url=f"sqlite:///{tmp_path / 'operations.db'}"):
        vars(app)["data"] = Data(url, jobs=app.jobs)
        stored = await app.data.acreate(table)
        futures = [
            await stored.map(callbacks.doubled_table, 20),
            await stored.filter(callbacks.even_mask, 20),
            await stored.sort([("v", "descending")], 20),
            await stored.join(stored, "v", chunk_size=20),
        ]
        await adrain(app)
        doubled, even, backwards, both = [await (await future.aresult(30)).to_arrow() for future in futures]
        assert {task.pool for task in await app.tasks.alist()} == {"coroutine"}
        app.data.close()
    assert doubled["v"].to_pylist() == [2 * n for n in range(50)]
    assert even["v"].to_pylist() == list(range(0, 50, 2))
    assert backwards["v"].to_pylist() == list(reversed(range(50)))
    assert sorted(both["v"].to_pylist()) == list(range(50))
    assert both["k_right"].equals(both["k"])
