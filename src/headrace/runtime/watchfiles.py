"""Changes of files on disk. `watchfiles` comes with headrace[reload], and is imported only when asked for."""

from collections.abc import AsyncGenerator, Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.core.errors import SettingsError

if TYPE_CHECKING:
    from watchfiles import Change

_STEP, _LONGEST = 100, 1600  # milliseconds: a burst of saves is over after the one, or after the other at the latest


def need_watchfiles() -> None:
    if find_spec("watchfiles") is None:
        raise SettingsError("--reload needs watchfiles, which is not installed: pip install 'headrace[reload]'")


async def changes(directories: Sequence[Path], wanted: Callable[[Path], bool]) -> AsyncGenerator[set[Path]]:
    """The wanted files below `directories` that were written, moved or removed, one set for each burst."""
    from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType]

    def chosen(_: "Change", path: str) -> bool:
        return wanted(Path(path))

    try:
        async for found in awatch(*directories, watch_filter=chosen, step=_STEP, debounce=_LONGEST):
            yield {Path(path) for _, path in found}
    except OSError as error:  # no such directory; more of them than the system lets one process watch
        places = ", ".join(map(str, directories))
        raise SettingsError(f"{places} cannot be watched: {error}; name smaller folders with --reload-dir") from error
