"""From a URL to what is connected to; a password appears nowhere."""

import os
import traceback
from pathlib import Path

import pytest

from headrace.core.errors import MissingExtra, SettingsError
from headrace.data.formats.clickhouse import connection
from headrace.data.formats.clickhouse.address import Address, parse
from headrace.data.formats.clickhouse.backend import ClickHouseBackend


def test_a_folder_is_chdb(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    address = parse(f"chdb://{tmp_path}/link/")
    assert address == Address(path=os.path.realpath(tmp_path / "real"), database="headrace")
    assert parse(f"chdb://{tmp_path}/real/../real").path == address.path


def test_a_folder_with_a_space_and_a_database(tmp_path: Path):
    address = parse(f"chdb://{tmp_path}/my%20data?database=other")
    assert (address.path, address.database) == (str(tmp_path.resolve() / "my data"), "other")
    assert parse(address.url) == address


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("clickhouse://db.example/sales", {"user": "default", "password": "", "port": 8123, "secure": False}),
        ("clickhouses://db.example/sales", {"port": 8443, "secure": True}),
        ("clickhouse://ann:x%40%2F%3Ay@db.example:9000/sales", {"user": "ann", "password": "x@/:y", "port": 9000}),
        ("clickhouse://ann@db.example/", {"database": "default"}),
        ("clickhouse://[::1]:8124/sales", {"host": "::1", "port": 8124}),
        (
            "clickhouses://h/d?verify=false&ca_cert=/etc/ca.pem&connect_timeout=3&send_receive_timeout=900",
            {"options": {"verify": False, "ca_cert": "/etc/ca.pem", "connect_timeout": 3, "send_receive_timeout": 900}},
        ),
    ],
)
def test_a_server(url: str, expected: dict[str, object]):
    address = parse(url)
    assert {name: getattr(address, name) for name in expected} == expected
    assert address.path is None


def test_the_driver_is_given_what_the_url_says(monkeypatch: pytest.MonkeyPatch):
    clickhouse_connect = pytest.importorskip("clickhouse_connect")
    given: dict[str, object] = {}
    monkeypatch.setattr(clickhouse_connect, "get_client", lambda **arguments: given.update(arguments))
    connection.connect(parse("clickhouses://ann:p%40ss@db.example/sales?verify=true&connect_timeout=3"))
    settings = given.pop("settings")
    assert isinstance(settings, dict)
    assert settings["async_insert"] == 0
    assert given == {
        "host": "db.example",
        "port": 8443,
        "username": "ann",
        "password": "p@ss",
        "database": "sales",
        "interface": "https",
        "autogenerate_session_id": False,
        "client_name": "headrace",
        "verify": True,
        "connect_timeout": 3,
    }


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("chdb://folder", "three slashes"),
        ("chdb:///", "three slashes"),
        ("chdb:///data?database=a-b", "letters, digits"),
        ("chdb:///data?secure=1", "unknown secure"),
        ("clickhouse:///sales", "no host"),
        ("clickhouse://ann:hidden@host/sales?password=hidden", "unknown password"),
        ("clickhouse://ann:hidden@host/a/b", "letters, digits"),
        ("clickhouse://ann:hidden@host/sales?verify=hidden", "true or false"),
        ("clickhouse://ann:hidden@host/sales?connect_timeout=0", "seconds"),
        # Not percent-encoded, so the password ends where a path or a port begins.
        ("clickhouse://ann:hidden/x@host/sales", "percent-encode"),
        ("clickhouse://ann:x@host:hidden/sales", "percent-encode"),
        ("clickhouse://ann:hidden[x@host/sales", "percent-encode"),
        ("mysql://ann:hidden@host/sales", "no ClickHouse URL"),
    ],
)
def test_a_url_that_is_not_understood(url: str, words: str):
    with pytest.raises(SettingsError, match=words) as caught:
        parse(url)
    assert "hidden" not in "".join(traceback.format_exception(caught.value))


def test_a_password_is_in_no_repr(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connection, "find_spec", lambda name: object())
    place = ClickHouseBackend("clickhouse://ann:hidden@db.example/sales")
    assert place.url == "clickhouse://ann:***@db.example:8123/sales"
    assert place.shared
    for shown in (repr(place), repr(parse("clickhouse://ann:hidden@db.example/sales"))):
        assert "ann" in shown
        assert "hidden" not in shown


def test_a_missing_driver_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(connection, "find_spec", lambda name: None if name == "chdb" else object())
    with pytest.raises(MissingExtra, match=r"needs chdb, .*pip install 'headrace\[clickhouse\]'"):
        ClickHouseBackend(f"chdb://{tmp_path}/data")
    assert not (tmp_path / "data").exists()
    ClickHouseBackend("clickhouse://db.example/sales")  # a server needs no engine here
