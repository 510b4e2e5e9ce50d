"""Runs the Python blocks of one page in one namespace: `python interpreter.py REPLY_FD`, one JSON request a line.

A request is {"code", "name", "line"}, or {"forget": "tasks"} when the page has written a module anew. `await` may stand
at the top level, as in a notebook. What the block prints goes to the reply.
"""

import ast
import asyncio
import contextlib
import importlib
import inspect
import io
import json
import os
import sys
import traceback


def run(request: dict[str, object], namespace: dict[str, object], runner: asyncio.Runner) -> None:
    tree = compile(
        "\n" * (int(str(request["line"]))) + str(request["code"]),
        str(request["name"]),
        "exec",
        flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
        dont_inherit=True,
    )
    if not tree.co_flags & inspect.CO_COROUTINE:
        exec(tree, namespace)
        return

    async def awaited() -> None:
        await eval(tree, namespace)

    runner.run(awaited())


def main() -> None:
    sys.path.insert(0, os.getcwd())
    # Functions of the page are looked up by their module, as in a script.
    namespace: dict[str, object] = sys.modules["__main__"].__dict__.copy()
    namespace["__name__"] = "page"
    namespace["__file__"] = os.path.join(os.getcwd(), "page.py")
    with open(int(sys.argv[1]), "w", encoding="utf-8") as replies, asyncio.Runner() as runner:
        for line in sys.stdin:
            request = json.loads(line)
            printed = io.StringIO()
            error = None
            if "forget" in request:
                sys.modules.pop(request["forget"], None)
                importlib.invalidate_caches()
            else:
                with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                    try:
                        run(request, namespace, runner)
                    except BaseException:
                        error = traceback.format_exc()
            replies.write(json.dumps({"error": error, "printed": printed.getvalue()}) + "\n")
            replies.flush()


if __name__ == "__main__":
    main()
