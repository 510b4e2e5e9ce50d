"""`python -m bench`: measure some parts, store and show the results; 1 when a requirement of them is not met."""

import argparse
import signal
import sys
from datetime import UTC, datetime

from rich.console import Console

from bench import machine, report, results
from bench.comparing import Bench, progress_bar
from bench.parts import load_part
from bench.processes import ROOT
from bench.required import PARTS, PartName
from bench.results import PartResult
from bench.services import Services, running_services
from bench.sizes import FULL, SIZES, SMOKE, Size
from bench.stage import Stage
from bench.statistics import median

_LEAST_PAIRS = 5
_SMOKE_RESULTS = ROOT / ".cache" / "bench" / "smoke"


def main() -> int:
    arguments = _arguments()
    # An end that is asked for leaves no server and no worker behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    size, console = SIZES[arguments.size], _console()
    parts: list[PartName] = [part for part in PARTS if part in arguments.parts]
    directory = _SMOKE_RESULTS if size is SMOKE else results.DIRECTORY
    if parts:
        with running_services() as services:
            _say_what_is_missing(console, services)
            for part in parts:
                results.store(_measure(part, services, size, arguments.pairs, console), directory)
    found = results.load(directory)
    if not found:
        console.print(f"nothing is stored for the {size.name} size yet: make bench PARTS=drain")
        return 1
    parts = parts or list(found)
    console.print(report.table(found, parts))
    console.print("\n".join(report.conditions(found, parts)), highlight=False, style="dim")
    report.write_page(found, directory / "performance.md" if size is SMOKE else report.PAGE)
    return _exit_code(console, found, parts, size)


def _measure(part: PartName, services: Services, size: Size, pairs: int, console: Console) -> PartResult:
    stage = Stage(services=services, calm=size.calm)
    with progress_bar(console) as progress:
        bench = Bench(stage=stage, size=size, pairs=pairs, console=console, progress=progress)
        measured = load_part(part)(bench)
    return PartResult(
        part=part,
        size=size.name,
        pairs=pairs,
        day=datetime.now(UTC).date().isoformat(),
        machine=machine.machine(),
        versions=machine.versions(services),
        durability=services.durability(),
        busy_before=median(stage.busy) or 0.0,
        measures=measured.measures,
        beside=measured.beside,
        failures=bench.failures,
    )


def _exit_code(console: Console, found: dict[PartName, PartResult], parts: list[PartName], size: Size) -> int:
    if size is SMOKE:  # its figures mean nothing; that everything ran does
        failures = [failure for part in parts for failure in found[part].failures]
        console.print(f"[red]{len(failures)} runs failed[/]" if failures else "everything ran; no figure here counts")
        return 1 if failures else 0
    short = report.missed(found, parts)
    for requirement in short:
        console.print(f"[red]not met[/] {requirement.part}: {requirement.what}", highlight=False)
    return 1 if short else 0


def _console() -> Console:
    """A log has no width of its own, and the table needs one."""
    return Console() if sys.stdout.isatty() else Console(width=180)


def _say_what_is_missing(console: Console, services: Services) -> None:
    if services.postgres is None:
        console.print("[yellow]no PostgreSQL server was found[/]: what needs one is not measured")
    if services.redis is None:
        console.print(
            "[yellow]no redis-server was found[/] (Debian: apt install redis-server): Dramatiq and Celery are left out"
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument(
        "--parts", nargs="*", choices=PARTS, default=PARTS, help="which parts (all); none: only write the page"
    )
    parser.add_argument("--pairs", type=int, default=None, help="interleaved pairs (5; smoke: 1)")
    parser.add_argument("--size", choices=SIZES, default=FULL.name, help="smoke only shows that everything runs")
    arguments = parser.parse_args()
    least = 1 if arguments.size == SMOKE.name else _LEAST_PAIRS
    arguments.pairs = arguments.pairs or least
    if arguments.pairs < least:
        parser.error(f"{arguments.pairs} pairs are too few: a median needs at least {least}")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
