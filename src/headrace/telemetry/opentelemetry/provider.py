"""Where spans go: to the tracer provider that the program has set, else to one of our own that exports by OTLP over
HTTP as the OTEL_* variables say.
"""

import contextlib
import importlib
import logging
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, override

from opentelemetry import trace

from headrace.telemetry.redaction import Redaction

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

logger = logging.getLogger("headrace.telemetry")


def ensure_provider(redaction: Redaction, *, service: str) -> None:
    """One of our own where the program has none: it is global, so that spans of user code go the same way."""
    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return
    try:
        provider = _provider(redaction, service)
    except ImportError as error:
        logger.warning("spans are made and go nowhere (%s): pip install 'headrace[otel]'", error)
        return
    trace.set_tracer_provider(provider)


def preload() -> None:
    """What a provider of ours imports, which takes a third of a second."""
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        with contextlib.suppress(ImportError):
            importlib.import_module("opentelemetry.sdk.trace.export")
            importlib.import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")


def _provider(redaction: Redaction, service: str) -> Any:
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "unknown_service")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: service}))
    provider = TracerProvider(resource=resource)
    exporter = _exporter()
    if exporter is not None:
        provider.add_span_processor(BatchSpanProcessor(redacting(exporter, redaction)))
    return provider


def _exporter() -> "SpanExporter | None":
    match os.environ.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower():
        case "none":
            return None
        case "console":
            from opentelemetry.sdk.trace.export import ConsoleSpanExporter

            return ConsoleSpanExporter()
        case _:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            return OTLPSpanExporter()


def redacting(exporter: "SpanExporter", redaction: Redaction) -> "SpanExporter":
    """An exporter that gives another one the spans without secrets, those of user code too."""
    from opentelemetry.sdk.trace import Event, ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
    from opentelemetry.trace import Status

    def clean(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
        return {name: redaction.value(value, name) for name, value in (attributes or {}).items()}

    def cleaned(span: ReadableSpan) -> ReadableSpan:
        status = span.status
        return ReadableSpan(
            name=redaction.text(span.name),
            context=span.context,
            parent=span.parent,
            resource=span.resource,
            attributes=clean(span.attributes),
            events=[Event(event.name, clean(event.attributes), event.timestamp) for event in span.events],
            links=span.links,
            kind=span.kind,
            status=Status(status.status_code, redaction.text(status.description)) if status.description else status,
            start_time=span.start_time,
            end_time=span.end_time,
            instrumentation_scope=span.instrumentation_scope,
        )

    class RedactingExporter(SpanExporter):
        @override
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            return exporter.export([cleaned(span) for span in spans])

        @override
        def shutdown(self) -> None:
            exporter.shutdown()

        @override
        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            return exporter.force_flush(timeout_millis)

    return RedactingExporter()
