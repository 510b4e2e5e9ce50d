"""What a caller can submit, as they are shown it."""

import inspect
from collections.abc import Iterable
from typing import Any, cast

from headrace.app import App
from headrace.client.options import UNSET
from headrace.client.preparing import effective_max_age, effective_retry
from headrace.client.schemas import schema_of
from headrace.client.task import Task
from headrace.core.accounts import Role, Scope
from headrace.core.durations import seconds
from headrace.core.limits import Limit, Rate
from headrace.server.auth.caller import Caller
from headrace.server.models.registry import OptionsShown, Registered
from headrace.server.seeing import Seeing

_VALUES = ("default", "examples", "const")
_NAMED = ("properties", "patternProperties", "$defs")  # schemas by name


def may_submit(caller: Caller) -> bool:
    return Scope.SUBMIT in caller.scopes and caller.role.reaches(Role.USER)


def registered(app: App, caller: Caller, task: Task[..., Any]) -> Registered:
    seeing, found = Seeing(app), schema_of(task.arguments)
    asked = task.options.approval
    names: list[str] = list(found.schema.get("properties", {}))
    secrets = [name for name in names if app.redaction.is_secret(name)]
    doc = inspect.getdoc(task.function)
    return Registered(
        name=task.name,
        aliases=list(task.aliases),
        summary=None if doc is None else seeing.text(doc.partition("\n")[0]),
        doc=seeing.text(doc),
        queue=task.options.queue,
        priority=task.options.priority,
        kind="async" if task.is_async else "sync",
        executor=task.pool,
        options=_options(app, task),
        can_submit=may_submit(caller),
        needs_approval=asked is not None and not caller.role.reaches(asked),
        signature=_signature(seeing, task.arguments.signature, secrets),
        parameters=_without_defaults(_without_secrets(seeing, found.schema), secrets),
        secrets=secrets,
        complete=found.complete,
    )


def _options(app: App, task: Task[..., Any]) -> OptionsShown:
    options, engine, settings, seeing = task.options, app.engine, app.settings, Seeing(app)
    retry = effective_retry(engine, options)
    return OptionsShown(
        timeout=settings.timeout if options.timeout is UNSET else options.timeout,
        soft_timeout=settings.soft_timeout if options.soft_timeout is UNSET else options.soft_timeout,
        max_age=effective_max_age(engine, options, retry),
        result_ttl=settings.result_ttl if options.result_ttl is UNSET else options.result_ttl,
        max_attempts=retry.max_attempts,
        dead_letter=retry.dead_letter,
        unique=bool(options.unique) or options.debounce is not None,
        ordered=options.order_key is not None,
        limits=[*_limits(options.limit), *_rates(options.rate)],
        critical=options.critical,
        tags=list(options.tags),
        metadata=seeing.value(dict(options.metadata)),
        approval=options.approval,
    )


def _limits(limits: Iterable[Limit]) -> list[str]:
    return [f"{limit.n} at once" for limit in limits]


def _rates(rates: Iterable[Rate]) -> list[str]:
    return [f"{rate.n} in {seconds(rate.per, name='per'):g} s" for rate in rates]


class _Written:
    """In place of a default: as it is written in code, without secrets."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _signature(seeing: Seeing, signature: inspect.Signature, secrets: Iterable[str]) -> str:
    """What stands for a secret by default is not shown, nor what another default has of one inside. The rest is as it
    is: an annotation behind the name of a secret is none."""
    hidden = set(secrets)
    parameters = [
        parameter
        if parameter.default is inspect.Parameter.empty
        else parameter.replace(
            default=... if parameter.name in hidden else _Written(seeing.text(repr(parameter.default)) or "")
        )
        for parameter in signature.parameters.values()
    ]
    return str(signature.replace(parameters=parameters))


def _without_secrets(seeing: Seeing, schema: Any, name: str = "") -> Any:
    """A default with a secret inside is left out, in models that arguments are made of as well: a form that had the
    mark in its place would send it."""
    if isinstance(schema, list):
        return [_without_secrets(seeing, each, name) for each in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for key, each in cast("dict[str, Any]", schema).items():
        if key in _VALUES:
            if seeing.value(each, name) == each:
                found[key] = each
        elif key in _NAMED:
            found[key] = {called: _without_secrets(seeing, inner, called) for called, inner in each.items()}
        elif key == "description":
            found[key] = seeing.text(each)
        else:
            found[key] = _without_secrets(seeing, each, name)
    return found


def _without_defaults(schema: Any, secrets: Iterable[str]) -> Any:
    properties = dict(schema.get("properties", {}))
    for name in secrets:
        properties[name] = {key: each for key, each in properties[name].items() if key not in ("default", "examples")}
        properties[name]["writeOnly"] = True
    return {**schema, **({"properties": properties} if properties else {})}
