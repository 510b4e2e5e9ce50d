"""Objects on a ClickHouse server, through the driver's HTTP client. The server is a bridge to chDB."""

import pickle
import traceback
from collections.abc import Iterator
from itertools import count
from urllib.parse import quote

import pytest

from headrace.core.errors import DataError, StoreUnavailable
from headrace.data.formats.clickhouse.backend import ClickHouseBackend
from headrace.data.formats.clickhouse.connection import Refused
from headrace.testing.data_conformance import Case, DataConformance
from tests.data.clickhouse.cases import ALL, ID, NUMBERS, PlaceCases, numbers, rows, write
from tests.support.chdb import PASSWORD, USER

pytestmark = pytest.mark.slow
_numbers = count()


def url(port: int, database: str, *, user: str = USER, password: str = PASSWORD) -> str:
    return f"clickhouse://{user}:{quote(password, safe='')}@127.0.0.1:{port}/{database}"


@pytest.fixture
def database(clickhouse_port: int) -> str:
    name = f"d{next(_numbers)}"
    place = ClickHouseBackend(url(clickhouse_port, "default"))
    with place._connections.client() as client:
        client.command(f"CREATE DATABASE {name} ENGINE = Atomic")
    place.close()
    return name


@pytest.fixture
def place(clickhouse_port: int, database: str) -> Iterator[ClickHouseBackend]:
    place = ClickHouseBackend(url(clickhouse_port, database))
    yield place
    place.close()


class TestServer(PlaceCases):
    pass


class TestServerConformance(DataConformance):
    refused = frozenset({"list_of_lists"})  # it has a null list within a list

    @classmethod
    def cases(cls) -> list[Case]:
        # Memory is the engine's affair: that case runs on chDB, where the engine is in the process.
        return [case for case in super().cases() if case.concern != "memory"]

    @pytest.fixture(autouse=True)
    def place(self, clickhouse_port: int, database: str) -> None:
        self.url = url(clickhouse_port, database)

    def make_backend(self) -> ClickHouseBackend:
        assert self.url is not None
        return ClickHouseBackend(self.url)


def test_two_use_it_at_once(place: ClickHouseBackend, clickhouse_port: int, database: str):
    other = ClickHouseBackend(url(clickhouse_port, database))
    write(other, NUMBERS.slice(0, 5))
    other.close()
    assert place.shared
    assert len(rows(place)) == 5


def test_an_insert_whose_answer_was_lost_is_there_once(clickhouse_port: int, database: str):
    """The driver sends it again, and does not know that it was done."""
    place = ClickHouseBackend(url(clickhouse_port, database, user="cut_off"))
    assert write(place, NUMBERS).rows == ALL
    assert numbers(place) == list(range(ALL))
    place.close()


@pytest.mark.parametrize(
    ("error", "words", "other"),
    [
        (DataError, "refused the user or the password", {"password": PASSWORD + "hidden"}),
        (DataError, "there is no database nowhere", {"database": "nowhere"}),
        (StoreUnavailable, "cannot be reached", {"port": 1}),
    ],
)
def test_what_is_wrong_is_said_without_the_password(
    clickhouse_port: int, error: type[Exception], words: str, other: dict[str, str]
):
    place = ClickHouseBackend(url(**{"port": clickhouse_port, "database": "default", **other}))
    with pytest.raises(error, match=words) as caught:
        place.meta(ID)
    shown = "".join(traceback.format_exception(caught.value))
    assert f"{USER}:***@127.0.0.1" in shown
    assert PASSWORD not in shown
    assert quote(PASSWORD, safe="") not in shown


def test_a_refusal_goes_from_process_to_process():
    refused = pickle.loads(pickle.dumps(Refused("no", 60)))
    assert (str(refused), refused.code) == ("no", 60)
