"""The route that Prometheus reads (short: there is one route): every metric as text, to the operator and on loopback.

Metrics name no sender, no conversation and no text, so a scraper on loopback needs no token, unless `server.token` is
set: then a proxy is expected to pass calls of others on.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from keepsaid.app.instance import Instance
from keepsaid.app.metrics import scrape
from keepsaid.interfaces.http import responses
from keepsaid.interfaces.http.gate import Gate, is_loopback


def admit(gate: Gate, request: Request) -> None:
    """Check who scrapes; raises Unauthorised or ForeignCaller."""
    if gate.client_token is None and is_loopback(gate.host):
        gate.client(request)
    else:
        gate.operator(request)


async def show_metrics(instance: Instance, gate: Gate, request: Request) -> Response:
    """Every metric, in the text format of Prometheus."""
    from keepsaid import __version__  # noqa: PLC0415 - all of the library

    admit(gate, request)
    if not instance.config.telemetry.metrics:
        what = "metrics are switched off (telemetry.metrics)"
        raise responses.NotFound(what, safe="Nothing was changed.", hint="keepsaid config set telemetry.metrics true")
    content_type, text = await scrape(instance, __version__)
    return Response(text, media_type=content_type)
