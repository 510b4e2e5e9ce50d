"""Schedules: when work is enqueued by itself.

`cadence` says at which instants a schedule ticks, `ticks` what is done about the ticks that have passed. Both are pure:
the present comes in as an argument. Nothing here knows how a task is run.
"""
