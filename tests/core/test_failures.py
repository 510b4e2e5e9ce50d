"""Errors that are alike are one failure."""

import pytest

from headrace.core.failures import failure_key, likeness


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("user 17 has no mail", "user 4711 has no mail"),
        ("took 1.5 s", "took 31,25 s"),
        ("no file '/a/b'", "no file '/c'"),
        ('key "x" is missing', 'key "y z" is missing'),
        ("at 0x7f12ab", "at 0xdeadbeef"),
        ("job 0af76519-16cd-43dd-8448-eb211c80319c", "job b7ad6b71-6920-3331-0000-000000000000"),
        ("digest 0af7651916cd43dd", "digest b7ad6b7169203331"),
        ("since 2026-05-01T08:00:00Z", "since 2027-01-02 03:04:05.678+02:00"),
        ("one\nsecond line", "one\nanother"),
        ("  padded", "padded"),
    ],
)
def test_what_varies_is_taken_out(first: str, second: str) -> None:
    assert likeness(first) == likeness(second)
    assert failure_key("ValueError", first) == failure_key("ValueError", second)


def test_what_differs_stays_apart() -> None:
    assert likeness("user 17 has no mail") == "user # has no mail"
    assert failure_key("A", "x") != failure_key("B", "x")
    assert failure_key("A", "x") != failure_key("A", "y")
    assert failure_key(None, None) == failure_key("", "")
    assert likeness("defaced cafe") == "defaced cafe"  # words that could be digits of a digest
    assert len(likeness("x " * 10_000)) <= 300


def test_a_key_is_the_same_in_every_process() -> None:
    assert failure_key("builtins.ValueError", "user 17") == "d8b019c0aa4cd8e64bf6"
    assert failure_key("a", "\ud800").isalnum()
