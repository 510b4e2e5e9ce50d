"""What a composition becomes, and what is refused before anything is written."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from headrace import App, Graph, chain, chord, group
from headrace.client.flows import flows_of
from headrace.core.errors import ArgumentError, GraphError, OptionError, UnknownTask
from headrace.core.task import EdgeKind
from headrace.workflows import approve, starmap
from headrace.workflows import map as map_items
from headrace.workflows.base import Flow
from headrace.workflows.builtin import APPROVED, COLLECT
from headrace.workflows.plan import DEEPEST, Plan
from headrace.workflows.spool import BATCH, IN_MEMORY


def names(flow: Flow[Any]) -> list[str]:
    return [task.name for task in flow.prepare()]


def arguments(plan: Plan) -> list[Any]:
    return [json.loads(task.arguments) for task in plan]


def edges(plan: Plan) -> list[tuple[int, int, str, int | None]]:
    return [(place, after.task, after.kind, after.input) for place, after in plan.edges]


def test_a_chain_passes_the_result_as_the_first_argument(works: SimpleNamespace):
    plan = chain(works.add.s(1), works.add.s(2), works.nothing.si()).prepare()
    assert arguments(plan) == [{"a": 1}, {"b": 2}, {}]
    assert edges(plan) == [(1, 0, "on_success", 0), (2, 1, "on_success", None)]
    assert json.loads(plan.tasks[1].options)["inputs"] == [{"at": "a", "shape": "one"}]
    assert "inputs" not in json.loads(plan.tasks[2].options)
    assert plan.value == 2


def test_the_bar_makes_one_chain(works: SimpleNamespace):
    flow = works.add.s(1) | works.add.s(2) | group(works.add.s(), works.add.s()) | works.total.s()
    assert names(flow) == ["add", "add", "add", "add", "total"]
    nested = chain(works.add.s(1), chain(works.add.s(2), chain(works.add.s(3))))
    assert edges(nested.prepare()) == [(1, 0, "on_success", 0), (2, 1, "on_success", 0)]


@pytest.mark.parametrize("form", ["both", "called", "group"])
def test_a_chord_is_a_group_and_its_body(works: SimpleNamespace, form: str):
    header = [works.add.s(i, i) for i in range(3)]
    flow = {
        "both": lambda: chord(header, works.total.s()),
        "called": lambda: chord(header)(works.total.s()),
        "group": lambda: chord(group(header), works.total.s()),
    }[form]()
    plan = flow.prepare()
    assert edges(plan) == [(3, place, "on_success", 0) for place in range(3)]
    assert json.loads(plan.tasks[3].options)["inputs"] == [{"at": "numbers", "shape": {"n": 3}}]


def test_between_two_groups_stands_one_task(works: SimpleNamespace):
    flow = chain(group(works.add.s(1), works.add.s(2)), group(works.tell.s(), works.tell.s(), works.nothing.si()))
    plan = flow.prepare()
    assert names(flow) == ["add", "add", COLLECT, "tell", "tell", "nothing"]
    assert edges(plan)[2:] == [(3, 2, "on_success", 0), (4, 2, "on_success", 0), (5, 2, "on_success", None)]
    assert json.loads(plan.tasks[2].options)["entrypoint"] is True


def test_a_group_that_takes_nothing_does_not_fetch_what_it_waits_for(works: SimpleNamespace):
    plan = chain(group(works.add.s(1), works.add.s(2)), group(works.nothing.si(), works.nothing.si())).prepare()
    assert plan.tasks[2].name == COLLECT
    assert [after.input for after in plan.tasks[2].after] == [None, None]
    assert "inputs" not in json.loads(plan.tasks[2].options)


def test_an_empty_group_gives_an_empty_list(works: SimpleNamespace):
    plan = chain(works.add.s(1), group([]), works.total.s()).prepare()
    assert arguments(plan) == [{"a": 1}, {"numbers": []}]
    assert edges(plan) == [(1, 0, "on_success", None)]
    assert arguments(chord([], works.total.s()).prepare()) == [{"numbers": []}]
    assert arguments(works.add.map([]).prepare()) == [{"results": []}]  # a job needs a task


def test_map_and_starmap(works: SimpleNamespace):
    assert arguments(map_items(works.add, [1, 2]).prepare()) == [{"a": 1}, {"a": 2}]
    assert arguments(works.add.map(iter([1, 2])).prepare()) == [{"a": 1}, {"a": 2}]
    assert arguments(starmap(works.add, [(1, 2), (3, 4)]).prepare()) == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    plan = chain(works.nothing.si(), works.add.map([5])).prepare()
    assert arguments(plan) == [{}, {"a": 5}]


def test_items_that_are_none_are_refused(works: SimpleNamespace):
    for wrong in (lambda: works.add.map(5), lambda: works.add.starmap(5)):
        with pytest.raises(GraphError, match=r"add\.(star)?map takes a list.*, not 5"):
            wrong()
    for items in ([1], iter([1]), [(1, 2), 1]):
        with pytest.raises(GraphError, match=r"each item of add\.starmap is the list .*, not 1"):
            works.add.starmap(items).prepare()


def test_handlers_have_edges_of_their_kind(works: SimpleNamespace):
    risky = works.fail.s(1).on_failure(works.tell.s("failed")).on_done(works.tell.s("done"))
    plan = chain(risky, works.add.s()).prepare()
    assert edges(plan) == [(1, 0, "on_failure", None), (2, 0, "on_done", 0), (3, 0, "on_success", 0)]
    assert plan.value == 3
    assert arguments(plan)[1:3] == [{"*": ["failed"]}, {"*": [None, "done"]}]


def test_options_and_names_belong_to_a_signature(works: SimpleNamespace):
    signature = works.add.s(1)
    other = signature.using(queue="slow", priority=3, name="the first").critical(False)
    assert (other.name, signature.name) == ("the first", "add")
    [task] = other.prepare()
    assert (task.queue, task.priority, task.critical) == ("slow", 3, False)
    assert json.loads(task.options)["label"] == "the first"
    [before] = signature.prepare()
    assert (before.queue, before.critical) == ("default", True)
    assert repr(works.add.si(1, b=2)) == "add.si(1, b=2)"


def test_an_approval_is_a_task_that_waits_for_a_person(works: SimpleNamespace):
    plan = chain(works.add.s(1), approve(role="finance", name="may we?"), works.tell.s()).prepare()
    asked = plan.tasks[1]
    assert (asked.name, asked.approval) == (APPROVED, True)
    assert json.loads(asked.options)["approval"] == {"role": "finance"}
    assert edges(plan) == [(1, 0, "on_success", None), (2, 1, "on_success", 0)]


@pytest.mark.parametrize("role", [7, "", " ", ["finance"]])
def test_a_role_that_nobody_can_have_is_refused(role: Any):
    with pytest.raises(OptionError, match="the role of an approval is a text"):
        approve(role=role)


def test_prepared_tasks_are_parts(works: SimpleNamespace):
    plan = chain(works.add.s(1), works.add.prepare(7), works.nothing.si()).prepare()
    assert arguments(plan) == [{"a": 1}, {"a": 7}, {}]
    assert edges(plan) == [(1, 0, "on_success", None), (2, 1, "on_success", None)]


def test_a_hundred_thousand_do_not_stay_in_memory(works: SimpleNamespace):
    """What is prepared goes to a file beyond the first few thousand, and comes back as it was."""
    n = IN_MEMORY + 5 * BATCH
    plan = chord((works.add.s(i) for i in range(n)), works.total.s()).prepare()
    assert len(plan) == n + 1
    assert len(plan) - plan.tasks.spilled <= IN_MEMORY + BATCH  # type: ignore[attr-defined]
    for _ in range(2):
        assert [json.loads(task.arguments).get("a") for task in plan] == [*range(n), None]
    assert json.loads(plan.tasks[17].arguments) == {"a": 17}
    assert json.loads(plan.tasks[-2].arguments) == {"a": n - 1}
    assert [len(task.after) for task in plan.tasks[n - 1 :]] == [0, n]


# --- refused ---------------------------------------------------------------------------------------------------------


def test_a_result_that_nobody_takes_names_both_tasks_and_si(works: SimpleNamespace):
    with pytest.raises(GraphError, match=r"task nothing takes no .*task add passes.*nothing\.si\(\)"):
        chain(works.add.s(1), works.nothing.s()).prepare()
    with pytest.raises(GraphError, match=r"add\.si\(…\)"):
        chain(works.add.s(1), works.add.s(1, 2)).prepare()
    with pytest.raises(GraphError, match="a group of add passes"):
        chain(group(works.add.s(1), works.add.s(2)), works.nothing.s()).prepare()


def test_arguments_that_do_not_fit_are_refused(works: SimpleNamespace):
    for flow, said in (
        (works.add.s(), "'a' is missing"),
        (works.add.s("one"), "'a'"),
        (chain(works.add.s(1), works.add.s("one")), "'b'"),
        (chain(works.add.s(1), works.add.s(b=1, c=2)), "'c'"),
        (chain(works.add.s(1), works.add.s(object())), "'b'"),
        (chain(works.add.s(1), works.tell.s(object())), "object"),
    ):
        with pytest.raises(ArgumentError, match=said):
            flow.prepare()


def test_tasks_of_another_app_are_refused(works: SimpleNamespace):
    other = App("sqlite:///another.db")

    @other.task(name="foreign")
    async def foreign(x: int = 0) -> int:
        return x

    for flow in (chain(works.add.s(1), foreign.s()), group(foreign.s(), works.add.s(1))):
        with pytest.raises(GraphError, match="belongs to another app"):
            flow.prepare()
    with pytest.raises(GraphError, match="task foreign belongs to another app"):
        flows_of(works.app.engine).hook(foreign.s())
    graph = Graph("mixed")
    graph.add(works.add.s(1))
    with pytest.raises(GraphError, match="task foreign belongs to another app"):
        graph.add(foreign.s())


def test_unknown_tasks_are_refused_by_name(works: SimpleNamespace):
    assert works.app.signature("add", 1).prepare().tasks[0].name == "add"
    with pytest.raises(UnknownTask, match="'subtract'"):
        works.app.signature("subtract", 1)


def test_a_composition_that_contains_itself_is_refused(works: SimpleNamespace):
    parts: list[Any] = [works.add.s(1)]
    circle = group(parts)
    parts.append(chain(works.add.s(1), circle))
    with pytest.raises(GraphError, match="contains itself"):
        circle.prepare()


def test_a_composition_that_is_too_deep_is_refused(works: SimpleNamespace):
    flow: Any = works.add.s(1)
    for _ in range(DEEPEST):
        flow = group(flow)
    with pytest.raises(GraphError, match="nested deeper"):
        flow.prepare()
    assert len(chain([works.add.s(1)] * 3000).prepare()) == 3000


@pytest.mark.parametrize("what", ["empty chain", "no body", "no task", "a number", "a handler"])
def test_what_is_no_composition_is_refused(works: SimpleNamespace, what: str):
    made: dict[str, Any] = {
        "empty chain": lambda: chain().prepare(),
        "no body": lambda: chord([works.add.s(1)]).prepare(),
        "no task": lambda: group([]).enqueue(),
        "a number": lambda: chain(works.add.s(1), 7).prepare(),  # type: ignore[call-overload]
        "a handler": lambda: works.add.s(1).on_failure(7),
    }
    with pytest.raises(GraphError):
        made[what]()


def test_a_generator_is_read_once(works: SimpleNamespace):
    flow = group(works.add.s(i) for i in range(3))
    assert len(flow.prepare()) == 3
    with pytest.raises(GraphError, match="give a list"):
        flow.prepare()


def test_options_of_a_job_are_not_those_of_a_task(works: SimpleNamespace):
    flow = chain(works.add.s(1)).using(name="one", timeout=5)
    assert flow.job_options == {"name": "one", "timeout": 5}
    with pytest.raises(OptionError, match=r"task\.s\(…\)\.using"):
        flow.using(queue="slow")


def test_a_hook_is_one_task(works: SimpleNamespace):
    flows = flows_of(works.app.engine)
    assert flows.hook(works.tell.si("x")).arguments == '{"*":["x"]}'
    with pytest.raises(GraphError, match="one task"):
        flows.hook(works.add.s(1).on_done(works.nothing.si()))
    with pytest.raises(GraphError, match="a signature"):
        flows.hook(chain(works.add.s(1)))
    with pytest.raises(ArgumentError, match="'a' is missing"):
        flows.hook(works.add.s())


def test_a_key_that_needs_a_result_is_refused(works: SimpleNamespace):
    """Which tasks are the same is decided when they are written, and there is no result yet."""
    for options in ({"unique": True}, {"unique": "one-{a}"}, {"order_key": "{a}"}):
        assert len(works.add.s(1).using(**options).prepare()) == 1
        with pytest.raises(OptionError, match="task add"):
            chain(works.add.s(1), works.add.s(2).using(**options)).prepare()


# --- graphs by hand --------------------------------------------------------------------------------------------------


def test_a_node_as_an_argument_is_an_edge(works: SimpleNamespace):
    graph = Graph("drawn")
    one = graph.add(works.add.s(1))
    two = graph.add(works.add.s(one, b=one))
    three = graph.add(works.total.s([one, two]), after=[one])
    four = graph.add(works.total.s(numbers=[one, 7, two]), name="the last")
    graph.add(works.tell.s("cleanup"), after=[three, four], kind="on_done")
    plan = graph.prepare()
    assert arguments(plan) == [{"a": 1}, {}, {}, {"numbers": [None, 7, None]}, {"*": ["cleanup"]}]
    assert edges(plan) == [
        (1, 0, "on_success", 0), (1, 0, "on_success", 1),
        (2, 0, "on_success", 0), (2, 1, "on_success", 0),
        (3, 0, "on_success", 0), (3, 1, "on_success", 1),
        (4, 2, "on_done", None), (4, 3, "on_done", None),
    ]  # fmt: skip
    assert json.loads(plan.tasks[3].options)["inputs"] == [
        {"at": ["numbers", 0], "shape": "one"},
        {"at": ["numbers", 2], "shape": "one"},
    ]
    assert plan.value == 4  # nothing waits for it
    assert len(graph) == 5


def test_compositions_are_nodes_and_a_graph_is_a_part(works: SimpleNamespace):
    graph = Graph("inner")
    many = graph.add(works.add.map([1, 2]))
    graph.add(works.total.s(many))
    graph.add(works.nothing.si())
    assert graph.prepare().value == [2, 3]
    plan = chain(works.add.s(1), graph, works.tell.s()).prepare()
    assert edges(plan)[:5] == [
        (1, 0, "on_success", None), (2, 0, "on_success", None),
        (3, 1, "on_success", 0), (3, 2, "on_success", 0), (4, 0, "on_success", None),
    ]  # fmt: skip
    assert json.loads(plan.tasks[5].options)["inputs"][0]["shape"] == {"n": 2}
    assert edges(plan)[5:] == [(5, 3, "on_success", 0), (5, 4, "on_success", 0)]


def test_a_graph_inside_of_something_keeps_what_it_has_of_the_ledger(works: SimpleNamespace):
    """The id of a task that is there already is no place; and waiting for it alone is not waiting for the graph's."""
    there = works.app.tasks.handle(500)
    graph = Graph("inner")
    one = graph.add(works.add.si(there))
    graph.add(works.total.si([one, there]))
    plan = chain(works.nothing.si(), graph).prepare()
    assert [(place, after.task, after.local, after.input) for place, after in plan.edges] == [
        (1, 500, False, 0), (1, 0, True, None),
        (2, 1, True, 0), (2, 500, False, 0),
    ]  # fmt: skip
    assert plan.value == 2


def test_a_graph_after_many_knows_its_places(works: SimpleNamespace):
    """The task between a group and a graph takes a place that none of the graph's tasks has."""
    graph = Graph("inner")
    one = graph.add(works.add.si(1))
    graph.add(works.total.si([one, graph.add(works.add.si(2))]))
    plan = chain(group(works.nothing.si(), works.nothing.si()), graph, works.tell.s()).prepare()
    assert [task.name for task in plan] == ["nothing", "nothing", COLLECT, "add", "add", "total", "tell"]
    assert [after[:2] for after in edges(plan)] == [(2, 0), (2, 1), (3, 2), (4, 2), (5, 3), (5, 4), (6, 5)]
    empty = chain(works.nothing.si(), Graph("empty"), works.tell.s()).prepare()
    assert edges(empty) == [(1, 0, "on_success", None)]


def test_a_graph_does_not_lose_a_result_in_silence(works: SimpleNamespace):
    def drawn(part: Any, after: Any = None) -> Graph:
        graph = Graph("inner")
        waits = () if after is None else graph.add(after)
        graph.add(part, after=waits)
        return graph

    there = works.app.tasks.handle(500)
    for losing in (
        drawn(works.add.s(1)),
        drawn(works.add.s(there)),
        drawn(chain(works.add.s(1), works.add.s())),
        drawn(works.add.map([1]), after=works.add.s(1)),
        drawn(drawn(works.add.s(1))),
    ):
        assert len(losing.prepare()) >= 1  # by itself there is nothing to lose
        with pytest.raises(GraphError, match=r"graph 'inner': task nothing passes its result, and task add,.*add\.si"):
            chain(works.nothing.si(), losing).prepare()
        with pytest.raises(GraphError, match="is made by s"):
            works.nothing.si().on_done(losing).prepare()
        assert len(works.nothing.si().on_failure(losing).prepare()) >= 2  # which passes none
    for fine in (
        drawn(works.add.si(1)),
        drawn(works.add.s(1), after=works.nothing.si()),
        drawn(drawn(works.add.s(1)), after=works.nothing.si()),
        drawn(chain(group([]), works.total.s())),
    ):
        plan = chain(works.nothing.si(), fine).prepare()
        assert plan.tasks[1].after[0].task == 0


def test_nodes_of_another_graph_are_refused(works: SimpleNamespace):
    here, there = Graph("here"), Graph("there")
    node = there.add(works.add.s(1))
    for wrong in (lambda: here.add(works.add.s(node)), lambda: here.add(works.add.s(1), after=node)):
        with pytest.raises(GraphError, match="'there'"):
            wrong()
    with pytest.raises(GraphError, match="'there'"):
        chain(works.add.s(node)).prepare()
    with pytest.raises(GraphError, match="after takes nodes"):
        here.add(works.add.s(1), after=[7])  # type: ignore[list-item]
    with pytest.raises(GraphError, match="after takes nodes"):
        here.add(works.add.s(1), after=7)  # type: ignore[arg-type]
    for waits in ((), node):
        with pytest.raises(GraphError, match="on_success, on_done, on_failure, not 'sometimes'"):
            there.add(works.add.s(1), after=waits, kind="sometimes")  # type: ignore[arg-type]
    assert len(there) == 1


def test_edge_kinds_are_the_three(works: SimpleNamespace):
    assert {kind.value for kind in EdgeKind} == {"on_success", "on_done", "on_failure"}
