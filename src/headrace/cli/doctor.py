"""`headrace doctor`: what is wrong, and how to mend it."""

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.failures import FAILED
from headrace.cli.helping import examples
from headrace.cli.output import console, print_json, redacted
from headrace.cli.target import Database, Json, Namespace, place_of

if TYPE_CHECKING:
    from headrace.cli.diagnosis.findings import Finding

EPILOG = examples(
    "headrace doctor tasks:app",
    "headrace doctor --database postgresql://me@localhost/shop",
    "headrace doctor --database https://headrace.example.com",
    "headrace doctor tasks:app --json --thorough",
)
_MARKS = {"ok": "[green]ok     [/]", "warning": "[yellow]warning[/]", "problem": "[bold red]problem[/]"}


def doctor(
    target: Annotated[
        str | None,
        typer.Argument(
            help="Where your App is, as module:attribute: then also its names of tasks and its settings are looked at.",
            show_default=False,
        ),
    ] = None,
    thorough: Annotated[
        bool, typer.Option("--thorough", help="Read the whole ledger for its invariants, however large it is.")
    ] = False,
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """Look at everything that tasks need, and say what is wrong and how to mend it.

    Of a server (https://…) that is whether it answers, its version, its token, the clocks, queues, workers and
    schedules; the rest needs the database. Exit code 1 when there is a problem; a warning alone gives 0. It changes
    nothing.
    """
    import asyncio

    from headrace.cli.diagnosis.visit import visit

    url, namespace = ("", name) if target is not None else place_of(database, name)

    async def gather() -> "list[Finding]":
        findings: list[Finding] = []
        async for found in visit(url, namespace, target, thorough=thorough):
            finding = found if target is None else _for(found, target)
            findings.append(finding)
            if not json:
                _print(finding)
        return findings

    findings = asyncio.run(gather())
    wrong = sum(finding.level == "problem" for finding in findings)
    warnings = sum(finding.level == "warning" for finding in findings)
    if json:
        print_json({"healthy": not wrong, "findings": findings})
    else:
        console.print(f"\nproblems: {wrong}, warnings: {warnings}" if wrong or warnings else "\nnothing is wrong")
    if wrong:
        raise typer.Exit(FAILED)


def _for(finding: "Finding", target: str) -> "Finding":
    """With the App of this command line in the commands that mend."""
    from dataclasses import replace

    return replace(finding, mend=finding.mend.replace("MODULE:APP", target)) if finding.mend else finding


def _print(finding: "Finding") -> None:
    from rich.markup import escape

    console.print(f"{_MARKS[finding.level]}  [bold]{escape(finding.check)}[/]: {escape(redacted(finding.what))}")
    if finding.mend:
        console.print(f"         -> {escape(finding.mend)}")
