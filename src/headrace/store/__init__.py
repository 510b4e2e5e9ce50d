"""The ledger: one set of verbs (`base`), two databases (`sqlite`, `postgres`).

A store knows states, fences, keys and counters. It does not know functions, executors or event loops of workers.
"""
