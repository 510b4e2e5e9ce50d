"""A server in a process of its own: `python -m tests.server.live.server_process URL PORT`. It says its port."""

import sys

from headrace import App
from headrace.server.listening import listen
from headrace.server.options import ServerOptions
from headrace.server.running import run


def main() -> None:
    url, port = sys.argv[1], int(sys.argv[2])
    listener = listen("127.0.0.1", port)
    options = ServerOptions(auth=False, requests_per_minute=0)
    raise SystemExit(run(App(url), options, listener, serving=lambda: print(listener.getsockname()[1], flush=True)))


if __name__ == "__main__":
    main()
