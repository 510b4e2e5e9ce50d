"""A process that ends with its parent, however that ends, even while a C call holds the GIL. By the kernel's means:
where it has none (only Linux does), whoever uses this must notice the end of a pipe or socket as well.

Imports the standard library alone: the launcher of commands loads this file without its package.
"""

import ctypes
import os
import signal
from typing import Any

_PR_SET_PDEATHSIG = 1
_prctl: Any = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)


def die_with_parent(parent: int) -> None:
    """From now on SIGKILL when `parent` ends; at once where it has ended already. `parent` means the thread of it that
    forked: start such a process on a thread that lives as long as the parent does.
    """
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def outlive_parent() -> None:
    """Undo `die_with_parent`: from now on something else tells of the parent's death."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, 0)
