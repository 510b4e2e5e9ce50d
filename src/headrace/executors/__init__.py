"""How one attempt runs: on the loop, in a thread, in a killable child, as a command.

An executor knows one attempt. It does not know queues, retries or stores.
"""
