"""A ledger behind a server: `App("https://host", token=…)`, for a process that cannot reach the database.

`verbs` says which verbs of the seam go over the wire, and how their arguments and answers look there; the server's
route and the client's store both read it. `store` is the client's side.
"""

from headrace.store.http.store import HttpStore

__all__ = ["HttpStore"]
