"""The whole OpenAPI document, played by schemathesis as each role and as nobody, in this process.

No answer is a 5xx, each fits the document, and a user never reads a word of another's.
"""

import asyncio
import dataclasses
import inspect
import os
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from headrace.core.task import NewJob, NewTask
from headrace.scheduling.declaration import Schedule
from headrace.server.faces.ids import uuid_of
from headrace.store.http.verbs import VERBS, form_of
from headrace.testing import adrain
from tests.server.matrix import CALLERS
from tests.server.routed import routed
from tests.server.serving import BASE, Serve, Serving
from tests.support.sizes import sized

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
SEED = random.randrange(2**32) if os.environ.get("HEADRACE_HYPOTHESIS_PROFILE") == "random" else 17
MARK = "zebra-crossing"  # in whatever `other` has
NAMES = {"task": ["add", "greet", "fail", "total"], "queue": ["mail", "default"]}


@dataclasses.dataclass(slots=True)
class World:
    """Things that are there, those of `other` first."""

    tasks: list[int]
    jobs: list[int]

    @property
    def uuids(self) -> list[str]:
        return [str(uuid_of(id)) for id in self.tasks]

    def parameters(self, path: str, name: str) -> list[Any]:
        match path.split("/"):
            case [_, "api", _, "tokens", *_]:
                return [2**40]  # its own is what the caller calls with
            case [_, "api", _, "users", *_]:
                return ["ada"]
            case [_, "api", _, "tasks" | "results" | "dead-letters", *_]:
                return self.uuids if name == "task_id" else self.tasks
            case [_, "api", _, "jobs", *_]:
                return ["g0", "g1"] if name == "group" else self.jobs
            case [_, "api", _, "queues", *_]:
                return NAMES["queue"]
            case [_, "api", _, "schedules", *_]:
                return ["hourly"]
            case [_, "api", _, "breakers", *_]:
                return ["chat"]
            case [_, "api", _, "ledger", *_]:
                return list(VERBS)
            case _:
                return []


async def make_world(server: Serving) -> World:
    app = server.app
    greet, fail = app.get_task("greet"), app.get_task("fail")

    def of(owner: str, new: NewTask) -> NewTask:
        return dataclasses.replace(new, owner=owner)

    def both(owner: str, word: str) -> list[NewTask]:
        said = greet.using(metadata={"note": word}, tags=[word])
        nested = {"deep": [word]}
        return [of(owner, said.prepare(name=word, nested=nested)), of(owner, fail.prepare(why=f"{word} failed"))]

    first = [*both("other", MARK), *both("user", "mine")]
    ended = [answer.id for answer in await app.engine.enqueue(first)]
    jobs: list[int] = []
    for owner, word in (("other", MARK), ("user", "mine")):
        job = NewJob(name=word, description=word, tasks=both(owner, word), owner=owner, metadata=f'{{"w":"{word}"}}')
        jobs.append((await app.engine.run(lambda store, job=job: store.create_job(job)))[0])
    await adrain(app, raise_on_failure=False)
    waiting = [*both("user", "mine"), *both("other", MARK)]
    waiting += [dataclasses.replace(task, approval=True) for task in waiting]
    live = [answer.id for answer in await app.engine.enqueue(waiting)]
    await app.schedules.aadd(greet, Schedule(3600, name="hourly"), MARK)
    await app.engine.run(lambda store: store.open_breaker("chat", by="w1", timeout=60))
    await app.engine.run(lambda store: store.add_user("ada", "viewer"))
    return World(tasks=[*ended, *live], jobs=jobs)


_MOSTLY = st.sampled_from([True, True, True, False])
_TEXTS = st.sampled_from(["hourly", "mail", "add", "chat", '{"a":1,"b":2}', "{}", "[]", "{", "", "running", "nan"])
_SCALARS = st.one_of(
    _TEXTS,
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.just([]),
)


@st.composite
def wired(draw: st.DrawFn, verb: str, world: World) -> dict[str, Any]:
    """Arguments of a verb of the ledger, which the document does not describe: most of them of the right kind."""
    odd = [0, -1, 2**63 - 1, 2**63]
    tasks, jobs = st.sampled_from([*world.tasks, *odd]), st.sampled_from([*world.jobs, *odd])
    after = st.fixed_dictionaries({"task": tasks}, optional={"local": st.booleans(), "input": st.integers(-1, 3)})
    key = st.fixed_dictionaries(
        {"scope": st.sampled_from(["unique", "idem"]), "key": st.sampled_from(["add:k", "k"])},
        optional={"on_conflict": st.sampled_from(["return", "reject", "replace"]), "ttl": _SCALARS},
    )
    options = st.sampled_from(["{}", "[]", "{", '{"entrypoint":1}', '{"approval":{"role":"user"}}', '{"approval":7}'])
    new = st.fixed_dictionaries(
        {"name": st.sampled_from([*NAMES["task"], "unknown", "os.system"]), "arguments": _TEXTS},
        optional={
            "options": options,
            "after": st.lists(after, max_size=2),
            "keys": st.lists(key, max_size=2),
            "job": jobs,
            **dict.fromkeys(("delay", "run_at", "priority", "max_attempts", "max_age", "version"), _SCALARS),
        },
    )
    known: dict[str, Any] = {
        "ids": st.lists(tasks, max_size=3),
        "task": tasks,
        "job": jobs,
        "tasks": st.lists(new if verb == "enqueue" else tasks, max_size=3),
        "limit": st.integers(-5, 2**65),
        "criteria": st.fixed_dictionaries({}, optional={"job": jobs, "owner": st.just("other"), "limit": _SCALARS}),
        "schedules": st.lists(st.fixed_dictionaries({"name": _TEXTS, "cadence": _TEXTS, "task": new}), max_size=2),
        "approved": st.booleans(),
    }
    if verb == "create_job":
        optional: dict[str, Any] = {"on_success": new, "metadata": _TEXTS, "timeout": _SCALARS}
        known["job"] = st.fixed_dictionaries({"name": _TEXTS, "tasks": st.lists(new, max_size=3)}, optional=optional)
    form = form_of(verb)
    needed = [name for name in form.arguments if form.signature.parameters[name].default is inspect.Parameter.empty]
    names = [name for name in form.arguments if name in needed or not draw(_MOSTLY)]
    return {name: draw(known.get(name, _TEXTS if name in needed else _SCALARS)) for name in names}


@st.composite
def cases(draw: st.DrawFn, operation: Any, world: World) -> Any:
    """What schemathesis makes of the document, most of the time about something that is there. The first example of
    each, which is made of first choices, is about something of `other`'s."""
    mode = draw(st.sampled_from([GenerationMode.POSITIVE, GenerationMode.POSITIVE, GenerationMode.NEGATIVE]))
    case = draw(operation.as_strategy(generation_mode=mode))
    for name in list(case.path_parameters or {}):
        found = world.parameters(operation.path, name)
        if found and (draw(_MOSTLY) or "tokens" in operation.path or "users" in operation.path):
            case.path_parameters[name] = draw(st.sampled_from(found))
    if operation.path.endswith("/ledger/{verb}") and (verb := case.path_parameters["verb"]) in VERBS and draw(_MOSTLY):
        case.body = draw(wired(verb, world))
    elif isinstance(case.body, dict):
        for field in ("name", "task"):
            if isinstance(case.body.get(field), str) and "users" not in operation.path and draw(_MOSTLY):
                case.body[field] = draw(st.sampled_from(NAMES["task"]))
    return case


@pytest.fixture
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.mark.chaos
@pytest.mark.timeout(600)
@pytest.mark.requirement("K106")
def test_the_whole_document(serve_sqlite: Serve, loop: asyncio.Runner):
    """K106: whatever is asked, and in whatever way, the word that is in all of `other`'s things is in no answer to
    `user`, nor to nobody."""
    play_document(serve_sqlite, loop, examples=sized(small=2, full=10))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_whole_document_on_postgresql(postgres_url: str, loop: asyncio.Runner):
    """What one database takes the other may not: NUL, numbers beyond 64 bits, instants beyond the calendar."""
    play_document(Serve(postgres_url), loop, examples=6)


def play_document(serve: Serve, loop: asyncio.Runner, *, examples: int) -> None:
    serving = routed(serve)
    server = loop.run(serving.__aenter__())
    seen = Counter[tuple[str, int]]()
    try:
        world = loop.run(make_world(server))
        schema = schemathesis.openapi.from_dict(server.api.openapi())
        for found in schema.get_all_operations():
            assert isinstance(found, Ok), found
            operation = found.ok()

            @seed(SEED)  # by itself hypothesis would take one from the text of `play`, and read that for every example
            @settings(
                derandomize=False,
                max_examples=examples * (10 if "ledger" in operation.path else 1),  # many verbs behind one route
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=cases(operation, world))
            def play(case: Any) -> None:
                for caller in CALLERS:
                    answer = loop.run(send(server.of(caller), case))
                    seen[caller, answer.status_code // 100] += 1
                    case.validate_response(answer, checks=CHECKS)
                    if caller in ("user", "nobody"):
                        assert MARK not in answer.text, f"{answer.request.method} {answer.request.url}: {answer.text}"

            play()
        # It was about something: whoever has a role got answers, and nobody got none.
        assert all(seen[caller, 2] > 10 for caller in CALLERS if caller != "nobody"), seen
        assert seen["nobody", 2] < 20, seen
    finally:
        loop.run(serving.__aexit__(None, None, None))


_SENT = ("method", "url", "headers", "params", "json", "data", "files", "cookies")


async def send(client: httpx.AsyncClient, case: Any) -> httpx.Response:
    kwargs = case.as_transport_kwargs(base_url=BASE)
    made = requests.Request(
        **{
            name: kwargs.get(name)
            for name in ("method", "url", "headers", "params", "json", "data", "files", "cookies")
        }
    ).prepare()
    headers = {name: value for name, value in made.headers.items() if name.lower() not in ("authorization", "host")}
    try:
        return await client.request(made.method or "", made.url or "", content=made.body, headers=headers)
    finally:
        client.cookies.clear()
