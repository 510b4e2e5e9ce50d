"""Values of which one is made per task."""

from dataclasses import dataclass, field
from typing import dataclass_transform


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def value[T](definition: type[T]) -> type[T]:
    """Like `@dataclass(frozen=True, slots=True, kw_only=True)`, kept frozen by the type checker alone.

    At run time `frozen` sets every field through `object.__setattr__`: six times the cost of making one, and most of
    what a settlement cost.
    """
    return dataclass(slots=True, kw_only=True, unsafe_hash=True)(definition)
