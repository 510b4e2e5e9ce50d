"""The API beside the supervisor of `headrace up`: a process of its own, so that a busy API never slows the worker."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from headrace.cli.serving import listening, server_options
from headrace.server.listening import listen
from headrace.worker.beside import Beside

if TYPE_CHECKING:
    from headrace.settings import Settings


def api_beside(
    target: str,
    settings: "Settings",
    said: Mapping[str, Any],
    flags: Mapping[str, bool],
    *,
    generation: int | None = None,
) -> Beside:
    """The socket is bound here: a port that is in use is told before anything runs.

    `generation`: code is reloaded, and the server of the code before answers until this one's supervisor takes over;
    so both listen for a while.
    """
    options = server_options(
        settings,
        host=said.get("--host"),
        port=said.get("--port"),
        auth=False if any(flags.values()) else None,
        open_to_all=flags.get("--no-auth-for-everyone") or None,
        trust_proxy=tuple(said.get("--trust-proxy") or ()) or None,
    )
    if generation == 1:
        listening(options, listen).close()  # whoever shares a port does not see that others have it
    listener = listening(options, listen, share=generation is not None)
    descriptor = listener.detach()
    words = [word for name, value in said.items() for each in _each(value) for word in (name, str(each))]
    words += [name for name, is_set in flags.items() if is_set]
    channel = f"{os.getpid()},{descriptor},{generation or 1}"
    return Beside(
        "the API",
        [sys.executable, "-m", "headrace.cli", "server", target, *words, "--up-channel", channel],
        descriptors=(descriptor,),
    )


def _each(value: Any) -> Sequence[Any]:
    """What a flag was given, once or several times."""
    if value is None:
        return ()
    return cast("list[Any]", value) if isinstance(value, list) else (value,)
