"""A collector of traces over a real socket: takes OTLP over HTTP, and keeps every span it was sent."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Collector:
    """What a collector received: spans by their order, the headers of each request, and its address."""

    url: str = ""
    spans: list[Span] = field(default_factory=list)
    resources: list[dict[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    def named(self, name: str) -> list[Span]:
        """The spans of a name."""
        return [one for one in self.spans if one.name == name]

    def only(self, name: str) -> Span:
        """The one span of a name."""
        [found] = self.named(name)
        return found


def attributes(span: Span) -> dict[str, object]:
    """The attributes of a span."""
    return {one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in span.attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    """Listen on loopback while the block runs."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            collector.headers.append({name.lower(): value for name, value in self.headers.items()})
            collector.bodies.append(body)
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                collector.resources.append({one.key: one.value.string_value for one in resource.resource.attributes})
                for scope in resource.scope_spans:
                    collector.spans.extend(scope.spans)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.url = f"http://127.0.0.1:{server.server_port}/v1/traces"
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
