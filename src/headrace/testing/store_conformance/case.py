"""One case, and how it is run."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from headrace.core.clock import FakeClock
from headrace.store.base import Store
from headrace.store.checker import WARNINGS
from headrace.testing.store_conformance.ledger import Ledger

type Proof = Callable[[Ledger], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    concern: str
    name: str
    proof: Proof
    requirements: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.concern}-{self.name}"


class Cases:
    """The cases of one concern, in the order in which they are written."""

    def __init__(self, concern: str) -> None:
        self._concern = concern
        self._cases: list[Case] = []

    def __iter__(self) -> Iterator[Case]:
        return iter(self._cases)

    def add(self, *requirements: str) -> Callable[[Proof], Proof]:
        """Decorator. The requirement lines are those that the case proves; its docstring says how."""

        def register(proof: Proof) -> Proof:
            name = getattr(proof, "__name__", "case")
            self._cases.append(Case(concern=self._concern, name=name, proof=proof, requirements=requirements))
            return proof

        return register


async def exercise(case: Case, make_store: Callable[[], Store], *, clock: FakeClock | None = None) -> None:
    """Run one case. Every call of `make_store` gives another store on the same, empty database.

    `clock` is the clock of those stores where they take one; without it time passes by itself.
    """
    ledger = Ledger(make_store, clock)
    await ledger.open()
    try:
        await case.proof(ledger)
        broken = [violation for violation in await ledger.store.check() if violation.rule not in WARNINGS]
        assert broken == [], f"{case} left the ledger broken: {broken}"
    finally:
        await ledger.close()
