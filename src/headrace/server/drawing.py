"""A graph as JSON, and the tasks that it becomes."""

import dataclasses
from collections.abc import Sequence
from typing import Any, cast

from headrace.app import App
from headrace.client.options import OptionArguments
from headrace.core.task import After, NewTask
from headrace.server.auth.caller import Caller
from headrace.server.models.jobs import NewNode
from headrace.server.problems import Problem, named_by
from headrace.server.submitting import command, owned
from headrace.workflows.graph import Graph, Node

_RESULT = "$result"


def drawn(
    app: App, caller: Caller, given: Sequence[NewNode], *, job: int | None = None, after: Sequence[int] = ()
) -> list[NewTask]:
    """The tasks in order, in the caller's name; those that wait for none of these wait for `after`. Nothing is written.

    Raises Problem(422), and what `enqueue` raises.
    """
    graph = Graph("of a request")
    nodes: dict[str, Node] = {}
    for place, node in enumerate(given):
        with named_by(f"/tasks/{place}"):
            waits = [_found(nodes, key) for key in node.after]
            made = graph.add(_part(app, node, nodes), after=waits, kind=node.kind)
            if node.key is not None:
                if node.key in nodes:
                    raise Problem(422, "Bad graph", f"two tasks have the key {node.key!r}")
                nodes[node.key] = made
    before = tuple(After(task=id) for id in after)
    return [owned(caller, _placed(task, job, before)) for task in graph.prepare().tasks]


def _part(app: App, node: NewNode, nodes: dict[str, Node]) -> Any:
    wanted = {name: value for name in ("queue", "priority", "critical") if (value := getattr(node, name)) is not None}
    options = cast("OptionArguments", wanted)
    if node.command is not None:
        return command(app, node.command, options)
    assert node.name is not None
    task = app.get_task(node.name)
    signature = (task.using(**options) if options else task).s(
        *(_argument(value, nodes) for value in node.args),
        **{name: _argument(value, nodes) for name, value in node.kwargs.items()},
    )
    return signature if node.key is None else signature.using(name=node.key)


def _argument(value: Any, nodes: dict[str, Node]) -> Any:
    """A result may stand for an argument, or for an element of a list that is one."""
    if isinstance(value, list):
        return [_result(part, nodes) for part in cast("list[Any]", value)]
    return _result(value, nodes)


def _result(value: Any, nodes: dict[str, Node]) -> Any:
    if not isinstance(value, dict) or set(cast("dict[str, Any]", value)) != {_RESULT}:
        return cast("Any", value)
    return _found(nodes, cast("dict[str, Any]", value)[_RESULT])


def _found(nodes: dict[str, Node], key: object) -> Node:
    if not isinstance(key, str) or key not in nodes:
        raise Problem(422, "Bad graph", f"no task before this one has the key {str(key)[:60]!r}")
    return nodes[key]


def _placed(task: NewTask, job: int | None, before: tuple[After, ...]) -> NewTask:
    first = not any(edge.local for edge in task.after)
    return dataclasses.replace(task, job=job, after=(*task.after, *(before if first else ())))
