"""A job's graph in a terminal: folded by name and depth, laid out in lanes, drawn as lines. All of that is pure;
`reading` and `watching` ask the store.
"""
