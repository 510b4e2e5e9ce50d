"""Interleaved runs: the best configuration of each side first, then ours and theirs in turn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.results import Measure, Series
from bench.sizes import Size
from bench.stage import Stage
from bench.statistics import median, pair_ratio
from bench.subjects import Subject

_MORE_TRIES = 2  # a run that fails is tried again, so that one bad start does not cost a whole measure


@dataclass(slots=True, kw_only=True)
class Bench:
    """What a part gets: where to run, how much, and whom to tell."""

    stage: Stage
    size: Size
    pairs: int
    console: Console
    progress: Progress
    failures: list[str] = field(default_factory=list[str])
    _bar: int = 0

    def begin(self, part: str, runs: int) -> None:
        """`runs` is how many there will be at most."""
        self._bar = self.progress.add_task(part, total=runs)

    def attempt[T](self, what: str, run: Callable[[], T]) -> T | None:
        """One run; a failure is written down and gives no figure."""
        self.progress.update(self._bar, description=what)
        try:
            return run()
        except Exception as error:  # whatever a peer may do: an hour of other figures is not lost for it
            self.failures.append(f"{what}: {_one_line(error)}")
            self.console.print(f"[red]failed[/] {what}: {_one_line(error)}", highlight=False)
            return None
        finally:
            self.progress.advance(self._bar)

    def end(self) -> None:
        self.progress.remove_task(self._bar)

    def best[T](self, subjects: Sequence[Subject], run: Callable[[Subject], T], key: Callable[[T], float]) -> Subject:
        """The configuration with the highest figure, the first one where nobody has a figure or nobody is asked.

        By turns, as everything is compared here: a slow minute of the machine is nobody's own.
        """
        if len(subjects) == 1 or not self.size.pilots:
            return subjects[0]
        figures: list[list[float]] = [[] for _ in subjects]
        for _ in range(self.size.pilots):
            for subject, found in zip(subjects, figures, strict=True):
                ran = self.attempt(f"pilot of {subject.label}", lambda subject=subject: run(subject))
                found += [] if ran is None else [key(ran)]
        medians = [median(found) or 0.0 for found in figures]
        return subjects[medians.index(max(medians))]

    def pair[T](self, ours: Subject, theirs: Subject, run: Callable[[Subject], T]) -> list[tuple[T, T]]:
        """Ours, theirs, ours, theirs, …: only whole pairs count."""
        found: list[tuple[T, T]] = []
        for _ in range(self.pairs + _MORE_TRIES):
            what = f"{ours.label} | {theirs.label}"
            one = self.attempt(f"{what}: ours", lambda: run(ours))
            other = self.attempt(f"{what}: theirs", lambda: run(theirs))
            if one is not None and other is not None:
                found.append((one, other))
            if len(found) == self.pairs:
                break
        return found

    def alone[T](self, subject: Subject, run: Callable[[Subject], T], *, runs: int | None = None) -> list[T]:
        found = [self.attempt(subject.label, lambda: run(subject)) for _ in range(runs or self.pairs)]
        return [each for each in found if each is not None]


def ratio(
    ours: Subject, theirs: Subject, pairs: Sequence[tuple[float, float]], *, unit: str, wanted: int, remark: str = ""
) -> Measure:
    """The measure of interleaved pairs; without as many as were asked for there is no value."""
    if not pairs:
        return Measure(value=None, remark=remark)
    mine, others = [one for one, _ in pairs], [other for _, other in pairs]
    return Measure(
        value=pair_ratio(mine, others) if len(pairs) >= wanted else None,
        series=(Series.of(ours.label, unit, mine), Series.of(theirs.label, unit, others)),
        remark=remark,
    )


def progress_bar(console: Console) -> Progress:
    return Progress(
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        console=console,
    )


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[-400:] or type(error).__name__
