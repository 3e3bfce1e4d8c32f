"""The gate: who may call which route."""

from __future__ import annotations

import hmac
import ipaddress
import re
from urllib.parse import urlsplit

from starlette.requests import Request

from keepsaid.config.services import ServerConfig
from keepsaid.errors import ConfigError
from keepsaid.interfaces.http.responses import ForeignCaller, Unauthorised
from keepsaid.values import frozen

_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
_PASSED_ON = re.compile(
    r"(?:x-)?forwarded(?:-.*)?|via|cdn-loop|proxy-.*"
    r"|(?:.*-)?(?:real|client|remote|source|peer|connecting|connection|proxyuser)-?(?:ip|addr|address|host|port)(?:v6)?"
    r"|(?:cf|fly|fastly|akamai|incap|ngrok|tailscale)-.*"
    r"|x-(?:original|envoy|azure|appengine|arr|amz|amzn|vercel|nf|ngrok|tailscale|proxy|sucuri|varnish)-.*"
)
"""Names of headers that proxies, tunnels and content networks add to a request that they pass on."""


def is_loopback(host: str) -> bool:
    """Whether an address can only be reached from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def client_token(server: ServerConfig) -> str | None:
    """The clients' token, None for none; an empty one is none. Raises ConfigError where others need one."""
    token = server.token.get_secret_value() if server.token else ""
    if not token and not is_loopback(server.host):
        raise ConfigError(f"server.host {server.host} can be reached by others: server.token must be set")
    return token or None


@frozen
class Gate:
    """`operator_token` opens everything; `client_token` the routes for messages.

    On loopback those are open without a token, but not to a request that a proxy passed on: everybody who reaches the
    proxy would come in. There a foreign Origin is refused too, and a foreign Host without a right token, so that no
    web page can call in. The request's state says who passed: `owner` for the operator, `known` with any token.
    """

    host: str
    operator_token: str
    client_token: str | None

    def client(self, request: Request) -> None:
        """Let a client pass; raises Unauthorised or Refused."""
        request.state.owner = self.is_operator(request)
        known = request.state.known = request.state.owner or self._carries(request, self.client_token)
        self._same_place(request, known=known)
        if known:
            return
        if self.client_token is not None or not is_loopback(self.host):
            raise Unauthorised("this route needs a token")
        # A proxy shows itself by a header of its own, or by HTTP/1.0, which nginx speaks to what is behind it.
        if request.scope["http_version"] == "1.0" or any(map(_PASSED_ON.fullmatch, request.headers)):
            what = "a proxy passed this call on, and without a token everybody could call through it"
            raise ForeignCaller(what, hint="behind a proxy set server.token and send Authorization: Bearer TOKEN")

    def operator(self, request: Request) -> None:
        """Let the owner's own commands pass; raises Unauthorised or Refused."""
        request.state.owner = self.is_operator(request)
        self._same_place(request, known=request.state.owner)
        if not request.state.owner:
            raise Unauthorised("this route needs the token of the running instance")

    def is_operator(self, request: Request) -> bool:
        """Whether the request carries the running instance's token."""
        return self._carries(request, self.operator_token)

    def _carries(self, request: Request, token: str | None) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if token is None or scheme.lower() != "bearer":
            return False
        return hmac.compare_digest(given.strip().encode(), token.encode())

    def _same_place(self, request: Request, *, known: bool) -> None:
        if not is_loopback(self.host):
            return
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        try:
            name = urlsplit(f"//{host}").hostname
        except ValueError:
            name = None
        if not known and name not in (*_LOCAL_NAMES, self.host):
            raise ForeignCaller("without a token this address may only be called as what it is: loopback")
        if origin is not None and origin.lower() != f"http://{host}".lower():
            raise ForeignCaller("no page of another place may call this address")
