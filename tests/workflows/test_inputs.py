"""Results go where the inputs say, whatever they are, and nothing else changes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core import payload
from headrace.core.errors import PayloadError
from headrace.workflows.inputs import filled

# What JSON carries: integers of 64 bits, floats that are numbers, text that is Unicode.
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
type Shape = Any
shapes = st.recursive(
    st.just("one") | st.integers(0, 4).map(lambda n: {"n": n}), lambda inner: st.lists(inner, max_size=3), max_leaves=5
)


def width(shape: Shape) -> int:
    if shape == "one":
        return 1
    return shape["n"] if isinstance(shape, dict) else sum(map(width, shape))


def built(shape: Shape, results: list[Any]) -> Any:
    """The naive form: takes results from the front."""
    if shape == "one":
        return results.pop(0)
    if isinstance(shape, dict):
        return [results.pop(0) for _ in range(shape["n"])]
    return [built(part, results) for part in shape]


@given(
    arguments=st.dictionaries(st.sampled_from("abc"), values, max_size=3),
    specs=st.lists(st.tuples(st.sampled_from("uvwxyz"), shapes), max_size=4, unique_by=lambda spec: spec[0]),
    data=st.data(),
)
def test_each_input_is_built_of_its_results_in_their_order(
    arguments: dict[str, Any], specs: list[tuple[str, Shape]], data: st.DataObject
) -> None:
    results: list[tuple[int, Any]] = []
    expected = dict(arguments)
    for number, (name, shape) in enumerate(specs):
        given = [data.draw(values) for _ in range(width(shape))]
        results += [(number, value) for value in given]
        expected[name] = built(shape, list(given))
    texts = [(number, None if value is None else payload.dumps(value)) for number, value in results]
    text = filled(payload.dumps(arguments), [{"at": name, "shape": shape} for name, shape in specs], texts)
    assert text == payload.dumps(expected)  # canonical, like everything that is stored


def test_a_path_leads_inside_of_an_argument() -> None:
    inputs = [{"at": ["rows", 1], "shape": "one"}, {"at": ["*", 0], "shape": {"n": 2}}]
    text = filled('{"*":[null,9],"rows":[1,null,3]}', inputs, [(0, "2"), (1, '"a"'), (1, None)])
    assert json.loads(text) == {"*": [["a", None], 9], "rows": [1, 2, 3]}


def test_a_star_alone_appends_to_the_rest() -> None:
    one = [{"at": "*", "shape": "one"}]
    assert filled("{}", one, [(0, "1")]) == '{"*":[1]}'
    assert filled('{"*":[1]}', one * 2, [(0, "2"), (1, "3")]) == '{"*":[1,2,3]}'


@pytest.mark.parametrize(
    ("shape", "texts", "said"),
    [
        ("one", [], "fewer"),
        ({"n": 2}, ["1"], "fewer"),
        (["one", "one"], ["1"], "fewer"),
        ("one", ["1", "2"], "more"),
    ],
)
def test_results_that_do_not_fit_the_shape_are_refused(shape: Shape, texts: list[str], said: str) -> None:
    with pytest.raises(PayloadError, match=said):
        filled("{}", [{"at": "x", "shape": shape}], [(0, text) for text in texts])


def test_a_result_for_an_input_that_is_not_there_is_refused() -> None:
    with pytest.raises(PayloadError, match="input 1"):
        filled("{}", [{"at": "x", "shape": "one"}], [(0, "1"), (1, "2")])


def test_a_null_that_was_returned_is_null() -> None:
    assert filled("{}", [{"at": "x", "shape": {"n": 2}}], [(0, "null"), (0, None)]) == '{"x":[null,null]}'
