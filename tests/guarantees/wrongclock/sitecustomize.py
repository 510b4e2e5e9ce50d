"""Put on PYTHONPATH, this makes the wall clock of a Python process wrong by the seconds in a file, now and later.

HEADRACE_TEST_CLOCK names a file of eight bytes, a little-endian double; whoever writes it steps the clock of every
process that has it, while they run. The monotonic clock is left alone, as it is when an operator sets the time.
HEADRACE_TEST_HOSTNAME, where set, is what every such process believes its host is called.
"""

import datetime
import mmap
import os
import socket
import struct
import time

if _path := os.environ.get("HEADRACE_TEST_CLOCK"):
    with open(_path, "rb") as _file:
        _memory = mmap.mmap(_file.fileno(), 8, access=mmap.ACCESS_READ)
    _double = struct.Struct("<d")
    _time, _time_ns, _datetime = time.time, time.time_ns, datetime.datetime

    def _offset() -> float:
        return _double.unpack_from(_memory)[0]

    class _AnyDatetime(type):
        # Values made by C code are plain datetimes.
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, _datetime)

    class WrongDatetime(_datetime, metaclass=_AnyDatetime):
        @classmethod
        def now(cls, tz=None):
            return _datetime.fromtimestamp(_time() + _offset(), tz)

        @classmethod
        def utcnow(cls):
            return _datetime.fromtimestamp(_time() + _offset(), datetime.UTC).replace(tzinfo=None)

    time.time = lambda: _time() + _offset()
    time.time_ns = lambda: _time_ns() + int(_offset() * 1e9)
    datetime.datetime = WrongDatetime

if _hostname := os.environ.get("HEADRACE_TEST_HOSTNAME"):
    socket.gethostname = lambda: _hostname
