"""Random compositions: a plan gives every task what a plain reading of it says, and waits for the same tasks."""

import json
from dataclasses import dataclass
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import App, chain, chord, group
from headrace.workflows.base import Flow
from headrace.workflows.builtin import COLLECT
from headrace.workflows.inputs import filled
from headrace.workflows.plan import Plan
from headrace.workflows.value import Existing

app = App("sqlite:///never-opened.db")


@app.task
async def rest(*got: Any, tag: int) -> Any:
    raise NotImplementedError


@app.task
async def first(got: Any = "nothing", *, tag: int) -> Any:
    raise NotImplementedError


# --- a composition as plain data -------------------------------------------------------------------------------------


@dataclass
class Leaf:
    takes: bool
    named: bool
    tag: int = 0


@dataclass
class Many:
    kind: str  # "chain", "group", "chord"
    parts: list[Any]


leaves = st.builds(Leaf, takes=st.booleans(), named=st.booleans())
trees = st.recursive(
    leaves,
    lambda inner: (
        st.builds(Many, kind=st.just("chain"), parts=st.lists(inner, min_size=1, max_size=4))
        | st.builds(Many, kind=st.just("group"), parts=st.lists(inner, max_size=4))
        | st.builds(Many, kind=st.just("chord"), parts=st.lists(inner, min_size=1, max_size=4))
    ),
    max_leaves=14,
)


def tagged(tree: Any, numbers: Any) -> Any:
    """A copy in which each leaf is another."""
    if isinstance(tree, Leaf):
        return Leaf(tree.takes, tree.named, next(numbers))
    return Many(tree.kind, [tagged(part, numbers) for part in tree.parts])


def flow_of(tree: Any) -> Flow[Any]:
    if isinstance(tree, Leaf):
        task = first if tree.named else rest
        return task.s(tag=tree.tag) if tree.takes else task.si(tag=tree.tag)
    parts = [flow_of(part) for part in tree.parts]
    if tree.kind == "chain":
        return chain(*parts) if len(parts) != 1 else chain(parts)
    if tree.kind == "group":
        return group(parts)
    return chord(parts[:-1], parts[-1])


# --- the plain reading -----------------------------------------------------------------------------------------------

type Before = tuple[Any, set[int]] | None


def read(tree: Any, before: Before, waits: dict[int, set[int]]) -> tuple[Any, set[int]]:
    """The value of a part, and the leaves that what comes next waits for."""
    if isinstance(tree, Leaf):
        waits[tree.tag] = set() if before is None else before[1]
        nothing = ["nothing"] if tree.named else []
        got = [before[0]] if tree.takes and before is not None else nothing
        return {"tag": tree.tag, "got": got}, {tree.tag}
    if tree.kind == "chain":
        for part in tree.parts:
            before = read(part, before, waits)
        assert before is not None
        return before
    if tree.kind == "group":
        if not tree.parts:
            return [], set() if before is None else before[1]
        read_parts = [read(part, before, waits) for part in tree.parts]
        return [value for value, _ in read_parts], set[int]().union(*(tags for _, tags in read_parts))
    return read(tree.parts[-1], read(Many("group", tree.parts[:-1]), before, waits), waits)


# --- what the plan does ----------------------------------------------------------------------------------------------


def run(plan: Plan) -> tuple[Any, dict[int, set[int]]]:
    """Do by hand what a worker does: the value of the plan, and what each leaf waited for."""
    results: list[Any] = []
    behind: list[set[int]] = []  # the leaves that a place stands for
    waits: dict[int, set[int]] = {}
    for place, task in enumerate(plan):
        assert all(after.local and after.task < place for after in task.after)
        inputs = json.loads(task.options).get("inputs", [])
        passed = sorted(
            ((after.input, number, json.dumps(results[after.task])) for number, after in enumerate(task.after)
             if after.input is not None),
        )  # fmt: skip
        arguments = json.loads(filled(task.arguments, inputs, [(number, text) for number, _, text in passed]))
        before = set[int]().union(*(behind[after.task] for after in task.after))
        if task.name == COLLECT:
            results.append(arguments["results"])
            behind.append(before)
            continue
        tag = arguments["tag"]
        waits[tag] = before
        got = arguments.get("*", []) if task.name.endswith("rest") else [arguments.get("got", "nothing")]
        results.append({"tag": tag, "got": got})
        behind.append({tag})
    return shaped(plan.value, results), waits


def shaped(value: Any, results: list[Any]) -> Any:
    assert not isinstance(value, Existing)
    return results[value] if isinstance(value, int) else [shaped(part, results) for part in value]


@settings(max_examples=150)
@given(trees)
def test_a_plan_means_what_its_composition_says(tree: Any) -> None:
    tree = tagged(tree, count())
    expected_waits: dict[int, set[int]] = {}
    value, _ = read(tree, None, expected_waits)
    flow = flow_of(tree)
    if flow.origin() is None:
        return  # no task in it: it has no app
    plan = flow.prepare()
    assert len(plan) == len(list(plan))
    assert run(plan) == (value, expected_waits)


@given(st.integers(2, 30))
def test_two_groups_cost_one_edge_for_each_task_and_not_for_each_pair(width: int) -> None:
    flow = chain(group(rest.si(tag=i) for i in range(width)), group(rest.s(tag=i) for i in range(width)))
    plan = flow.prepare()
    assert len(plan) == 2 * width + 1
    assert sum(1 for _ in plan.edges) == 2 * width


def test_reading_a_plan_twice_gives_the_same() -> None:
    plan = group(rest.s(tag=i) for i in range(20)).prepare()
    assert list(plan) == list(plan)
