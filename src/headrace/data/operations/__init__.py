"""Work over tables as jobs: one task for each chunk, and a collector that waits for all of them.

`callbacks` says what a user's function takes and gives, `flows` makes graphs, `steps` are the tasks of these graphs,
`shuffling` is the arithmetic of sort and join, `launching` hands a graph to the ledger.
"""
