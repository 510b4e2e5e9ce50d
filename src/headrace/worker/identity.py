"""Who a worker is: one incarnation of one process, never a host name."""

import os
import socket
import time


def new_worker_id() -> str:
    """`hostname:pid:timestamp`, the timestamp in microseconds: two incarnations of one process differ."""
    return f"{socket.gethostname()}:{os.getpid()}:{time.time_ns() // 1000}"
