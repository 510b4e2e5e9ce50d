"""Pure decisions and values: states, outcomes, retry, lanes, limits, payloads.

Nothing here reads a clock, a socket or a database; `now` and `rng` come in as arguments.
"""
