"""Public addresses: whether a server that somebody else names may be asked, and the address at which it is.

Anybody may name any address, so one of this machine or of its network is not dialled. The address that was checked is
the one to dial: between two lookups a name may come to mean another.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket as sockets
from urllib.parse import urlsplit

_RESOLVED_WITHIN_S = 10.0
_LOCAL = (".local", ".internal", ".localhost", ".onion")


class NotPublic(Exception):
    """A server is not at a public address, or its URL is not one of the scheme that is asked for."""


def may_be_public(url: str, scheme: str) -> bool:
    """Whether a URL of a scheme can be that of a public server; its addresses are not looked up."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises ValueError
        host = parts.hostname or ""
    except ValueError:
        return False
    if parts.scheme != scheme or not host or parts.username is not None:
        return False
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        return "." in host and not host.endswith(_LOCAL)


async def public_address(url: str, scheme: str) -> str:
    """An address of a server, if all of its addresses are public. Raises NotPublic, and OSError if none is found."""
    if not may_be_public(url, scheme):
        raise NotPublic
    parts = urlsplit(url)
    async with asyncio.timeout(_RESOLVED_WITHIN_S):
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(parts.hostname, parts.port or 443, type=sockets.SOCK_STREAM)
    addresses = [str(one[4][0]) for one in found]
    if not addresses or not all(ipaddress.ip_address(one.partition("%")[0]).is_global for one in addresses):
        raise NotPublic
    return addresses[0]
