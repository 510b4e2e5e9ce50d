"""A claim reads its tasks as one text; whatever a payload is, it comes back as it was written."""

from pathlib import Path

import pytest

from headrace.core.clock import FakeClock
from headrace.store.base import StoreOptions
from headrace.store.sqlite import SQLiteStore, claiming
from headrace.testing.store_conformance.ledger import Ledger, task

AWKWARD = (
    '{"quote":"\\"","backslash":"\\\\","control":"\\u0001\\n","wide":"\N{SNOWMAN}\N{GRINNING FACE}"}',
    "[1,2.5,null,true]",
    f'{{"n":{2**63 - 1}}}',
    '"' + "\\\\" * 20_000 + '"',  # longer than what is read together with others
    '{"after":"the long one"}',
)


async def test_payloads_come_back_as_they_were_written(tmp_path: Path) -> None:
    ledger = Ledger(lambda: SQLiteStore(str(tmp_path / "ledger.db"), StoreOptions()), FakeClock())
    await ledger.open()
    try:
        options = '{"metadata":{"quote":"\\""}}'
        await ledger.enqueue(*[task(arguments=text, options=options) for text in AWKWARD])
        claims = await ledger.claim()
        assert [claim.arguments for claim in claims] == list(AWKWARD)
        assert {claim.options for claim in claims} == {options}
        assert [(type(claim.gated), type(claim.waited), claim.job) for claim in claims] == [(int, float, None)] * 5
    finally:
        await ledger.close()


async def test_long_payloads_are_not_gathered_in_one_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many tasks wait: SQLite refuses a text of a billion bytes, and with it would go the whole claim."""
    texts: list[int] = []
    real = claiming.orjson.loads

    def loads(text: str) -> object:
        texts.append(len(text))
        return real(text)

    monkeypatch.setattr(claiming.orjson, "loads", loads)
    ledger = Ledger(lambda: SQLiteStore(str(tmp_path / "ledger.db"), StoreOptions()), FakeClock())
    await ledger.open()
    try:
        await ledger.enqueue(*[task(arguments='"' + "x" * 100_000 + '"') for _ in range(50)])
        texts.clear()
        assert len(await ledger.claim()) == 50
        assert texts
        assert max(texts) < 50_000
    finally:
        await ledger.close()
