"""Between a call and its payload: arguments bound to the signature, checked by the annotations, as canonical JSON.

The payload is one object, parameter name to value; `*args` are a list under `*`, and `**kwargs` lie beside the named
ones. Only what was given is written: a default is the worker's, at the moment it runs.
"""

import inspect
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict, Union, cast, get_args, get_origin

from headrace.client.injection import find_injected, is_injected
from headrace.client.leaves import find_refused
from headrace.core import payload
from headrace.core.errors import ArgumentError, OptionError, PayloadError
from headrace.core.outcome import Cancel, RetryAfter, Snooze
from headrace.workflows.base import Location, Slot

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_REST = "*"
_NULL = "null"  # what most tasks return
_JSON_LEAVES = frozenset({int, str, bool, float, NoneType})
_CONTROL = frozenset({Snooze, Cancel, RetryAfter})


class Arguments:
    """The parameters of one function. Annotations are read, and validators built, at the first use: by then names that
    were defined later in the module exist, and importing a task stays cheap."""

    def __init__(self, function: Callable[..., Any], *, name: str, strict: bool = True) -> None:
        try:
            self._signature = inspect.signature(function)
        except (TypeError, ValueError) as error:
            raise OptionError(f"task {name}: {function!r} has no signature that can be read: {error}") from error
        self._function = function
        self._name = name
        self._strict = strict
        self._compiled: _Compiled | None = None

    @property
    def compiled(self) -> "_Compiled":
        if self._compiled is None:
            self._compiled = _Compiled(self._function, self._signature, self._name)
        return self._compiled

    @property
    def signature(self) -> inspect.Signature:
        return self._signature

    @property
    def required(self) -> list[str]:
        """The parameters that a call must give; what the worker provides is not among them."""
        empty = inspect.Parameter.empty
        return [name for name, parameter in self.compiled.parameters.items() if parameter.default is empty]

    def takes(self, name: str) -> bool:
        """Whether a call may give it by its name."""
        return name in self.compiled.parameters or self.compiled.takes_any

    def dump(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Canonical JSON of a call, and the validated arguments by name. ArgumentError says what does not fit."""
        compiled = self.compiled
        values = self._gather(compiled, args, kwargs)
        try:
            checked = compiled.validate(values)
        except ValueError as error:
            raise ArgumentError(f"task {self._name}: {_explain(error)}") from None
        if compiled.may_hold_refused and self._strict and (found := find_refused(checked)) is not None:
            raise ArgumentError(f"task {self._name}: {found.path!r}: {found.why}")
        try:
            if compiled.is_json:
                return payload.dumps(checked), checked
            plain = compiled.adapter.dump_python(checked, mode="json", exclude=compiled.raw, warnings=False)
            plain.update((key, checked[key]) for key in compiled.raw if key in checked)
            return payload.dumps(plain), checked
        except PayloadError as error:
            if not self._strict:
                return _lenient_dumps(checked), checked
            raise ArgumentError(f"task {self._name}: {error}") from None
        except Exception as error:  # pydantic's serialization error is not a ValueError of its own kind everywhere
            raise ArgumentError(f"task {self._name}: an argument cannot be stored as JSON: {error}") from None

    def dump_partial(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[str, Mapping[str, Any], Mapping[int, Location]]:
        """As `dump`, of a call where slots stand for what results will give, and where each slot is. What is given is
        checked by the annotations; an argument with a slot inside of it must be JSON, and is checked when it is whole.
        """
        compiled = self.compiled
        values = dict(self._gather(compiled, args, kwargs))
        places: dict[int, Location] = {}
        open_: dict[str, Any] = {}
        for name in list(values):
            if (found := _slots(name, values[name])) is None:
                continue
            places.update(found)
            value = values.pop(name)
            if not isinstance(value, Slot):
                open_[name] = [None if isinstance(part, Slot) else part for part in value]
        filled = {place if isinstance(place, str) else str(place[0]) for place in places.values()}
        self._refuse_gaps(compiled, {*values, *filled})
        try:
            checked = compiled.partial.validator.validate_python(values)
        except ValueError as error:
            raise ArgumentError(f"task {self._name}: {_explain(error)}") from None
        if self._strict and (refused := find_refused({**checked, **open_})) is not None:
            raise ArgumentError(f"task {self._name}: {refused.path!r}: {refused.why}")
        try:
            plain = compiled.partial.dump_python(checked, mode="json", exclude=compiled.raw, warnings=False)
            plain.update((key, checked[key]) for key in compiled.raw if key in checked)
            return payload.dumps({**plain, **open_}), checked, places
        except PayloadError as error:
            raise ArgumentError(f"task {self._name}: {error}") from None
        except Exception as error:
            raise ArgumentError(f"task {self._name}: an argument cannot be stored as JSON: {error}") from None

    def _refuse_gaps(self, compiled: "_Compiled", given: set[str]) -> None:
        for name, parameter in compiled.parameters.items():
            if name not in given and parameter.default is inspect.Parameter.empty:
                raise ArgumentError(f"task {self._name}: {name!r} is missing")
        if compiled.takes_any:
            return
        for name in given:
            if name not in compiled.parameters and name != _REST:
                raise ArgumentError(f"task {self._name}: there is no parameter {name!r}")

    def load(self, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The typed arguments of a stored call."""
        compiled = self._compiled or self.compiled
        try:
            values = compiled.load(text)
        except ValueError as error:
            raise ArgumentError(f"task {self._name}: the stored arguments do not fit: {_explain(error)}") from None
        if not compiled.positional_only and compiled.rest is None:
            return (), values
        rest = values.pop(_REST, ())
        args: list[Any] = []
        # What stands before *args, or is positional-only, cannot be passed by name.
        for parameter in compiled.positional if rest else compiled.positional_only:
            if parameter not in values:
                if rest:
                    args.append(self._signature.parameters[parameter].default)
                    continue
                break
            args.append(values.pop(parameter))
        return (*args, *rest), values

    def check(self, text: str, filled: Collection[str] = ()) -> dict[str, Any]:
        """The typed arguments, by name, of a call that was written elsewhere; ArgumentError when the worker would not
        take them. Those that `filled` names come with a result, and are checked when they are whole."""
        compiled = self.compiled
        try:
            given = compiled.load(text) if not filled else self._load_partial(compiled, text, filled)
        except ValueError as error:
            raise ArgumentError(f"task {self._name}: {_explain(error)}") from None
        self._refuse_injected(compiled, given)
        return given

    def _load_partial(self, compiled: "_Compiled", text: str, filled: Collection[str]) -> dict[str, Any]:
        values = payload.loads(text)
        if not isinstance(values, dict):
            raise ArgumentError(f"task {self._name}: the arguments are no JSON object")
        given = {name: value for name, value in cast("dict[str, Any]", values).items() if name not in filled}
        self._refuse_gaps(compiled, {*given, *filled})
        return compiled.partial.validator.validate_json(payload.dumps(given))

    def named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Some arguments of a call by the names of their parameters, not checked otherwise. ArgumentError for one that
        the function does not have."""
        values = dict(self._gather(self.compiled, args, kwargs))
        known = {*self.compiled.parameters, _REST}
        if not self.compiled.takes_any and (unknown := [name for name in values if name not in known]):
            raise ArgumentError(
                f"task {self._name}: there is no parameter {unknown[0]!r}; it has {', '.join(self.compiled.parameters)}"
            )
        return values

    def with_defaults(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the function would see them, for key templates and key functions."""
        complete = {
            parameter.name: parameter.default
            for parameter in self.compiled.parameters.values()
            if parameter.default is not inspect.Parameter.empty
        }
        complete.update(values)
        complete.pop(_REST, None)
        return complete

    def inject(self, context: Any, resources: Mapping[str, Any]) -> dict[str, Any]:
        return {
            parameter: find_injected(self._name, parameter, annotation, context=context, resources=resources)
            for parameter, annotation in (self._compiled or self.compiled).injected.items()
        }

    def _gather(self, compiled: "_Compiled", args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        if not args and not compiled.injected and type(kwargs) is dict:
            return cast("dict[str, Any]", kwargs)  # validation makes a new one
        values = dict(kwargs)
        if args:
            names = compiled.positional
            if len(args) > len(names) and compiled.rest is None:
                raise _surplus(
                    f"task {self._name}: takes {len(names)} positional arguments ({', '.join(names) or 'none'}), "
                    f"was given {len(args)}"
                )
            for parameter, value in zip(names, args, strict=False):
                if parameter in values and parameter not in compiled.positional_only:
                    raise _surplus(f"task {self._name}: {parameter!r} was given twice")
                values[parameter] = value
            if len(args) > len(names):
                values[_REST] = list(args[len(names) :])
        self._refuse_injected(compiled, values)
        return values

    def _refuse_injected(self, compiled: "_Compiled", values: Mapping[str, Any]) -> None:
        for parameter in compiled.injected:
            if parameter in values:
                raise ArgumentError(
                    f"task {self._name}: {parameter!r} is given by the worker and is not part of the payload"
                )


class _Compiled:
    """What is known once the annotations are read."""

    def __init__(self, function: Callable[..., Any], signature: inspect.Signature, name: str) -> None:
        from pydantic import ConfigDict, TypeAdapter

        hints = _hints(function, name)
        self.injected: dict[str, Any] = {}
        self.parameters: dict[str, inspect.Parameter] = {}
        self.rest: str | None = None
        self.raw: set[str] = set()
        self.is_json = True
        rest_keywords = False
        fields: dict[str, Any] = {}
        for parameter in signature.parameters.values():
            annotation = hints.get(parameter.name, Any)
            if is_injected(annotation):
                self.injected[parameter.name] = annotation
                continue
            key = parameter.name
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                self.rest = parameter.name
                key, annotation = _REST, NotRequired[list[annotation]]
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                rest_keywords = True
                continue
            else:
                self.parameters[parameter.name] = parameter
                if parameter.default is not inspect.Parameter.empty:
                    annotation = NotRequired[annotation]
            bare = get_args(annotation)[0] if get_origin(annotation) is NotRequired else annotation
            if bare is Any or bare is object:
                self.raw.add(key)
            elif not _is_json(bare):
                self.is_json = False
            fields[key] = annotation
        self.positional = [key for key, p in self.parameters.items() if p.kind in _POSITIONAL]
        self.positional_only = [
            key for key, p in self.parameters.items() if p.kind is inspect.Parameter.POSITIONAL_ONLY
        ]
        self._shape = (name, fields, rest_keywords)
        shape = cast("Any", TypedDict)(f"arguments of {name}", fields)
        shape.__pydantic_config__ = ConfigDict(
            extra="allow" if rest_keywords else "forbid", arbitrary_types_allowed=False, ser_json_inf_nan="constants"
        )
        try:
            self.adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(shape)
        except Exception as error:
            raise OptionError(
                f"task {name}: an annotation cannot be validated: {error}; annotate with types that JSON can carry, "
                "or Resource[…] for what the worker provides"
            ) from error
        # Straight to the compiled validator: these are on the hot paths of a bulk enqueue and of a worker.
        self.validate = self.adapter.validator.validate_python
        self.load = self.adapter.validator.validate_json
        self.may_hold_refused = not self.is_json or bool(self.raw) or rest_keywords
        self.takes_any = rest_keywords
        self._partial: TypeAdapter[dict[str, Any]] | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """The annotations of what a call gives, by its key in the payload."""
        return self._shape[1]

    @property
    def partial(self) -> "TypeAdapter[dict[str, Any]]":
        """For calls of which a result will give the rest: nothing is required."""
        if self._partial is None:
            from pydantic import ConfigDict, TypeAdapter

            name, fields, rest_keywords = self._shape
            shape = cast("Any", TypedDict)(f"arguments of {name}", fields, total=False)
            shape.__pydantic_config__ = ConfigDict(
                extra="allow" if rest_keywords else "forbid", ser_json_inf_nan="constants"
            )
            self._partial = TypeAdapter(shape)
        return self._partial


class Result:
    """What a function returns, by its annotation."""

    def __init__(self, function: Callable[..., Any], *, name: str) -> None:
        self._function = function
        self._name = name
        self._adapter: TypeAdapter[Any] | None = None
        self._plain: bool | None = None

    def _compile(self) -> None:
        from pydantic import TypeAdapter

        annotation: Any = _without_control(_hints(self._function, self._name).get("return", Any))
        self._plain = annotation is Any or annotation is object or annotation is None or _is_json(annotation)
        if not self._plain:
            try:
                self._adapter = TypeAdapter(cast("type[Any]", annotation))
            except Exception:  # not a type that pydantic knows: the value must be JSON as it is
                self._plain = True

    def dump(self, value: Any) -> str:
        """Canonical JSON of a returned value; PayloadError when it has none.

        A value that does not fit the annotation is stored all the same: the work is done, and to do it again would not
        make the annotation true. Whoever reads the result is told.
        """
        if self._plain is None:
            self._compile()
        if self._adapter is None:
            return _NULL if value is None else payload.dumps(value)
        if (found := find_refused(value)) is not None:
            raise PayloadError(f"task {self._name}: its result{found.path and f' at {found.path!r}'}: {found.why}")
        try:
            return payload.dumps(self._adapter.dump_python(value, mode="json", warnings=False))
        except PayloadError:
            raise
        except Exception as error:
            raise PayloadError(f"task {self._name}: its result cannot be stored as JSON: {error}") from None

    def load(self, text: str | None) -> Any:
        if self._plain is None:
            self._compile()
        if text is None:
            return None
        if self._adapter is None:
            return payload.loads(text)
        try:
            return self._adapter.validate_json(text)
        except ValueError as error:
            raise PayloadError(
                f"task {self._name}: the stored result does not fit the annotation: {_explain(error)}; "
                "app.tasks.get(id).result has it as JSON"
            ) from None


def _surplus(message: str) -> ArgumentError:
    error = ArgumentError(message)
    error.surplus = True
    return error


def _slots(name: str, value: Any) -> dict[int, Location] | None:
    """Where the slots of one argument are; None when there is none in it."""
    if isinstance(value, Slot):
        return {value.number: name}
    if not isinstance(value, list | tuple):
        return None
    parts = enumerate(cast("Sequence[Any]", value))
    return {part.number: [name, index] for index, part in parts if isinstance(part, Slot)} or None


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(inspect.unwrap(function), include_extras=True)
    except NameError as error:
        raise OptionError(
            f"task {name}: the annotation {error.name!r} cannot be found when the task runs; "
            "import it at the top of the module (not below TYPE_CHECKING)"
        ) from error


def _is_json(annotation: Any) -> bool:
    """Whether every valid value of the annotation is already what JSON gives back: then nothing is to be converted."""
    if annotation in _JSON_LEAVES:
        return True
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is list or (origin is dict and args[0] is str):
        return all(_is_json(argument) for argument in args)
    if origin in (Union, UnionType):
        return all(_is_json(argument) for argument in args)
    return False


def _without_control(annotation: Any) -> Any:
    if annotation in _CONTROL:
        return Any
    if get_origin(annotation) not in (Union, UnionType):
        return annotation
    kept = [argument for argument in get_args(annotation) if argument not in _CONTROL]
    return Union[tuple(kept)] if kept else Any  # noqa: UP007 -- built at run time


def _explain(error: ValueError) -> str:
    """A validation error in one line, naming the parameter."""
    if not hasattr(error, "errors"):
        return str(error)
    lines: list[str] = []
    for item in cast("ValidationError", error).errors(include_url=False, include_context=False):
        place = ".".join(map(str, item["loc"])) or "arguments"
        match item["type"]:
            case "missing":
                lines.append(f"{place!r} is missing")
            case "extra_forbidden":
                lines.append(f"there is no parameter {place!r}")
            case _:
                lines.append(f"{place!r}: {item['msg'][:1].lower()}{item['msg'][1:]}, not {_shown(item['input'])}")
    return "; ".join(lines)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _lenient_dumps(values: Mapping[str, Any]) -> str:
    """With `strict` off, what JSON cannot carry goes as its text."""
    from pydantic_core import to_jsonable_python

    return payload.dumps(to_jsonable_python(values, fallback=str, inf_nan_mode="strings"))
