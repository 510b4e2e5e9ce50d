"""The garbage collector of a process that has been set up, and now does the same small things for ever."""

import gc

_YOUNG_OBJECTS = 20_000  # a twentieth of the CPU of short coroutines goes there at Python's 2,000


def relieve() -> None:
    # What was imported lives as long as the process: the collector need not look at it again and again.
    gc.collect()
    gc.freeze()
    # And what a claim or a crowd of requests brings, thousands of objects that die without its help, fills its youngest
    # generation in no time.
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])
