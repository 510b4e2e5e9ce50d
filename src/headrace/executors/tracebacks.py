"""Tracebacks as text, without the engine's own frames.

To format one costs 0.15 ms, most of it for the marks below each line. In a storm of failures it is always the same few,
so the lines of a stack are kept by the places in the code that it went through.
"""

import traceback
from types import CodeType, TracebackType
from typing import Final

from headrace.core.classification import class_path

_KEPT: Final = 256  # stacks
_DEEPEST: Final = 50  # frames of one that is kept
# What these say of themselves depends on more than their stack and their text.
_TELLING: Final = (BaseExceptionGroup, SyntaxError, NameError, AttributeError, ImportError)

# By the identity of code and the place in it; the code is kept, too, so that no other gets its identity.
_lines: dict[tuple[tuple[int, int], ...], tuple[str, list[CodeType]]] = {}


def traceback_of(error: BaseException) -> str:
    try:
        frames = _user_frames(error)
        if frames is None or not _stands_alone(error):
            return "".join(traceback.format_exception(type(error), error, frames))
        stack, says = _stack(frames), traceback.format_exception_only(type(error), error)
        return "".join(("Traceback (most recent call last):\n", stack, *says))
    except BaseException as broken:  # a hostile __str__ or a broken source file must not hide the failure
        frames = "".join(traceback.format_tb(error.__traceback__))
        return f"{frames}{class_path(type(error))} (its traceback cannot be shown: {type(broken).__qualname__})"


def _user_frames(error: BaseException) -> TracebackType | None:
    """The traceback without the executor's own frames at its top, unless there is nothing else."""
    found = error.__traceback__
    while found is not None and found.tb_frame.f_globals.get("__name__", "").startswith("headrace.executors."):
        found = found.tb_next
    return found if found is not None else error.__traceback__


def _stands_alone(error: BaseException) -> bool:
    """Its text is its stack and what it says itself."""
    return (
        error.__cause__ is None
        and (error.__context__ is None or error.__suppress_context__)
        and not isinstance(error, _TELLING)
    )


def _stack(frames: TracebackType) -> str:
    places: list[tuple[int, int]] = []
    codes: list[CodeType] = []
    frame: TracebackType | None = frames
    while frame is not None:
        code = frame.tb_frame.f_code
        places.append((id(code), frame.tb_lasti))
        codes.append(code)
        frame = frame.tb_next
    known = _lines.get(key := tuple(places))
    if known is not None:
        return known[0]
    text = "".join(traceback.format_tb(frames))
    if len(codes) <= _DEEPEST:
        if len(_lines) >= _KEPT:
            _lines.clear()
        _lines[key] = text, codes
    return text
