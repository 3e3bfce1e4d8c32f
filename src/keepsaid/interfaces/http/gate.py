"""The gate: who may call which route, by the token that a call carries and the place it comes from."""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import field
from urllib.parse import urlsplit

from starlette.requests import Request

from keepsaid.app.keys import KeyRing
from keepsaid.config.services import ServerConfig
from keepsaid.domain.principal import Principal, Scope, operator
from keepsaid.errors import ConfigError, NotAllowed
from keepsaid.interfaces.http import responses
from keepsaid.values import frozen

LIBRARY = "library"
"""The channel of programs, in whose name the operator records and saves."""

_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
_PASSED_ON = re.compile(
    r"(?:x-)?forwarded(?:-.*)?|via|cdn-loop|proxy-.*"
    r"|(?:.*-)?(?:real|client|remote|source|peer|connecting|connection|proxyuser)-?(?:ip|addr|address|host|port)(?:v6)?"
    r"|(?:cf|fly|fastly|akamai|incap|ngrok|tailscale)-.*"
    r"|x-(?:original|envoy|azure|appengine|arr|amz|amzn|vercel|nf|ngrok|tailscale|proxy|sucuri|varnish)-.*"
)
"""Names of headers that proxies, tunnels and content networks add to a request that they pass on."""


_SCHEMES = ("bearer", "token")
"""How a token is announced in Authorization: as standards have it, and as the client of mem0 does."""


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
        what = f"server.host {server.host} can be reached by others: server.token must be set"
        raise ConfigError(what, hint="keepsaid config set server.token --prompt")
    return token or None


_TOKEN_CHARS_MIN = 32


def operator_token(server: ServerConfig) -> str:
    """The owner's token: the one that is set, else a new one. Raises ConfigError for one that could be guessed."""
    given = server.operator_token.get_secret_value() if server.operator_token else ""
    if given and (len(given) < _TOKEN_CHARS_MIN or not (given.isascii() and given.isprintable()) or " " in given):
        what = f"server.operator_token needs at least {_TOKEN_CHARS_MIN} ASCII characters, without spaces"
        raise ConfigError(what, hint="keepsaid config set server.operator_token --prompt")
    return given or secrets.token_urlsafe(_TOKEN_CHARS_MIN)


@frozen
class Gate:
    """`operator_token` opens everything; `client_token` the routes for messages.

    On loopback those are open without a token, but not to a request that a proxy passed on: everybody who reaches the
    proxy would come in. There a foreign Origin is refused too, and a foreign Host without a right token, so that no
    web page can call in. The request's state says who passed: `owner` for the operator, `known` with any token.
    `keys` are the callers by their tokens; each is let in where a route names one of its scopes.
    """

    host: str
    operator_token: str
    client_token: str | None
    keys: Mapping[str, Principal] = field(default_factory=dict)

    def client(self, request: Request) -> None:
        """Check a client's token and origin; raises Unauthorised or Refused."""
        request.state.owner = self.is_operator(request)
        known = request.state.known = request.state.owner or self._carries(request, self.client_token)
        self._same_place(request, known=known)
        if known:
            return
        if self.client_token is not None or not is_loopback(self.host):
            raise responses.unauthorised(request, "a token")
        # A proxy shows itself by a header of its own, or by HTTP/1.0, which nginx speaks to what is behind it.
        if request.scope["http_version"] == "1.0" or any(_PASSED_ON.fullmatch(name) for name in request.headers):
            what = "a proxy passed this call on, and without a token everybody could call through it"
            hint = "behind a proxy set server.token and send Authorization: Bearer TOKEN"
            raise responses.ForeignCaller(what, hint=hint)

    def operator(self, request: Request, needed: str = "the operator's token") -> None:
        """Let the owner's own commands pass; raises Unauthorised, which says what is `needed`, or Refused."""
        request.state.owner = self.is_operator(request)
        self._same_place(request, known=request.state.owner)
        if not request.state.owner:
            raise responses.unauthorised(request, needed)

    def caller(self, request: Request, scopes: Sequence[Scope] = ()) -> Principal:
        """Who calls a route of the owner that is open to keys with one of these scopes; without any, to none.

        Raises Unauthorised, NotAllowed or Refused.
        """
        who = self.key_of(request)
        if who is None:
            key = f"a key with the scope {' or '.join(scopes)}, or " if scopes else ""
            self.operator(request, f"{key}the operator's token")
            return operator(LIBRARY)
        request.state.owner = False
        self._same_place(request, known=True)
        if not scopes:
            raise responses.unauthorised(request, "the operator's token")
        if not any(map(who.may, scopes)):
            needed = " or ".join(scopes)
            raise NotAllowed(f"the key {who.name} does not open this: it needs the scope {needed}")
        return who

    def talker(self, request: Request) -> Principal | None:
        """Whose key a call for messages carries, if it has the scope `talk`; None for a client or the operator.

        Raises Unauthorised, NotAllowed or Refused.
        """
        who = self.key_of(request)
        if who is None:
            self.client(request)
            return None
        request.state.known = True
        return self.caller(request, (Scope.TALK,))

    def key_of(self, request: Request) -> Principal | None:
        """The caller whose key a request carries; None for any other token, and for none."""
        found = [who for token, who in self.keys.items() if self._carries(request, token)]
        return found[0] if found else None

    def is_operator(self, request: Request) -> bool:
        """Whether the request carries the running instance's token."""
        return self._carries(request, self.operator_token)

    def _carries(self, request: Request, token: str | None) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if token is None or scheme.lower() not in _SCHEMES:
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
            raise responses.ForeignCaller("without a token this address may only be called as what it is: loopback")
        if origin is not None and origin.lower() != f"http://{host}".lower():
            raise responses.ForeignCaller("no page of another place may call this address")


class KeyWatch:
    """Checks while a request is answered whether what let it in still does: a stream outlives a change of the keys."""

    def __init__(self, gate: Gate, ring: KeyRing, request: Request, scopes: Sequence[Scope]) -> None:
        self._gate, self._ring, self._request, self._scopes = gate, ring, request, scopes
        self._version = ring.version
        self._opened_by = gate.key_of(request)

    async def check(self) -> None:
        """Follow the config file, as with a new call. Raises Unauthorised and NotAllowed once the key is not let in.

        A key that speaks for another sender now, or where others read along, is another key.
        """
        if self._opened_by is None:
            return
        await self._ring.look()
        if self._version == self._ring.version:
            return
        self._version = self._ring.version
        if self._gate.caller(self._request, self._scopes) != self._opened_by:
            raise responses.unauthorised(self._request, "the key as it was when the call began")
