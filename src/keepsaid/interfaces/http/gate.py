"""The gate: who may call which route."""

from __future__ import annotations

import hmac
import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import Request

from keepsaid.interfaces.http.problems import Refused, Unauthorised

_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


def is_loopback(host: str) -> bool:
    """Whether an address can only be reached from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Gate:
    """`operator_token` opens everything; `client_token` the routes for messages, which are open without one
    on loopback. A foreign Host or Origin is refused on loopback, so that no web page can call in.
    """

    host: str
    operator_token: str
    client_token: str | None

    def client(self, request: Request) -> None:
        """Let a client pass; raises Unauthorised or Refused."""
        self._same_place(request)
        if self.client_token is None and is_loopback(self.host):
            return
        if not self._carries(request, self.client_token) and not self.is_operator(request):
            raise Unauthorised("this route needs a token")

    def operator(self, request: Request) -> None:
        """Let the owner's own commands pass; raises Unauthorised or Refused."""
        self._same_place(request)
        if not self.is_operator(request):
            raise Unauthorised("this route needs the token of the running instance")

    def is_operator(self, request: Request) -> bool:
        """Whether the request carries the running instance's token."""
        return self._carries(request, self.operator_token)

    def _carries(self, request: Request, token: str | None) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if token is None or scheme.lower() != "bearer":
            return False
        return hmac.compare_digest(given.strip().encode(), token.encode())

    def _same_place(self, request: Request) -> None:
        if not is_loopback(self.host):
            return
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        try:
            name = urlsplit(f"//{host}").hostname
        except ValueError:
            name = None
        if name not in (*_LOCAL_NAMES, self.host):
            raise Refused("this address may only be called as what it is: loopback")
        if origin is not None and origin.lower() != f"http://{host}".lower():
            raise Refused("no page of another place may call this address")
