"""Moving an SQLite ledger to PostgreSQL, while it is used.

`tables` says how each table goes, from the schema; `parcels` are rows on their way with their checksums; `source` is
the SQLite end, `postgres.receiving` the other, and `mover` the order of it all. A row has one owner at any moment: the
source until the transaction that takes it out of its table, the target from the transaction that writes it. In between
it lies in the source's `meta` as a parcel with a number, and the target keeps the number of the last one it took.
"""
