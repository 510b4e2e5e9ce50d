"""A task, its result, and a task that needs a second attempt."""

import sys

from headrace import App, Retry, current

app = App("sqlite:///first_task.db")


@app.task
async def greet(name: str) -> str:
    return f"hello {name}"


@app.task(retry=Retry(max_attempts=3, backoff="fixed", base=0))
def fetch(page: int) -> dict[str, int]:
    """Runs in a child process, because it is a plain function."""
    if current.attempt == 1:
        raise ConnectionError("the first call never comes through")
    return {"page": page, "attempt": current.attempt}


if __name__ == "__main__":
    if "--results" in sys.argv:
        for record in app.tasks.list():
            print(record.name, record.state, record.result)
    else:
        greet.enqueue(name="world")
        fetch.enqueue(page=1)
