"""Frames of pandas."""

from typing import Any, cast

import pandas
import pyarrow

pa: Any = cast("Any", pyarrow)


def arrow_table(frame: Any) -> Any:
    """An index of names or times becomes columns; the plain numbers of rows are not data."""
    plain = isinstance(frame.index, pandas.RangeIndex)
    return pa.Table.from_pandas(frame if plain else frame.reset_index(), preserve_index=False)


def frame_of(table: Any) -> Any:
    return table.to_pandas()
