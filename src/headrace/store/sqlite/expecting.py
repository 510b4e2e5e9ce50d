"""Of the tasks that an act names, those that are as they are expected. The write lock keeps them so."""

from collections.abc import Sequence

import orjson

from headrace.store.expecting import Expected
from headrace.store.instants import to_micros
from headrace.store.sqlite.connection import Transaction
from headrace.store.sqlite.ending import ids_json


def as_expected(transaction: Transaction, ids: Sequence[int], expected: Expected | None) -> Sequence[int]:
    if expected is None:
        return ids
    states = orjson.dumps([state.value for state in expected.states]).decode()
    parameters = {"ids": ids_json(ids), "states": states, "until": to_micros(expected.until)}
    return [id for query in ("expected_live", "expected_ended") for (id,) in transaction.rows(query, parameters)]
