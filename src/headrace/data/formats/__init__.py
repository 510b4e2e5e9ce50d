"""What tables are kept in, and what they are made of. An optional library is imported only in the file of its name."""

from importlib import import_module
from types import ModuleType

from headrace.core.errors import MissingExtra


def loaded(library: str) -> ModuleType:
    """The file of an optional library that no extra brings; MissingExtra says how to get it."""
    try:
        return import_module(f"headrace.data.formats.{library}")
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise MissingExtra(f"this needs {library}, which is not installed: pip install {library}") from error
