"""Public addresses: whether a server that somebody else names may be asked, and the address at which it is.

Anybody may name any address, so one of this machine or of its network is not dialled. The address that was checked is
the one to dial: between two lookups a name may come to mean another.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket as sockets
from collections.abc import Awaitable, Callable, Collection, Mapping
from urllib.parse import urlsplit

from keepsaid.values import frozen

_RESOLVED_WITHIN_S = 10.0
_LOCAL = (".local", ".internal", ".localhost", ".onion")

AddressFinder = Callable[[str, str], Awaitable[str]]
"""The address of the server of a URL, which has a scheme. Raises NotPublic and OSError."""


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


@frozen
class CheckedUrl:
    """A URL with the address that was checked in it, its headers, and the name that its server has to prove."""

    url: str
    headers: Mapping[str, str]
    server_name: str = ""


async def checked_url(url: str, trusted: Collection[str], find_address: AddressFinder) -> CheckedUrl:
    """A URL as it is asked; one of the origins `trusted`, such as http://host:port, as it is.

    Raises NotPublic for another that is not https:// at a public address, and OSError if no address is found.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise NotPublic from None
    if f"{parts.scheme}://{parts.netloc}" in trusted:
        return CheckedUrl(url, {})
    address = await find_address(url, "https")
    host = f"[{address}]" if ":" in address else address
    place = host if port is None else f"{host}:{port}"
    target = parts._replace(netloc=place, fragment="").geturl()
    return CheckedUrl(target, {"Host": parts.netloc}, parts.hostname or "")
