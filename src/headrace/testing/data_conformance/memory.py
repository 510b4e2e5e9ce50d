"""Memory does not grow with the table."""

from headrace.testing.data_conformance.case import Cases
from headrace.testing.data_conformance.stand import Stand

cases = Cases("memory")


@cases.add(needs_url=True)
def a_table_is_streamed_both_ways(stand: Stand) -> None:
    """A process writes and reads a table of which nothing can be compressed, and grows by less than half of it, or by
    what a few row groups and the library's own buffers take."""
    with stand.away():
        grown = int(stand.ask("stream", "obj_a", stand.megabytes))
    assert stand.meta("obj_a").bytes > stand.megabytes * 900_000
    ceiling = max(stand.megabytes // 2, 96)
    assert grown < ceiling, f"a table of {stand.megabytes} MB made the process grow by {grown} MB"
