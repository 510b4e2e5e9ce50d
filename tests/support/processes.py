"""What can be asked of a process that may end at any moment, between a list of it and the question."""

import psutil


def runs(process: psutil.Process | int) -> bool:
    """One that is dead and not yet reaped does not."""
    try:
        found = psutil.Process(process) if isinstance(process, int) else process
        return found.is_running() and found.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def is_called(process: psutil.Process, name: str) -> bool:
    try:
        return process.name() == name
    except psutil.NoSuchProcess:
        return False


def command_has(process: psutil.Process, word: str) -> bool:
    """Whether its command line contains this argument."""
    try:
        return word in process.cmdline()
    except psutil.NoSuchProcess:
        return False
