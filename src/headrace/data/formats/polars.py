"""Frames of polars."""

from typing import Any, cast

import polars


def arrow_table(frame: Any) -> Any:
    if isinstance(frame, polars.LazyFrame):
        return cast("Any", frame).collect().to_arrow()
    return frame.to_arrow()


def frame_of(table: Any) -> Any:
    return cast("Any", polars).from_arrow(table)
