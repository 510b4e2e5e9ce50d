"""The result store: what is too large for a row. Blobs are written before the row that refers to them.

It is no part of the ledger: losing a blob loses one result, and nothing else.
"""
