"""The task that `headrace bench` runs: nothing, so that what is measured is the engine and the store."""

from headrace import App

app = App()


@app.task(name="bench.nothing")
async def nothing(n: int) -> None:
    """Enqueued, claimed, run and finished."""
