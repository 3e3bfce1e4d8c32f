"""Pull: a channel whose replies wait for whoever asks; and to which URLs a reply may be pushed instead."""

from __future__ import annotations

import re
from collections.abc import Iterable

from keepsaid.domain.reply import Delivered, Sending, SendResult, StoredReply
from keepsaid.ports.channel import ChannelAbilities

_URL = re.compile(
    r"(https?)://([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?(?:[/?#][!-~]*)?", re.IGNORECASE | re.ASCII
)
_URL_CHARS_MAX = 2_048
_DEFAULT_PORTS = {"http": 80, "https": 443}


def allowed(url: str, hosts: Iterable[str]) -> str | None:
    """Why a reply must not be pushed to `url`; None when it may.

    Only plain http and https URLs, without user name or password, to a listed host. An entry `example.com`
    allows every port of that name, `example.com:8443` one; an IPv6 address is written `[::1]`. A name means
    itself alone, no subdomains. A listed name may resolve to any address, loopback too: the operator listed it.
    """
    parts = _URL.fullmatch(url) if len(url) <= _URL_CHARS_MAX else None
    if parts is None:
        return "reply_url is not a plain http or https URL"
    scheme, host, port = parts.group(1).lower(), parts.group(2).lower(), int(parts.group(3) or 0)
    if port > 65_535 or (parts.group(3) is not None and not port):
        return "reply_url names an impossible port"
    port = port or _DEFAULT_PORTS[scheme]
    if {host, f"{host}:{port}"}.isdisjoint(entry.strip().lower() for entry in hosts):
        return f"reply_url goes to {host}:{port}, which is not among the allowed hosts"
    return None


class PullChannel:
    """A channel whose replies wait in the outbox until somebody asks for them, and for their files."""

    sending = Sending.PULL
    abilities = ChannelAbilities(uploads=20_000_000)

    def __init__(self, name: str = "http") -> None:
        self.name = name

    async def send(self, reply: StoredReply) -> SendResult:  # noqa: ARG002 - the port's signature
        return SendResult(Delivered.REFUSED, f"replies of the channel {self.name} are pulled, not pushed")

    async def close(self) -> None:
        """Do nothing: it holds no connection."""
