"""One case, and how it is run."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from headrace.data.backend import Backend
from headrace.testing.data_conformance.stand import Stand

type Proof = Callable[[Stand], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    concern: str
    name: str
    proof: Proof
    requirements: tuple[str, ...] = ()
    needs_url: bool = False  # other processes are part of it

    def __str__(self) -> str:
        return f"{self.concern}-{self.name}"


class Cases:
    """The cases of one concern, in the order in which they are written."""

    def __init__(self, concern: str) -> None:
        self._concern = concern
        self._cases: list[Case] = []

    def __iter__(self) -> Iterator[Case]:
        return iter(self._cases)

    def add(self, *requirements: str, needs_url: bool = False) -> Callable[[Proof], Proof]:
        """Decorator. The requirement lines are those that the case proves; its docstring says how."""

        def register(proof: Proof) -> Proof:
            name = getattr(proof, "__name__", "case")
            self.put(name, proof, *requirements, needs_url=needs_url)
            return proof

        return register

    def put(self, name: str, proof: Proof, *requirements: str, needs_url: bool = False) -> None:
        self._cases.append(
            Case(concern=self._concern, name=name, proof=proof, requirements=requirements, needs_url=needs_url)
        )


def exercise(
    case: Case,
    make_backend: Callable[[], Backend],
    *,
    url: str | None = None,
    refused: frozenset[str] = frozenset(),
    megabytes: int = 64,
) -> None:
    """Run one case. Every call of `make_backend` gives another backend on the same, empty place.

    `url` is what another process opens (headrace.data.places.open_backend). `refused` are the shapes of
    `data_conformance.shapes` that the backend says it cannot store. `megabytes` is the size of the case about memory.
    """
    stand = Stand(make_backend, url=url, refused=refused, megabytes=megabytes)
    try:
        case.proof(stand)
    finally:
        stand.close()
