"""Arguments and results keep their types on the way through the ledger."""

import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from headrace import App, Cancel, Context, Limit, Resource, Snooze, injected
from headrace.core.errors import ArgumentError, OptionError, PayloadError


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    at: datetime


class Person(BaseModel):
    name: str
    born: date
    points: list[Point] = []


class Settings(TypedDict):
    depth: int
    label: str


class Pair(NamedTuple):
    a: int
    b: str


@pytest.fixture
def app() -> App:
    return App("sqlite://")


def travel(app: App, function, *args, **kwargs):
    """What a worker would call the function with."""
    task = app.task(name=f"t{len(app.registry)}")(function)
    return task.load_arguments(task.prepare(*args, **kwargs).arguments)


NOW = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def rich(
    when: datetime, day: date, identity: uuid.UUID, price: Decimal, colour: Colour, point: Point, person: Person,
    settings: Settings, pair: Pair, span: timedelta, maybe: int | None, words: set[str], blob: bytes,
    mode: Literal["a", "b"], size: Annotated[int, Field(gt=0)],
) -> None: ...  # fmt: skip


RICH: dict[str, Any] = {
    "when": NOW,
    "day": date(2030, 1, 2),
    "identity": uuid.UUID(int=7),
    "price": Decimal("0.1000000000000000000001"),
    "colour": Colour.BLUE,
    "point": Point(1, NOW),
    "person": Person(name="Ada", born=date(1815, 12, 10), points=[Point(2, NOW)]),
    "settings": {"depth": 3, "label": "x"},
    "pair": Pair(1, "b"),
    "span": timedelta(hours=1, microseconds=3),
    "maybe": None,
    "words": {"a", "b"},
    "blob": b"bytes",
    "mode": "b",
    "size": 3,
}


def test_rich_types_arrive_as_they_were(app: App):
    args, kwargs = travel(app, rich, **RICH)
    assert args == ()
    assert kwargs == RICH
    assert {name: type(value) for name, value in kwargs.items()} == {name: type(value) for name, value in RICH.items()}


def test_positional_arguments_defaults_and_what_was_not_given(app: App):
    def function(a: int, b: str = "x", *, c: bool = False) -> None: ...

    assert travel(app, function, 1) == ((), {"a": 1})
    assert travel(app, function, 1, "y", c=True) == ((), {"a": 1, "b": "y", "c": True})


def test_rest_arguments(app: App):
    def function(a: int, b: int = 2, *rest: datetime, **more: int) -> None: ...

    args, kwargs = travel(app, function, 1, 5, NOW, NOW, z=3)
    assert (args, kwargs) == ((1, 5, NOW, NOW), {"z": 3})
    assert travel(app, function, 1, z=3) == ((), {"a": 1, "z": 3})


def test_positional_only_arguments(app: App):
    def function(a: int, b: int = 2, /, c: int = 3) -> None: ...

    assert travel(app, function, 1, c=4) == ((1,), {"c": 4})
    assert travel(app, function, 1, 5) == ((1, 5), {})


@pytest.mark.requirement("D51")
@given(text=st.text(), nested=st.recursive(st.none() | st.booleans() | st.text(), st.lists, max_leaves=10))
def test_text_reaches_the_task_unchanged(text: str, nested: Any):
    """D51: quotes, newlines, unicode, NUL and control characters come back as they went in."""
    app = App("sqlite://")

    def function(a: str, b: Any, c) -> None: ...

    try:
        text.encode()
    except UnicodeEncodeError:
        with pytest.raises(ArgumentError):
            travel(app, function, text, nested, text)
        return
    assert travel(app, function, text, nested, [text]) == ((), {"a": text, "b": nested, "c": [text]})


@given(
    numbers=st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"])), st.floats(allow_nan=False, allow_infinity=False)
    ),
    whole=st.integers(-(2**63), 2**63 - 1),
    instant=st.datetimes(timezones=st.just(UTC)),
    money=st.decimals(allow_nan=False, allow_infinity=False),
)
def test_numbers_and_instants_reach_the_task_unchanged(numbers, whole, instant, money):
    app = App("sqlite://")

    def function(numbers: dict[str, float], whole: int, instant: datetime, money: Decimal) -> None: ...

    _, kwargs = travel(app, function, numbers, whole, instant, money)
    assert kwargs == {"numbers": numbers, "whole": whole, "instant": instant, "money": money}


@pytest.mark.parametrize(
    ("args", "kwargs", "said"),
    [
        ((), {}, "'a' is missing"),
        ((1, 2, 3), {}, "takes 2 positional arguments"),
        ((1,), {"a": 2}, "'a' was given twice"),
        ((1,), {"c": 2}, "no parameter 'c'"),
        (("one",), {}, "'a': input should be a valid integer"),
        ((1,), {"b": object()}, "'b'"),
        ((2**70,), {}, "64 bits"),
    ],
)
def test_wrong_arguments_name_the_task_and_the_parameter(app: App, args, kwargs, said):
    @app.task(name="mine")
    def function(a: int, b: str = "x") -> None: ...

    with pytest.raises(ArgumentError) as refused:
        function.prepare(*args, **kwargs)
    assert said in str(refused.value)
    assert "task mine" in str(refused.value)


@pytest.mark.requirement("D46")
@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, {1: 2}, float("nan"), float("inf"), {"deep": [float("nan")]}, b"x", "\ud800", 2**70, print],
)
def test_what_json_cannot_carry_is_refused(app: App, value):
    """D46: refused when it is enqueued, whether or not the parameter is annotated."""

    @app.task(name="mine")
    def function(a, b: Any = None) -> None: ...

    for arguments in ((value,), (1, value)):
        with pytest.raises(ArgumentError, match="task mine"):
            function.prepare(*arguments)


@pytest.mark.requirement("D47")
def test_strict_can_be_turned_off():
    """D47: what JSON cannot carry then goes as its text."""
    app = App("sqlite://", strict=False)

    @app.task(name="mine")
    def function(a) -> None: ...

    assert function.prepare({1, 2}).arguments == '{"a":[1,2]}'
    assert "object object" in function.prepare(object()).arguments


NAIVE = datetime(2030, 1, 1)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (datetime, NAIVE),
        (Any, NAIVE),
        (list[datetime], [NOW, NAIVE]),
        (dict[str, Any], {"a": {"b": NAIVE}}),
        (Point, Point(1, NAIVE)),
        (Person, Person(name="x", born=date(2000, 1, 1), points=[Point(1, NAIVE)])),
        (dict, {"a": (NAIVE,)}),
    ],
)
def test_naive_datetimes_are_refused_wherever_they_hide(app: App, annotation, value):
    def function(a) -> None: ...

    function.__annotations__["a"] = annotation
    task = app.task(name="mine")(function)
    with pytest.raises(ArgumentError, match="naive"):
        task.prepare(value)


def test_an_aware_datetime_of_another_zone_is_the_same_instant(app: App):
    def function(a: datetime) -> None: ...

    there = NOW.astimezone(timezone(timedelta(hours=5)))
    assert travel(app, function, there)[1]["a"] == NOW


def test_annotations_are_read_at_the_first_use(app: App):
    @app.task(name="later")
    def function(a: "DefinedBelow") -> None: ...

    assert function.load_arguments(function.prepare(DefinedBelow(x=1)).arguments)[1] == {"a": DefinedBelow(x=1)}


class DefinedBelow(BaseModel):
    x: int


def test_an_annotation_that_cannot_be_found_or_validated_is_explained(app: App):
    @app.task(name="mine")
    def function(a: "Nowhere") -> None: ...  # noqa: F821

    with pytest.raises(OptionError, match="Nowhere"):
        function.prepare(1)

    class Opaque: ...

    @app.task(name="other")
    def opaque(a: Opaque) -> None: ...

    opaque.function.__annotations__["a"] = Opaque
    with pytest.raises(OptionError, match="Resource"):
        opaque.prepare(Opaque())


def test_stored_arguments_that_no_longer_fit_are_an_argument_error(app: App):
    @app.task(name="mine")
    def function(a: int) -> None: ...

    for text in ('{"b":1}', '{"a":"x"}', "[]", "no json"):
        with pytest.raises(ArgumentError, match="task mine"):
            function.load_arguments(text)


class Pool: ...


def test_injected_parameters_are_not_part_of_the_payload(app: App):
    @app.task(name="mine")
    def function(
        a: int, pool: Resource[Pool] = injected, context: Context = injected, other: Resource[dict[str, int]] = injected
    ) -> None: ...

    pool, context = Pool(), object()
    assert function.prepare(1).arguments == '{"a":1}'
    found = function.inject(context, {"db": pool, "other": {"x": 1}})
    assert found == {"pool": pool, "context": context, "other": {"x": 1}}
    assert function.inject(context, {"pool": pool, "db": Pool(), "other": {}})["pool"] is pool
    with pytest.raises(ArgumentError, match="not part of the payload"):
        function.prepare(1, pool=pool)
    with pytest.raises(ArgumentError, match="no resource for the parameter 'pool'"):
        function.inject(context, {"other": {}})
    with pytest.raises(ArgumentError, match="2 resources"):
        function.inject(context, {"a": Pool(), "b": Pool(), "other": {}})


def test_a_call_that_was_written_elsewhere_is_checked(app: App):
    """As the worker would, by name; of one whose results are to come, what is there."""

    @app.task(name="mine", limit=Limit(2, key="of-{who}"))
    def function(
        a: int, /, *rest: int, who: str = "all", day: date | None = None, context: Context = injected, **more: Any
    ) -> None: ...

    check = function.arguments.check
    assert check('{"a":1,"*":[2],"day":"2026-05-01","more":1}') == {
        "a": 1,
        "*": [2],
        "more": 1,
        "day": date(2026, 5, 1),
    }
    for text in ("{}", '{"a":"x"}', '{"a":1,"*":["x"]}', '{"a":1,"day":"x"}', "[]", "no json", '{"a":1,"context":1}'):
        with pytest.raises(ArgumentError, match="task mine"):
            check(text)
    assert check('{"who":"ada"}', {"a"}) == {"who": "ada"}
    assert check('{"a":1,"*":[null]}', {"*"}) == {"a": 1}
    for text in ('{"who":7}', "[]", "no json", '{"who":"ada","context":1}'):
        with pytest.raises(ArgumentError, match="task mine"):
            check(text, {"a"})
    with pytest.raises(ArgumentError, match="'a' is missing"):
        check("{}", {"*"})
    assert function.gates(check('{"a":1}')) == function.prepare(1).gates
    assert [gate.key for gate in function.gates(check('{"a":1,"who":"ada"}'))] == ["of-ada"]


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, 3),
        (Point, Point(1, NOW)),
        (list[Person], [Person(name="x", born=date(2000, 1, 1))]),
        (datetime | None, NOW),
        (tuple[int, uuid.UUID], (1, uuid.UUID(int=3))),
        (Point | Snooze, Point(1, NOW)),
        (None, None),
        (Any, {"a": [1, None]}),
        (Cancel, {"x": 1}),
        (dict[Colour, Decimal], {Colour.RED: Decimal("1.10")}),
    ],
)
def test_results_come_back_typed(app: App, annotation, value):
    def function() -> None: ...

    function.__annotations__["return"] = annotation
    task = app.task(name="mine")(function)
    assert task.result_loader.load(task.dump_result(value)) == value


@pytest.mark.requirement("D50")
@pytest.mark.parametrize("annotation", [Any, int, Point, list[int], object])
@pytest.mark.parametrize("value", [object(), float("nan"), {1: object()}, NAIVE, "\ud800"])
def test_a_result_that_json_cannot_carry_is_a_payload_error(app: App, annotation, value):
    """D50: an error with class and message that the worker records; nothing else escapes."""

    def function() -> None: ...

    function.__annotations__["return"] = annotation
    with pytest.raises(PayloadError):
        app.task(name="mine")(function).dump_result(value)


def test_a_result_that_does_not_fit_its_annotation_is_stored_and_the_reader_is_told(app: App):
    @app.task(name="mine")
    def function() -> Point: ...

    text = function.dump_result({"x": "no number"})
    with pytest.raises(PayloadError, match=r"app\.tasks\.get"):
        function.result_loader.load(text)
