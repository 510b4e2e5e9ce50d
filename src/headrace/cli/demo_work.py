"""Two things that `headrace demo` shows: a graph in lines, and a map over a table."""

import asyncio
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from headrace.cli.failures import FAILED, CommandError
from headrace.cli.target import with_store

if TYPE_CHECKING:
    from headrace.app import App
    from headrace.store.base import Store

_PATIENCE = 60.0
_ROWS, _CHUNK = 12_000, 1_000


def picture_of(url: str, name: str, job: int) -> Sequence[str]:
    """What `headrace jobs show` prints of a job's graph, in Rich's markup."""
    from headrace.cli.graph.drawing import Frame, draw
    from headrace.cli.graph.folding import condensed
    from headrace.cli.graph.reading import folded, the_job

    async def read(store: "Store") -> list[str]:
        record, now = await the_job(store, job), await store.now()
        graph = condensed(await folded(store, record, whole=False), widest=12, most=20)
        return ["".join(map(_marked, line)) for line in draw(graph, Frame(now=now.timestamp()))]

    return with_store(url, name, read)


def _marked(span: tuple[str, str]) -> str:
    text, style = span
    return f"[{style}]{escape(text)}[/]" if style else escape(text)


class DemoTable:
    """A map over a table, where the libraries for tables are installed."""

    def __init__(self, app: "App", function: Callable[[Any], Any]) -> None:
        self.chunks = 0
        if find_spec("pyarrow") is None:
            return
        self._app = app
        self.chunks = _ROWS // _CHUNK
        rows = app.data.create([{"id": n, "price": n / 100} for n in range(_ROWS)])
        self._future = asyncio.run(_mapped(rows, function))

    def is_in_the_middle(self) -> bool:
        return not self.chunks or self._app.jobs.get(self._future.job_id).completed >= 2

    def finished(self, say: Callable[[str], None]) -> int | None:
        """How many rows came out; each once, and in their order."""
        if not self.chunks:
            say("   … a map over a table would be shown here, too: pip install 'headrace\\[data]'")
            return None
        made = self._future.result(timeout=_PATIENCE)
        ids = asyncio.run(made.to_arrow())["id"].to_pylist()
        if ids != list(range(_ROWS)):
            raise CommandError(f"a map over {_ROWS} rows gave {len(ids)} of them, or in another order", code=FAILED)
        say(f"   … the map over a table of {_ROWS:,} rows is [green]complete, and in order[/]")
        return len(ids)


async def _mapped(rows: Any, function: Callable[[Any], Any]) -> Any:
    return await rows.map(function, chunk_size=_CHUNK, mode="arrow")
