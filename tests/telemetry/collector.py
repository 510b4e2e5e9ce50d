"""A collector for spans on the loopback: takes what the OTLP/HTTP exporter posts, and reads the protobuf."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue


@dataclass(frozen=True, kw_only=True)
class Span:
    name: str
    trace: str
    id: str
    parent: str
    kind: int
    service: str
    begins: int
    ends: int
    error: str | None
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    events: tuple[tuple[str, dict[str, Any]], ...] = ()

    @property
    def act(self) -> str:
        return self.name.partition(" ")[0]


class Collector:
    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.bodies: list[bytes] = []  # as they came

    @property
    def environment(self) -> dict[str, str]:
        return {
            "HEADRACE_OTEL": "1",
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.endpoint,
            "OTEL_BSP_SCHEDULE_DELAY": "100",
        }

    @property
    def spans(self) -> list[Span]:
        return [span for body in list(self.bodies) for span in _spans(ExportTraceServiceRequest.FromString(body))]

    def of(self, *, task: str) -> list[Span]:
        return [span for span in self.spans if span.attributes.get("headrace.task.name") == task]


@contextmanager
def collecting() -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            collector.bodies.append(body)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        collector = Collector(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join(10)


def _spans(request: ExportTraceServiceRequest) -> Iterator[Span]:
    for group in request.resource_spans:
        service = _attributes(group.resource.attributes).get("service.name", "")
        for scope in group.scope_spans:
            for span in scope.spans:
                yield Span(
                    name=span.name,
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    kind=span.kind,
                    service=service,
                    begins=span.start_time_unix_nano,
                    ends=span.end_time_unix_nano,
                    error=span.status.message if span.status.code == 2 else None,
                    attributes=_attributes(span.attributes),
                    events=tuple((event.name, _attributes(event.attributes)) for event in span.events),
                )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Any:
    which = value.WhichOneof("value")
    return None if which is None else getattr(value, which)
