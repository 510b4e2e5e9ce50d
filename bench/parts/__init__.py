"""The parts of the benchmark, one a module, each with a function `measure(bench)`."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.comparing import Bench
from bench.required import PartName
from bench.results import Measure, Series


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    measures: Mapping[str, Measure]
    beside: Sequence[Series] = ()


type Part = Callable[[Bench], Measured]


def load_part(name: PartName) -> Part:
    """Imported when it is asked for: a part may need what another machine lacks."""
    return importlib.import_module(f"bench.parts.{name}").measure
