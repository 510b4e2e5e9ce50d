"""Defines tasks, enqueues them and looks at them: the side of the ledger that a user's program sees."""
