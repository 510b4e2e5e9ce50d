"""How much memory a process has in use now."""

import resource
from pathlib import Path

_PAGE = resource.getpagesize()


def resident(pid: int | str = "self") -> int | None:
    """Resident bytes as the kernel says; None where it does not, or the process is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return None
