"""Ids as UUIDs, for faces whose specification wants one. Pure and reversible: nothing is stored.

A UUID of version 8 (RFC 9562: the content is ours) with a mark in its first 48 bits and the number in its last 62:
task 17 is 68656164-7261-8ce0-8000-000000000011. Both forms name the same task.
"""

from uuid import UUID

_MARK = int.from_bytes(b"headra") << 16 | 0x8CE0  # the digit 8 is the version
_VARIANT = 0b10
_BITS = 62


def uuid_of(id: int) -> UUID:
    if not 0 < id < 1 << _BITS:
        raise ValueError(f"{id} is no id of a task")
    return UUID(int=_MARK << 64 | _VARIANT << _BITS | id)


def id_of(uuid: UUID) -> int | None:
    """The number that this UUID stands for; None for one that was not made here."""
    mark, rest = divmod(uuid.int, 1 << 64)
    variant, id = divmod(rest, 1 << _BITS)
    return id if (mark, variant) == (_MARK, _VARIANT) and id else None
