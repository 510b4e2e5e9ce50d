"""Spans for OpenTelemetry. The library comes with headrace[otel], and is imported only when an app asks for it."""

from headrace.core.errors import SettingsError
from headrace.telemetry.redaction import Redaction
from headrace.telemetry.tracing import Tracing


def load_tracing(redaction: Redaction, *, service: str) -> Tracing:
    """`service` is the name of the service where nothing of OpenTelemetry's own names one."""
    try:
        from headrace.telemetry.opentelemetry.spans import Spans
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "opentelemetry":
            raise
        raise SettingsError("spans need OpenTelemetry, which is not installed: pip install 'headrace[otel]'") from error
    return Spans(redaction, service=service)
