"""Logs: lines in order, each kept once."""

from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import Ledger, completed, failed, ref

cases = Cases("logs")


@cases.add()
async def lines_are_read_in_order(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.store.append_logs([(ref(claim), n, "stdout", f"line {n}") for n in (2, 0, 1)])
    await ledger.store.append_logs([(ref(claim), 3, "stderr", "Grüße\nzwei")])
    await ledger.store.append_logs([])
    lines = await ledger.store.logs(task_id)
    assert [(line.seq, line.stream, line.line) for line in lines] == [
        (0, "stdout", "line 0"), (1, "stdout", "line 1"), (2, "stdout", "line 2"), (3, "stderr", "Grüße\nzwei"),
    ]  # fmt: skip
    assert [line.seq for line in await ledger.store.logs(task_id, after=1)] == [2, 3]
    assert [line.seq for line in await ledger.store.logs(task_id, limit=2)] == [0, 1]


@cases.add()
async def a_line_written_twice_is_kept_once(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    lines = [(ref(claim), 0, "stdout", "one"), (ref(claim), 1, "stdout", "two")]
    await ledger.store.append_logs(lines)
    await ledger.store.append_logs([*lines, (ref(claim), 2, "stdout", "three")])
    await ledger.finish("a", completed(claim))
    assert [line.line for line in await ledger.store.logs(task_id)] == ["one", "two", "three"]


@cases.add()
async def each_attempt_has_its_own(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.store.append_logs([(ref(claim), 0, "stdout", "first")])
    await ledger.finish("a", failed(claim))
    again = await ledger.claim_due()
    await ledger.store.append_logs([(ref(again), 0, "stdout", "second")])
    assert [line.line for line in await ledger.store.logs(task_id, claim_no=again.claim_no)] == ["second"]
    assert [line.line for line in await ledger.store.logs(task_id)] == ["first", "second"]


@cases.add()
async def lines_that_text_columns_refuse(ledger: Ledger) -> None:
    """NUL and half a surrogate pair, in the middle of good lines."""
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    bad = ["good", "nul \0 inside", "half \ud800 pair", "good again"]
    await ledger.store.append_logs([(ref(claim), n, "stdout", line) for n, line in enumerate(bad)])
    kept = [line.line for line in await ledger.store.logs(task_id)]
    assert len(kept) == 4
    assert (kept[0], kept[3]) == ("good", "good again")
    assert "inside" in kept[1]
    assert "pair" in kept[2]


@cases.add()
async def page_by_page_over_all_attempts(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    expected: list[tuple[int, int]] = []
    for _ in range(3):
        claim = await ledger.claim_due()
        await ledger.store.append_logs([(ref(claim), n, "stdout", str(n)) for n in range(3)])
        expected += [(claim.claim_no, n) for n in range(3)]
        await ledger.finish("a", failed(claim))
    found: list[tuple[int, int]] = []
    while page := await ledger.store.logs(task_id, seen=found[-1] if found else None, limit=2):
        assert len(page) <= 2
        found += [(line.claim_no, line.seq) for line in page]
    assert found == expected
