"""Whether a ledger has moved away (`headrace db move`), for those who would wait in vain at the old one."""

from headrace.store.base import Movable, Store
from headrace.store.connect import masked_url


async def moved_to(store: Store) -> str | None:
    """Where, for people to read; None of a ledger that is where it was."""
    if not isinstance(store, Movable):
        return None
    url = (await store.trace(())).moved_to
    return None if url is None else masked_url(url)
