"""Hosts that a tool may read: entries of an allow-list, the URLs that they allow, and the addresses behind them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple

from keepsaid.values import frozen

_NAME = r"(?:\*\.)?[a-z0-9_](?:[a-z0-9._-]{0,252}[a-z0-9])?|\[[0-9a-f:.]{2,45}\]"
_ENTRY = re.compile(rf"(?:(https?)://)?({_NAME})(?::([0-9]{{1,5}}))?", re.IGNORECASE | re.ASCII)
_URL = re.compile(rf"(https?)://({_NAME})(?::([0-9]{{1,5}}))?([/?][!-\"$-~]*)?(?:#[!-~]*)?", re.IGNORECASE | re.ASCII)
_URL_CHARS_MAX = 2_048
_PORTS = {"http": 80, "https": 443}
_ANY = "*."
_NAT64 = ip_network("64:ff9b::/96")

Address = IPv4Address | IPv6Address


class RequestedUrl(NamedTuple):
    """What a URL asks for: `host` is without brackets, `path` has the query."""

    scheme: str
    host: str
    port: int
    path: str


@frozen
class AllowedHost:
    """One entry: a name, an address, or with `*.` every name below one; https unless it says http."""

    scheme: str
    host: str
    port: int

    def allows(self, target: RequestedUrl) -> bool:
        """Whether the URL is one of this entry."""
        if (self.scheme, self.port) != (target.scheme, target.port):
            return False
        return target.host.endswith(self.host[1:]) if self.host.startswith(_ANY) else target.host == self.host

    def refuses(self, address: str) -> bool:
        """Whether what was asked for must not be read at this address.

        A name may be in a private network if it is listed itself, not by `*.`; what is link-local, such as the metadata
        of a cloud machine, only if its address is listed.
        """
        found = _plain(ip_address(address.partition("%")[0]))
        if _address(self.host) == found:
            return False
        if found.is_link_local or found.is_multicast or found.is_unspecified:
            return True
        return not found.is_global and self.host.startswith(_ANY)


def parse_allowed_host(entry: str) -> AllowedHost:
    """Return an entry of an allow-list; raises ValueError."""
    parts = _ENTRY.fullmatch(entry.strip())
    if parts is None or (parts[3] is not None and not 0 < int(parts[3]) <= 65_535):
        raise ValueError(f"{entry!r} is not a host: write docs.example.org, *.example.org or http://10.0.0.5:8080")
    scheme = (parts[1] or "https").lower()
    return AllowedHost(scheme, _bare(parts[2]), int(parts[3] or _PORTS[scheme]))


def parse_target(url: str) -> RequestedUrl:
    """Return what a URL asks for; raises ValueError unless it is a plain http or https URL without a user name."""
    parts = _URL.fullmatch(url) if len(url) <= _URL_CHARS_MAX else None
    if parts is None or parts[2].startswith(_ANY) or int(parts[3] or 1) not in range(1, 65_536):
        raise ValueError("url must be a plain http or https URL")
    scheme, path = parts[1].lower(), parts[4] or "/"
    return RequestedUrl(
        scheme, _bare(parts[2]), int(parts[3] or _PORTS[scheme]), path if path.startswith("/") else f"/{path}"
    )


def entry_for(target: RequestedUrl, allowed: Iterable[AllowedHost]) -> AllowedHost | None:
    """The entry that allows a URL, an exact one before a pattern; None where there is none."""
    found = [one for one in allowed if one.allows(target)]
    return min(found, key=lambda one: one.host.startswith(_ANY), default=None)


def _bare(host: str) -> str:
    return host.lower().strip("[]")


def _address(host: str) -> Address | None:
    try:
        return _plain(ip_address(host))
    except ValueError:
        return None


def _plain(address: Address) -> Address:
    """The IPv4 address that an IPv6 address holds, if it holds one."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address.sixtofour is not None:
            return address.sixtofour
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address
