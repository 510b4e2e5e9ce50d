"""A process that imports the user's module once and forks children from it.

It has no threads and no connections when it forks, so children start in milliseconds and inherit nothing that another
process uses. It reports each child's exit status, because it is their parent. When the worker process dies the socket
ends, and the forkserver ends its children, what their tasks had started, and itself.

Requests: {"config": ChildConfig} with two descriptors (socket, tokens). Reports: ("ready", None) | ("failed", text)
once, then ("forked", pid) in the order of requests, and ("exited", pid, status) in any order.
"""

import array
import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
import traceback
from typing import Any

from headrace.executors import wire
from headrace.runtime.parents import die_with_parent, outlive_parent
from headrace.telemetry import logs

_DESCRIPTORS = 2


def main() -> None:
    """Arguments: the descriptor of the socket, the target, the pid of the worker process."""
    descriptor, target, worker = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    die_with_parent(worker)
    # A terminal's Ctrl-C or a service manager's TERM goes to the whole group; the worker decides what it means. Not
    # SIG_IGN, which programs started by tasks would inherit.
    signal.signal(signal.SIGINT, _ignore)
    signal.signal(signal.SIGTERM, _ignore)
    os.set_inheritable(descriptor, False)  # programs that the user's module starts would hold it open
    control = socket.socket(fileno=descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    from headrace.executors import capture, child

    logs.configure_child()  # before the user's module may do it
    try:
        source = child.load_source(target)
    except BaseException:
        control.sendall(wire.encode(("failed", traceback.format_exc())))
        os._exit(1)  # a thread that the module started would keep it alive
    logs.use_redaction(source)
    capture.capture_logging(capture.level_of(source))
    if (tracing := getattr(source, "tracing", None)) is not None:
        tracing.preload()
    if "headrace.client.arguments" in sys.modules:  # whose first use imports it: once here, not in every child
        importlib.import_module("pydantic.type_adapter")
    control.sendall(wire.encode(("ready", None)))
    gc.collect()
    gc.freeze()  # children share these pages as long as nobody's collector touches them
    # While the user's module was imported nobody could have heard the socket end. Now it must be heard: the kernel
    # would end the children, but not the programs that their tasks had started.
    outlive_parent()
    children = set[int]()
    try:
        _serve(control, children)
    except OSError:  # nobody listens any more
        pass
    finally:
        _end(children)
    # At once: what the user's module registered to run at exit could keep it, and its children are tied to its life.
    os._exit(0)


def _ignore(*_: object) -> None:
    pass


def _serve(control: socket.socket, children: set[int]) -> None:
    wake_read, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _ignore)
    decoder, descriptors = wire.Decoder(), array.array("i")
    size = 4096
    # `poll`, because `select` takes no descriptor above 1023, and the user's module may hold as many.
    waits = select.poll()
    waits.register(control, select.POLLIN)
    waits.register(wake_read, select.POLLIN)
    while True:
        readable = {descriptor for descriptor, _ in waits.poll()}
        if wake_read in readable:
            with contextlib.suppress(BlockingIOError):
                os.read(wake_read, 4096)
        _reap(control, children)
        if control.fileno() not in readable:
            continue
        data, ancillary, _, _ = control.recvmsg(65536, socket.CMSG_SPACE(size))
        if not data:
            return
        for level, kind, body in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors.frombytes(body[: len(body) - len(body) % descriptors.itemsize])
        for request in decoder.feed(data):
            taken = descriptors[:_DESCRIPTORS]
            del descriptors[:_DESCRIPTORS]
            pid = _fork(request, taken, keep_closed=(control.fileno(), wake_read, wake_write))
            children.add(pid)
            for taken_descriptor in taken:
                os.close(taken_descriptor)
            control.sendall(wire.encode(("forked", pid)))


def _fork(request: dict[str, Any], descriptors: "array.array[int]", *, keep_closed: tuple[int, ...]) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid:
        # A group of its own, so that programs which a task started die with it. Both sides say so: either may be first.
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        return pid
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        die_with_parent(parent)
        os.setpgid(0, 0)
        for descriptor in keep_closed:
            os.close(descriptor)
        from headrace.executors import child

        child.main(request["config"], connection=descriptors[0], tokens=descriptors[1])
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        # Not sys.exit: what the forkserver registered to run at its exit is not the child's.
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _reap(control: socket.socket, children: set[int]) -> None:
    while children:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None:
            return
        pid = ended.si_pid
        if pid in children:
            # Before its number may be given anew. Also when the worker is gone, whose death a child may notice first.
            _end({pid})
        _, status = os.waitpid(pid, 0)
        if pid in children:
            children.discard(pid)
            control.sendall(wire.encode(("exited", pid, os.waitstatus_to_exitcode(status))))


def _end(children: set[int]) -> None:
    for pid in children:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
