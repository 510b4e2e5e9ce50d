"""`headrace enqueue`: put one task into the ledger by its name."""

from typing import Annotated, Any

import typer

from headrace.cli import completing
from headrace.cli.failures import FAILED, CommandError
from headrace.cli.output import console, print_json
from headrace.cli.target import Json, Target, load_app


def enqueue(
    target: Target,
    task: Annotated[
        str, typer.Argument(help="Name of the task.", show_default=False, autocompletion=completing.task_names)
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="Arguments as name=value; the value is JSON, or text where it is not.")
    ] = None,
    queue: Annotated[
        str | None, typer.Option(help="Another queue than the task's own.", autocompletion=completing.queues)
    ] = None,
    priority: Annotated[int | None, typer.Option(help="Higher first.")] = None,
    delay: Annotated[float | None, typer.Option(min=0, help="Seconds to wait before it may run.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the result and print it.")] = False,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait for the result.")] = 60.0,
    json: Json = False,
) -> None:
    """Enqueue a task by its name; with --wait, print its result."""
    app = load_app(target)
    options = {"queue": queue, "priority": priority, "run_after": delay}
    chosen: Any = {option: value for option, value in options.items() if value is not None}
    definition = app.get_task(task)
    handle = (definition.using(**chosen) if chosen else definition).enqueue(**parsed_arguments(arguments or []))
    if not wait:
        print_json({"id": str(handle.id), "created": handle.created}) if json else console.print(handle.id)
        return
    try:
        result = handle.result(timeout=timeout)
    except TimeoutError as error:
        raise CommandError(f"{error}; headrace tasks show {handle.id}", code=FAILED) from None
    # As it is: whoever waits for a result asked for this very value. What is looked up later is shown without secrets.
    print_json({"id": str(handle.id), "result": result}, whole=True) if json else console.print(result, markup=False)


def parsed_arguments(words: list[str]) -> dict[str, Any]:
    """name=value, where the value is JSON, or text where it is not."""
    import orjson

    values: dict[str, Any] = {}
    for word in words:
        name, separator, text = word.partition("=")
        if not separator or not name.isidentifier():
            raise CommandError(f"{word!r} is not an argument: write name=value, for example user_id=7")
        try:
            values[name] = orjson.loads(text)
        except orjson.JSONDecodeError:
            values[name] = text
    return values
