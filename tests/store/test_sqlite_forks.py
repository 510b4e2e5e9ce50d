"""A process forks while its threads write: the child gets a store of its own, and nothing of the parent's locks."""

import sqlite3
import subprocess
import sys
from pathlib import Path

_SCRIPT = """
import faulthandler, os, sys, threading, time
from headrace import App

app = App(sys.argv[1])

@app.task(name="t")
async def work(n: int) -> int:
    return n

made, stop = [work.enqueue(0).id], threading.Event()

def write():
    while not stop.is_set():
        made.append(work.enqueue(1).id)

threads = [threading.Thread(target=write) for _ in range(3)]
for thread in threads:
    thread.start()
children = []
for _ in range(8):
    before = len(made)
    while len(made) < before + 3:
        time.sleep(0.001)
    children.append(os.fork())
    if not children[-1]:
        faulthandler.dump_traceback_later(20, exit=True)
        for _ in range(10):
            work.enqueue(2)
        os._exit(0)
ended = [os.waitpid(child, 0)[1] for child in children]
stop.set()
for thread in threads:
    thread.join()
print(len(made), ended)
app.close()
"""


def test_a_fork_in_the_middle_of_writes_leaves_no_lock_behind(sqlite_url: str, tmp_path: Path) -> None:
    """The child would wait for ever for a lock that its parent's thread held at that moment, and hold up everybody."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _SCRIPT, sqlite_url], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    parents, _, ended = done.stdout.strip().partition(" ")
    assert ended == str([0] * 8), done.stderr
    connection = sqlite3.connect(tmp_path / "headrace.db")
    assert connection.execute("SELECT count(*) FROM headrace_tasks").fetchone() == (int(parents) + 80,)
    connection.close()
