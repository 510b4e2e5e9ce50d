"""Explicit over HEADRACE_* over the preset over the default; what is impossible is refused, naming its origin."""

from datetime import timedelta
from urllib.parse import unquote, urlsplit

import pytest

from headrace import App, Queue, Retry
from headrace.core.errors import SettingsError
from headrace.core.retry import ASYNCTASKFLOW_TABLE
from headrace.settings import Settings, read_settings


def read(environ: dict[str, str] | None = None, **explicit: object) -> Settings:
    return read_settings(explicit, environ=environ or {})


def test_the_defaults():
    settings = read()
    assert (settings.database_url, settings.name) == ("sqlite:///headrace.db", "headrace")
    assert (settings.lease, settings.heartbeat) == (30, 10)
    assert (settings.soft_timeout, settings.timeout) == (3480, 3600)
    assert settings.retry == Retry(max_attempts=4, base=1, cap=600, jitter=0.1)


def test_explicit_wins_over_the_environment_which_wins_over_the_preset():
    environ = {"HEADRACE_LEASE_SECONDS": "12", "WORKER_TASK_TIMEOUT": "50"}
    assert read(environ).lease == 12
    assert read(environ, lease=20).lease == 20
    assert read(environ, preset="aaiclick").lease == 12
    assert read({}, preset="aaiclick").lease == 90
    assert read(environ, preset="aaiclick").timeout == 50
    assert read({**environ, "HEADRACE_TIMEOUT_SECONDS": "70"}, preset="aaiclick").timeout == 70


def test_where_traces_are_looked_at():
    address = "https://jaeger.example.org/trace/{trace_id}"
    assert read({"HEADRACE_TRACE_URL": address}).trace_url == address
    for wrong in (
        "https://jaeger.example.org/",
        "javascript:alert('{trace_id}')",
        "/trace/{trace_id}",
        f"{address}{{x}}",
    ):
        with pytest.raises(SettingsError, match="HEADRACE_TRACE_URL: an address with"):
            read({"HEADRACE_TRACE_URL": wrong})


def test_a_lease_brings_its_heartbeat():
    assert read(lease=3).heartbeat == 1
    assert read({"HEADRACE_LEASE_SECONDS": "6"}, preset="aaiclick").heartbeat == 2
    assert read(lease=timedelta(minutes=1), heartbeat=5).heartbeat == 5


def test_a_preset_can_come_from_the_environment():
    assert read({"HEADRACE_PRESET": "django_ray"}).retry.max_attempts == 3


@pytest.mark.parametrize(
    ("environ", "explicit", "named"),
    [
        ({"HEADRACE_LEASE_SECONDS": "soon"}, {}, "HEADRACE_LEASE_SECONDS='soon'"),
        ({"HEADRACE_LEASE_SECONDS": "-3"}, {}, "HEADRACE_LEASE_SECONDS"),
        ({"HEADRACE_LEASE_SECONDS": "nan"}, {}, "HEADRACE_LEASE_SECONDS"),
        ({"HEADRACE_CONCURRENCY": "1.5"}, {}, "HEADRACE_CONCURRENCY"),
        ({"HEADRACE_CONCURRENCY": "0"}, {}, "HEADRACE_CONCURRENCY"),
        ({"HEADRACE_STRICT": "maybe"}, {}, "HEADRACE_STRICT"),
        ({"HEADRACE_RETRY_RATIO": "1.5"}, {}, "HEADRACE_RETRY_RATIO"),
        ({"HEADRACE_HEARTBEAT_SECONDS": "25"}, {}, "HEADRACE_HEARTBEAT_SECONDS"),
        ({"HEADRACE_PRESET": "nothing"}, {}, "nothing"),
        ({"MAX_RETRIES": "many"}, {"preset": "asynctaskflow"}, "MAX_RETRIES"),
        ({"MAX_RETRIES": "-1"}, {"preset": "asynctaskflow"}, "MAX_RETRIES"),
        ({"POSTGRES_PORT": "http"}, {"preset": "aaiclick"}, "POSTGRES_PORT"),
        ({}, {"leese": 3}, "leese"),
        ({}, {"lease": -1}, "lease"),
        ({}, {"synchronous": "OFF"}, "synchronous"),
    ],
)
def test_an_impossible_value_is_refused_and_named(environ: dict[str, str], explicit: dict[str, object], named: str):
    with pytest.raises(SettingsError) as refused:
        read(environ, **explicit)
    assert named in str(refused.value)


@pytest.mark.requirement("R7")
@pytest.mark.parametrize(
    ("environ", "explicit"),
    [
        ({"CELERY_TASK_TIME_LIMIT": "60"}, {"preset": "recotem"}),
        ({"CELERY_TASK_TIME_LIMIT": "60", "CELERY_TASK_SOFT_TIME_LIMIT": "60"}, {"preset": "recotem"}),
        ({"CELERY_TASK_SOFT_TIME_LIMIT": "4000"}, {"preset": "recotem"}),
        ({"HEADRACE_SOFT_TIMEOUT_SECONDS": "3600"}, {}),
        ({}, {"soft_timeout": 10, "timeout": 5}),
    ],
)
def test_a_soft_limit_that_is_not_below_the_hard_one_is_refused_at_start(
    environ: dict[str, str], explicit: dict[str, object]
):
    with pytest.raises(SettingsError, match="soft time limit"):
        read(environ, **explicit)
    assert read({"CELERY_TASK_TIME_LIMIT": "60", "CELERY_TASK_SOFT_TIME_LIMIT": "59"}, preset="recotem").timeout == 60


def test_recotem_limits_and_retries():
    """The defaults of the specification, and its own variables over them."""
    settings = read(preset="recotem")
    assert (settings.timeout, settings.soft_timeout) == (3600, 3480)
    assert settings.retry == Retry(
        max_attempts=4, base=1, cap=600, jitter="full", on=(ConnectionError, OSError), timeouts=False
    )
    changed = read({"CELERY_TASK_TIME_LIMIT": "100", "CELERY_TASK_SOFT_TIME_LIMIT": "90"}, preset="recotem")
    assert (changed.timeout, changed.soft_timeout) == (100, 90)


@pytest.mark.requirement("A53", "A58")
def test_aaiclick_database_url():
    """A53: the five variables and their defaults. A58: the URL, with what is special in a password escaped."""
    assert read(preset="aaiclick").database_url == "postgresql+asyncpg://aaiclick@localhost:5432/aaiclick_orchestration"
    secret = "p@ss:w/rd%?#ß "
    environ = {
        "POSTGRES_HOST": "db.example",
        "POSTGRES_PORT": "6543",
        "POSTGRES_USER": "me@work",
        "POSTGRES_PASSWORD": secret,
        "POSTGRES_DB": "jobs",
    }
    url = read(environ, preset="aaiclick").database_url
    parts = urlsplit(url)
    assert url.startswith("postgresql+asyncpg://")
    assert (parts.hostname, parts.port, parts.path) == ("db.example", 6543, "/jobs")
    assert (unquote(parts.username or ""), unquote(parts.password or "")) == ("me@work", secret)
    assert (
        read({**environ, "HEADRACE_DATABASE_URL": "sqlite:///x.db"}, preset="aaiclick").database_url == "sqlite:///x.db"
    )


@pytest.mark.requirement("A54", "A55", "A56")
def test_aaiclick_worker_settings():
    """A54: heartbeat 30. A55: timeout 3600. A56: 3 retries, that is 4 attempts."""
    settings = read(preset="aaiclick")
    assert (settings.heartbeat, settings.lease, settings.timeout, settings.soft_timeout) == (30, 90, 3600, None)
    assert settings.retry.max_attempts == 4
    assert settings.job_timeout == 86_400
    assert (settings.pool_size, settings.pool_overflow, settings.echo) == (20, 40, False)
    changed = read(
        {
            "WORKER_HEARTBEAT_INTERVAL": "10",
            "WORKER_TASK_TIMEOUT": "60",
            "WORKER_MAX_RETRIES": "0",
            "JOB_DEFAULT_TIMEOUT": "7200",
        },
        preset="aaiclick",
    )
    assert (changed.heartbeat, changed.timeout, changed.job_timeout) == (10, 60, 7200)
    assert changed.retry.max_attempts == 1
    assert read({"WORKER_MAX_RETRIES": "5"}, preset="aaiclick").retry.max_attempts == 6


@pytest.mark.requirement("F67", "F68", "F69")
def test_asynctaskflow_settings():
    """F67: ratio, retries and age. F68: the depths. F69: the breaker's three. Defaults, and each variable over its
    default."""
    settings = read(preset="asynctaskflow")
    assert (settings.retry_ratio, settings.retry.max_attempts, settings.max_age) == (0.3, 4, 3600)
    assert (settings.retry_queue_warning, settings.retry_queue_critical) == (1000, 5000)
    circuit = (settings.circuit_failure_threshold, settings.circuit_volume_threshold, settings.circuit_timeout)
    assert circuit == (0.5, 10, 60)
    assert settings.retry.dead_letter
    assert settings.retry == Retry(
        max_attempts=4, backoff="table", table=ASYNCTASKFLOW_TABLE, jitter=0.1, classify="http", dead_letter=True
    )
    changed = read(
        {
            "DEFAULT_RETRY_RATIO": "0.5", "MAX_RETRIES": "1", "MAX_TASK_AGE": "60", "RETRY_QUEUE_WARNING": "10",
            "RETRY_QUEUE_CRITICAL": "20", "CIRCUIT_FAILURE_THRESHOLD": "0.9", "CIRCUIT_VOLUME_THRESHOLD": "3",
            "CIRCUIT_TIMEOUT": "5",
        },
        preset="asynctaskflow",
    )  # fmt: skip
    assert (changed.retry_ratio, changed.retry.max_attempts, changed.max_age) == (0.5, 2, 60)
    assert (changed.retry_queue_warning, changed.retry_queue_critical) == (10, 20)
    circuit = (changed.circuit_failure_threshold, changed.circuit_volume_threshold, changed.circuit_timeout)
    assert circuit == (0.9, 3, 5)


def test_kohakuriver_and_django_ray():
    river = read(preset="kohakuriver")
    assert (river.retry.max_attempts, river.retry.lost, river.heartbeat, river.lease) == (1, "fail", 5, 30)
    ray = read(preset="django_ray")
    assert ray.retry == Retry(max_attempts=3, base=60, cap=3600, jitter=0.0)
    assert (ray.heartbeat, ray.lease) == (15, 60)


def test_variables_of_a_preset_mean_nothing_without_it():
    assert read({"CELERY_TASK_TIME_LIMIT": "60", "MAX_RETRIES": "9"}) == read()


def test_no_limit_can_be_said_in_both_places():
    assert read({"HEADRACE_SOFT_TIMEOUT_SECONDS": "none", "HEADRACE_TIMEOUT_SECONDS": "none"}).timeout is None
    assert App("sqlite://", soft_timeout=None, timeout=None).settings.timeout is None


def test_a_wrong_url_is_refused_when_the_app_is_made():
    for url in ("mysql://me:secret@host/x", "headrace.db", "sqlite://host/x.db", "sqlite:///x.db?mode=ro"):
        with pytest.raises(SettingsError) as refused:
            App(url)
        assert "secret" not in str(refused.value)


def test_a_relative_path_belongs_to_the_directory_of_the_moment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    app = App("sqlite:///mine.db")
    monkeypatch.chdir("/")

    @app.task(name="x")
    def x() -> None: ...

    x.enqueue()
    assert (tmp_path / "mine.db").exists()
    app.close()


@pytest.mark.requirement("D53")
def test_retry_precedence_call_over_task_over_queue_over_app():
    """D53: what each level decides is what the row gets."""
    app = App("sqlite://", retry=Retry(max_attempts=2), queues={"mail": Queue(retry=Retry(max_attempts=3))})

    @app.task(name="bare")
    def bare() -> None: ...

    @app.task(name="own", retry=Retry(max_attempts=5), queue="mail")
    def own() -> None: ...

    assert bare.prepare().max_attempts == 2
    assert bare.using(queue="mail").prepare().max_attempts == 3
    assert own.prepare().max_attempts == 5
    assert own.using(retry=Retry(max_attempts=7)).prepare().max_attempts == 7
    # The worker finds the task's own policy with its definition, and any other one with the row.
    assert '"retry"' not in own.prepare().options
    assert '"max_attempts":3' in bare.using(queue="mail").prepare().options
    assert '"max_attempts":7' in own.using(retry=Retry(max_attempts=7)).prepare().options
