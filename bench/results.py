"""What was measured, as values and as JSON: one file per part, so that a part can be measured again alone."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from bench.required import PARTS, PartName

DIRECTORY = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The runs of one subject."""

    label: str
    unit: str
    median: float
    low: float
    high: float
    runs: int

    @classmethod
    def of(cls, label: str, unit: str, values: Sequence[float]) -> Self:
        ordered = sorted(values)
        middle = len(ordered) // 2
        median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
        return cls(label=label, unit=unit, median=median, low=ordered[0], high=ordered[-1], runs=len(ordered))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A value that a requirement may bound, and the series it comes from. `value` None: it could not be measured."""

    value: float | None
    series: tuple[Series, ...] = ()
    remark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartResult:
    part: PartName
    size: str
    pairs: int
    day: str
    machine: Mapping[str, str]
    versions: Mapping[str, str]
    durability: Mapping[str, str]
    busy_before: float  # percent of the processors that others used, median before the runs
    measures: Mapping[str, Measure]
    beside: Sequence[Series] = ()  # shown without a requirement
    failures: Sequence[str] = field(default_factory=tuple)

    def to_json(self) -> str:
        return json.dumps(_rounded(asdict(self)), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        data: dict[str, Any] = json.loads(text)
        data["measures"] = {
            name: Measure(
                value=found["value"], remark=found["remark"], series=tuple(Series(**each) for each in found["series"])
            )
            for name, found in data["measures"].items()
        }
        data["beside"] = tuple(Series(**each) for each in data["beside"])
        data["failures"] = tuple(data["failures"])
        return cls(**data)


def store(result: PartResult, directory: Path = DIRECTORY) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{result.part}.json"
    path.write_text(result.to_json())
    return path


def load(directory: Path = DIRECTORY) -> dict[PartName, PartResult]:
    """The latest results of every part that has some."""
    paths = {part: directory / f"{part}.json" for part in PARTS}
    return {part: PartResult.from_json(path.read_text()) for part, path in paths.items() if path.exists()}


def _rounded(value: Any) -> Any:
    """Six digits say all there is, and keep changes of the files readable."""
    match value:
        case float():
            return float(f"{value:.6g}")
        case dict():
            return {key: _rounded(each) for key, each in value.items()}
        case list() | tuple():
            return [_rounded(each) for each in value]
        case _:
            return value
