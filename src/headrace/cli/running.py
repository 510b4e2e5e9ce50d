"""`headrace worker` and `headrace up`: run tasks until told to stop."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, cast

import typer
from rich.markup import escape

from headrace.cli.failures import CommandError
from headrace.cli.output import console
from headrace.cli.target import Target, load_app, shown_url
from headrace.core.errors import OptionError
from headrace.core.memory import memory_bytes

if TYPE_CHECKING:
    from headrace.settings import Settings
    from headrace.telemetry.logs import LogFormat, LogOptions
    from headrace.worker.beside import Beside
    from headrace.worker.handover import Handover
    from headrace.worker.options import WorkerOptions

Queues = Annotated[
    str | None, typer.Option("--queues", "-q", help="Only these queues, with commas between.", show_default="all")
]
Concurrency = Annotated[
    int | None, typer.Option("--concurrency", "-c", min=1, help="Coroutines at once, per process.", show_default="100")
]
Children = Annotated[
    int | None,
    typer.Option("--children", min=0, help="Child processes for `def` tasks, per process.", show_default="cores"),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=0,
        help="Threads for tasks that ask for one, per process.",
        show_default="4 if any task asks, else 0",
    ),
]
Commands = Annotated[
    int | None, typer.Option("--commands", min=0, help="Commands at once, per process.", show_default="cores")
]
Processes = Annotated[
    int | None, typer.Option("--processes", "-p", min=1, help="Worker processes of the supervisor.", show_default="1")
]
Grace = Annotated[
    float | None,
    typer.Option(
        "--grace", min=0, help="Seconds that running tasks get after SIGTERM before they go back.", show_default="30"
    ),
]
MaxTasks = Annotated[
    int | None,
    typer.Option(
        "--max-tasks", min=1, help="Replace a child process after so many `def` tasks.", show_default="no limit"
    ),
]
MaxMemory = Annotated[
    str | None,
    typer.Option(
        "--max-memory",
        metavar="SIZE",
        help="Replace a process that has more in use, as 512MB or 2GiB: a child after its task, a worker process "
        "when its tasks have ended.",
        show_default="no limit",
    ),
]
KillMemory = Annotated[
    str | None,
    typer.Option(
        "--kill-memory",
        metavar="SIZE",
        help="Kill a child that has more in use in the middle of its task, which fails as oom and is retried like "
        "one that was lost. Set --max-memory lower, so that no task pays for what others left behind.",
        show_default="no limit",
    ),
]
Reload = Annotated[
    bool,
    typer.Option(
        "--reload",
        help="Start the code anew when it is changed; what runs ends on the old code. For developing; "
        "needs headrace\\[reload].",
    ),
]
ReloadDirs = Annotated[
    list[Path] | None,
    typer.Option(
        "--reload-dir",
        exists=True,
        file_okay=False,
        help="Watch *.py below this folder; may be given several times.",
        show_default="the folder of your module or top package",
    ),
]
ReloadChannel = Annotated[str | None, typer.Option("--reload-channel", hidden=True, help="For the reloader alone.")]
Burst = Annotated[bool, typer.Option("--burst", help="Exit when nothing is left to do now.")]
Lease = Annotated[
    float | None,
    typer.Option("--lease", min=0.5, help="Seconds a silent worker keeps its tasks.", show_default="30"),
]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        min=0,
        max=65_535,
        help="Serve /metrics for Prometheus on this port; 0 takes a free one.",
        show_default="off",
    ),
]
MetricsHost = Annotated[
    str | None, typer.Option("--metrics-host", help="Address on which to serve /metrics.", show_default="127.0.0.1")
]
NoScheduler = Annotated[
    bool, typer.Option("--no-scheduler", help="Fire no schedules here: `headrace scheduler` or another worker does.")
]
LogLevelFlag = Annotated[
    str | None,
    typer.Option("--log-level", metavar="LEVEL", help="debug, info, warning or error.", show_default="info"),
]
LogFormatFlag = Annotated[
    str | None,
    typer.Option(
        "--log-format", metavar="FORMAT", help="console for people, json for programs.", show_default="console"
    ),
]

# Of the API; `headrace server` takes them, too.
Host = Annotated[
    str | None, typer.Option("--host", help="Address on which to serve the API.", show_default="127.0.0.1")
]
Port = Annotated[
    int | None,
    typer.Option("--port", min=0, max=65_535, help="Port of the API; 0 takes a free one.", show_default="8000"),
]
NoApi = Annotated[bool, typer.Option("--no-api", help="Serve no API here.")]
NoAuth = Annotated[
    bool, typer.Option("--no-auth", help="Without users: everybody on this machine may do everything. Loopback only.")
]
NoAuthForEveryone = Annotated[
    bool,
    typer.Option("--no-auth-for-everyone", help="Without users on any address: whoever reaches it may do everything."),
]
TrustProxy = Annotated[
    list[str] | None,
    typer.Option(
        "--trust-proxy",
        metavar="ADDRESS",
        help="Believe X-Forwarded-For and -Proto of this proxy; may be given several times.",
        show_default="none",
    ),
]

_THREADS = 4  # where tasks ask for threads and nobody said how many


def worker(
    target: Target,
    queues: Queues = None,
    concurrency: Concurrency = None,
    children: Children = None,
    threads: Threads = None,
    commands: Commands = None,
    processes: Processes = None,
    grace: Grace = None,
    max_tasks: MaxTasks = None,
    burst: Burst = False,
    lease: Lease = None,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = None,
    no_scheduler: NoScheduler = False,
    max_memory: MaxMemory = None,
    kill_memory: KillMemory = None,
    reload: Reload = False,
    reload_dir: ReloadDirs = None,
    reload_channel: ReloadChannel = None,
    log_level: LogLevelFlag = None,
    log_format: LogFormatFlag = None,
) -> None:
    """Run tasks. The supervisor renews leases, holds the time limits and replaces processes that die.

    What is not said here comes from App(...), then from HEADRACE_*, then from the defaults.
    """
    if reload and burst:
        raise CommandError("--reload and --burst contradict each other: a burst ends, and nothing is left to reload")
    if reload and reload_channel is None:
        _reload(target, reload_dir, log_options(log_level, log_format))
    given: dict[str, Any] = {
        "queues": None if queues is None else _names(queues),
        "concurrency": concurrency,
        "children": children,
        "threads": threads,
        "commands": commands,
        "processes": processes,
        "grace": grace,
        "max_tasks": max_tasks,
        "lease": lease,
        "heartbeat": None if lease is None else lease / 3,
        "metrics_port": metrics_port,
        "metrics_host": metrics_host,
        "scheduler": False if no_scheduler else None,
        "max_memory": _memory(max_memory, "--max-memory"),
        "kill_memory": _memory(kill_memory, "--kill-memory"),
        "log_level": log_level,
        "log_format": log_format,
    }
    _supervise(target, given, burst=burst, handover=_handover(reload_channel))


def up(
    target: Target,
    concurrency: Concurrency = None,
    children: Children = None,
    threads: Annotated[
        int | None, typer.Option(min=0, help="Threads for tasks that ask for one.", show_default=str(_THREADS))
    ] = None,
    grace: Grace = None,
    lease: Lease = None,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = None,
    no_scheduler: NoScheduler = False,
    max_memory: MaxMemory = None,
    kill_memory: KillMemory = None,
    host: Host = None,
    port: Port = None,
    no_api: NoApi = False,
    no_auth: NoAuth = False,
    no_auth_for_everyone: NoAuthForEveryone = False,
    trust_proxy: TrustProxy = None,
    reload: Reload = False,
    reload_dir: ReloadDirs = None,
    reload_channel: ReloadChannel = None,
    log_level: LogLevelFlag = None,
    log_format: LogFormatFlag = None,
) -> None:
    """Make the schema where it is missing, then run everything that this machine needs, the API included: one command,
    one file. The first start prints the token of the user admin.
    """
    if reload and reload_channel is None:
        _reload(target, reload_dir, log_options(log_level, log_format))
    handover = _handover(reload_channel)
    _log(log_level, log_format)
    app = load_app(target)
    beside = None
    if not no_api:
        from headrace.cli.upping import api_beside

        said = {
            "--host": host,
            "--port": port,
            "--trust-proxy": trust_proxy,
            "--log-level": log_level,
            "--log-format": log_format,
        }
        flags = {"--no-auth": no_auth, "--no-auth-for-everyone": no_auth_for_everyone}
        beside = api_beside(target, app.settings, said, flags, generation=handover and handover.number)
    if handover is None or handover.number == 1:
        console.print(f"[bold]headrace[/] up on {escape(shown_url(app.url))}; Ctrl-C stops it, and nothing is lost")
    given: dict[str, Any] = {
        "concurrency": concurrency,
        "children": children,
        # It has to serve every kind of task, those in threads too.
        "threads": app.settings.threads or _THREADS if threads is None else threads,
        "grace": grace,
        "lease": lease,
        "heartbeat": None if lease is None else lease / 3,
        "metrics_port": metrics_port,
        "metrics_host": metrics_host,
        "scheduler": False if no_scheduler else None,
        "max_memory": _memory(max_memory, "--max-memory"),
        "kill_memory": _memory(kill_memory, "--kill-memory"),
        "log_level": log_level,
        "log_format": log_format,
    }
    _supervise(target, given, upgrade=True, handover=handover, beside=beside)


def log_options(level: str | None, format: str | None) -> "LogOptions":
    """For a process without an App: the flags, then HEADRACE_LOG_LEVEL and HEADRACE_LOG_FORMAT."""
    from headrace.settings import read_settings
    from headrace.telemetry.logs import FORMATS, LEVELS, LogOptions

    for flag, value, known in (("--log-level", level, LEVELS), ("--log-format", format, FORMATS)):
        if value is not None and value not in known:
            raise CommandError(f"{flag} must be one of {', '.join(known)}, not {value!r}")
    given = {"log_level": level, "log_format": format}
    settings = read_settings({name: value for name, value in given.items() if value is not None})
    return LogOptions(level=settings.log_level, format=cast("LogFormat", settings.log_format))


def _log(level: str | None, format: str | None) -> None:
    """Before the module of the app may set up its own; what the App itself says is known after."""
    from headrace.telemetry.logs import configure

    configure(log_options(level, format))


def _reload(target: str, directories: list[Path] | None, logs: "LogOptions") -> NoReturn:
    """Watch, and let others work: this process must not import what will be changed."""
    from headrace.worker.reloading import run

    raise typer.Exit(run([sys.executable, "-m", "headrace.cli", *sys.argv[1:]], target, directories or (), logs=logs))


def _handover(channel: str | None) -> "Handover | None":
    if channel is None:
        return None
    from headrace.runtime.parents import die_with_parent
    from headrace.worker.handover import Handover

    reloader, descriptor, number = map(int, channel.split(","))
    die_with_parent(reloader)
    return Handover(descriptor, number=number)


def _memory(amount: str | None, name: str) -> int | None:
    try:
        return None if amount is None else memory_bytes(amount, name=name)
    except OptionError as error:
        raise CommandError(str(error)) from None


def _supervise(
    target: str,
    given: dict[str, Any],
    *,
    burst: bool = False,
    upgrade: bool = False,
    handover: "Handover | None" = None,
    beside: "Beside | None" = None,
) -> None:
    from headrace.worker.spawning import take

    # All of them import at once, beside this one: the last to begin would else come a fifth of a second late.
    spawned = [take() for _ in range(min(given.get("processes") or 1, os.cpu_count() or 1))]
    _log(given["log_level"], given["log_format"])
    try:
        # Imported here: a third of the time that every other command would take to begin.
        from headrace.worker.supervisor import run

        app = load_app(target)
        if (
            given["threads"] is None
            and not app.settings.threads
            and any(task.pool == "thread" for task in app.registry.values())
        ):
            given["threads"] = _THREADS
        options = worker_options(app.settings, burst=burst, **given)
        code = run(target, options, spawned=spawned, upgrade=upgrade, handover=handover, beside=beside)
    finally:
        for process in spawned:
            process.close()
    raise typer.Exit(code)


def _names(queues: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in queues.split(",") if name.strip())
    if not names:
        raise CommandError(f"--queues {queues!r} names no queue; leave it out for all of them")
    return names


def worker_options(settings: "Settings", *, burst: bool = False, **flags: Any) -> "WorkerOptions":
    """A flag wins over the app's settings, which hold what App(...) and the environment said."""
    from headrace.worker.options import WorkerOptions

    values: dict[str, Any] = {
        "queues": settings.queues,
        "concurrency": settings.concurrency,
        "threads": settings.threads,
        "processes": settings.processes,
        "grace": settings.drain,
        "lease": settings.lease,
        "heartbeat": settings.heartbeat,
        "keep": settings.keep,
        "metrics_port": settings.metrics_port,
        "metrics_host": settings.metrics_host,
        "max_memory": settings.max_memory,
        "kill_memory": settings.kill_memory,
        "log_level": settings.log_level,
        "log_format": settings.log_format,
        "retry_ratio": settings.retry_ratio,
        "retry_warning": settings.retry_queue_warning,
        "retry_critical": settings.retry_queue_critical,
    }
    if settings.children:
        values["children"] = settings.children
    values.update({name: value for name, value in flags.items() if value is not None})
    return WorkerOptions(burst=burst, **values)
