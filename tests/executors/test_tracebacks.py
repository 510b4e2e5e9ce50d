"""The text of a traceback is what Python itself would print, kept or not."""

import traceback
from collections.abc import Callable

import pytest

from headrace.executors import tracebacks
from headrace.executors.tracebacks import traceback_of


def plain() -> None:
    raise ValueError("one\ntwo")


def of_two_places(second: bool) -> None:
    if second:
        raise KeyError("second")
    raise KeyError("first")


def first_place() -> None:
    of_two_places(False)


def second_place() -> None:
    of_two_places(True)


def with_cause() -> None:
    try:
        plain()
    except ValueError as error:
        raise RuntimeError("because") from error


def with_context() -> None:
    try:
        plain()
    except ValueError:
        raise RuntimeError("meanwhile")  # noqa: B904


def with_hidden_context() -> None:
    try:
        plain()
    except ValueError:
        raise RuntimeError("instead") from None


def with_notes() -> None:
    error = OSError("disk")
    error.add_note("it was full")
    raise error


def in_a_group() -> None:
    raise ExceptionGroup("both", [ValueError("a"), KeyError("b")])


def misspelt() -> None:
    length = 3
    assert length
    print(lenght)  # pyright: ignore[reportUndefinedVariable]  # noqa: F821


def missing() -> None:
    print("".joined())  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]


def unreadable() -> None:
    compile("a b", "here", "exec")


def deep(n: int = 60) -> None:
    if not n:
        raise RecursionError("deep")
    deep(n - 1) if n % 2 else (deep(n - 1),)


def raised_by(function: Callable[[], None]) -> BaseException:
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("it raises")


EVERY = [
    plain, first_place, second_place, with_cause, with_context, with_hidden_context, with_notes, in_a_group, misspelt,
    missing, unreadable, deep,
]  # fmt: skip


@pytest.mark.parametrize("function", EVERY)
def test_the_text_is_what_python_prints(function: Callable[[], None]) -> None:
    """At first, and when its stack is known."""
    for _ in range(2):
        error = raised_by(function)
        assert traceback_of(error) == "".join(traceback.format_exception(error))


def test_the_same_stack_says_what_each_error_says() -> None:
    def says(text: str) -> None:
        raise ValueError(text)

    texts = [traceback_of(raised_by(lambda text=text: says(text))) for text in ("one", "two")]
    assert [text.splitlines()[-1] for text in texts] == ["ValueError: one", "ValueError: two"]
    assert texts[0].splitlines()[:-1] == texts[1].splitlines()[:-1]


def test_what_is_kept_is_bounded_and_holds_no_frame() -> None:
    """Every stack here is new; what a task had in its hands is not kept with it."""
    for number in range(1000):
        scope: dict[str, Callable[[], None]] = {}
        exec(f"def fails():\n    raise ValueError({number})\n", scope)
        assert f"ValueError: {number}" in traceback_of(raised_by(scope["fails"]))
    kept = tracebacks._lines
    assert 0 < len(kept) <= 256
    assert all(type(part).__name__ in {"str", "list"} for entry in kept.values() for part in entry)


def test_an_error_that_cannot_be_shown_is_one_all_the_same() -> None:
    class Hostile(Exception):
        def __str__(self) -> str:
            raise SystemExit(3)

    def fails() -> None:
        raise Hostile

    text = traceback_of(raised_by(fails))
    assert "raise Hostile" in text
    assert text.endswith("Hostile: <exception str() failed>\n")
