"""headrace's own server: its whole API, with users and a token, on a ledger that commits before it answers."""

import os
import sys

from bench import record
from bench.adapters import OPTIONS, URL
from bench.adapters.api_secret import SECRET
from headrace import App
from headrace.client.accounts import digest_of, hint_of
from headrace.core.accounts import NewToken, Role, Scope

app = App(URL or None)


@app.task(name="noop")
async def noop(sent: float) -> None:
    record.hit(sent)


async def setup() -> None:
    await app.aupgrade()
    token = NewToken(
        user="bench", kind="api", label="bench", digest=digest_of(SECRET), hint=hint_of(SECRET), scopes=tuple(Scope)
    )
    await app.engine.run(lambda store: store.add_user("bench", Role.OPERATOR))
    await app.engine.run(lambda store: store.add_token(token))
    await app.aclose()


def worker() -> None:
    """Not a worker but the server: what the other side of the benchmark talks to."""
    flags = ["--host", "127.0.0.1", "--port", str(OPTIONS["port"]), "--log-level", "error"]
    environ = {**os.environ, "HEADRACE_RATE_LIMIT": "0"}
    os.execve(
        sys.executable,
        [sys.executable, "-m", "headrace.cli", "server", "bench.adapters.api_headrace:app", *flags],
        environ,
    )
