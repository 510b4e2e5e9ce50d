"""The arguments of a task as JSON Schema, for whoever makes a form of them."""

import inspect
from collections.abc import Mapping
from typing import Any, NotRequired, cast, get_args, get_origin

from headrace.client.arguments import Arguments
from headrace.core import payload
from headrace.core.errors import HeadraceError, PayloadError
from headrace.core.values import value

_REST = "*"


@value
class ArgumentSchema:
    """`schema` is JSON Schema 2020-12 of an object of arguments by name. A type that JSON Schema has no word for is any
    JSON, `{}`, and `complete` is False then."""

    schema: Mapping[str, Any]
    complete: bool


def schema_of(arguments: Arguments) -> ArgumentSchema:
    try:
        compiled = arguments.compiled
    except HeadraceError:  # an annotation that cannot be read: enqueue says so, too
        return ArgumentSchema(schema={"type": "object"}, complete=False)
    properties: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    complete = True
    for name, annotation in compiled.fields.items():
        bare = get_args(annotation)[0] if get_origin(annotation) is NotRequired else annotation
        found = _schema(bare)
        if found is None:
            complete = False
            found = {}
        definitions |= found.pop("$defs", {})
        found.setdefault("title", "More" if name == _REST else name.replace("_", " ").strip().capitalize())
        default = _default(compiled.parameters.get(name))
        properties[name] = found if default is None else {**found, "default": default[0]}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": arguments.required,
        "additionalProperties": compiled.takes_any,
    }
    return ArgumentSchema(schema={**schema, "$defs": definitions} if definitions else schema, complete=complete)


def _schema(annotation: Any) -> dict[str, Any] | None:
    from pydantic import TypeAdapter

    if annotation is Any or annotation is object:
        return {}
    try:
        found: dict[str, Any] = TypeAdapter(cast("type[Any]", annotation)).json_schema()
    except Exception:  # pydantic raises what it likes for types that have none
        return None
    return found


def _default(parameter: inspect.Parameter | None) -> tuple[Any] | None:
    """In a tuple, for None is a default as well; nothing where JSON has no word for it."""
    if parameter is None or parameter.default is inspect.Parameter.empty:
        return None
    try:
        return (payload.loads(payload.dumps(parameter.default)),)
    except (PayloadError, TypeError, ValueError):
        return None
