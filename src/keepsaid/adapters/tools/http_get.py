"""The tool `http_get`: reads a page of a listed host."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from html.parser import HTMLParser
from urllib.parse import urljoin

import httpx2

from keepsaid.config.services import ToolsConfig
from keepsaid.domain.allowed_hosts import AllowedHost, RequestedUrl, entry_for, parse_allowed_host, parse_target
from keepsaid.domain.message import Trust
from keepsaid.domain.prompt import Json, object_schema
from keepsaid.errors import ToolError
from keepsaid.ports.model import Tool

HTTP_GET = "http_get"
_REDIRECTS_MAX = 5
_SCHEMA = object_schema({"url": {"type": "string", "description": "the address of a page"}}, "url")
_TEXTS = ("text/", "application/json", "application/xml", "application/javascript", "application/yaml")
_SUFFIXES = ("+json", "+xml", "+yaml")
_UNSEEN = ("script", "style", "template", "noscript", "svg")
_BLOCKS = ("p", "div", "li", "tr", "br", "pre", "table", "section", "article", "h1", "h2", "h3", "h4", "h5", "h6")

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host."""


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses that the system knows of a host; raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def http_get(settings: ToolsConfig, resolving: Resolve = resolve) -> Tool:
    """A tool that reads pages of the hosts in the settings, as text.

    It serves people who are known: what outside text asks for may be sent to the host inside the URL.
    """
    allowed = tuple(map(parse_allowed_host, settings.http_hosts))

    async def run(arguments: dict[str, Json]) -> str:
        url = arguments.get("url")
        if not isinstance(url, str):
            raise ToolError("url must be a text")
        client = await asyncio.to_thread(httpx2.AsyncClient, trust_env=False, timeout=settings.http_limit_s)
        async with client:
            for _ in range(_REDIRECTS_MAX + 1):
                found = await _fetched(client, await _checked(url.strip(), allowed, resolving), settings.http_bytes_max)
                if found.redirect is None:
                    return found.text
                url = urljoin(url, found.redirect)
        raise ToolError(f"more than {_REDIRECTS_MAX} redirects")

    says = f"Read a page as text. Hosts: {', '.join(settings.http_hosts)}."
    return Tool(HTTP_GET, says, _SCHEMA, run, limit_s=settings.http_limit_s, serves=Trust.KNOWN)


class _Checked:
    """A URL that may be read, and the address at which."""

    def __init__(self, target: RequestedUrl, address: str) -> None:
        self.target, self.address = target, address

    @property
    def url(self) -> str:
        """The URL with the address in place of the name, so that no second answer of the DNS counts."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{self.target.scheme}://{host}:{self.target.port}{self.target.path}"

    @property
    def host(self) -> str:
        """The value of the header Host."""
        name = f"[{self.target.host}]" if ":" in self.target.host else self.target.host
        is_usual = self.target.port == {"http": 80, "https": 443}[self.target.scheme]
        return name if is_usual else f"{name}:{self.target.port}"


async def _checked(url: str, allowed: Sequence[AllowedHost], resolving: Resolve) -> _Checked:
    try:
        target = parse_target(url)
    except ValueError as error:
        raise ToolError(str(error)) from None
    if (entry := entry_for(target, allowed)) is None:
        hosts = ", ".join(one.host for one in allowed)
        raise ToolError(f"{target.scheme}://{target.host}:{target.port} is not in tools.http_hosts ({hosts})")
    try:
        addresses = await resolving(target.host, target.port)
    except OSError as error:
        raise ToolError(f"{target.host} is not known ({error.strerror})") from error
    if not addresses or any(map(entry.refuses, addresses)):
        raise ToolError(f"{target.host} is at an address that must not be read")
    return _Checked(target, addresses[0])


class _Fetched:
    def __init__(self, text: str, redirect: str | None = None) -> None:
        self.text, self.redirect = text, redirect


async def _fetched(client: httpx2.AsyncClient, checked: _Checked, bytes_max: int) -> _Fetched:
    headers = {"Host": checked.host, "Accept-Encoding": "identity", "User-Agent": "keepsaid"}
    names = {"sni_hostname": checked.target.host}
    try:
        request = client.build_request("GET", checked.url, headers=headers, extensions=names)
        response = await client.send(request, stream=True, follow_redirects=False)
        async with aclosing(response):
            if response.has_redirect_location:
                return _Fetched("", response.headers["location"])
            if not response.is_success:
                raise ToolError(f"{checked.target.host} answered HTTP {response.status_code}")
            return _Fetched(await _read(response, bytes_max))
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError) as error:
        raise ToolError(f"{checked.target.host} cannot be read ({type(error).__name__})") from error


async def _read(response: httpx2.Response, bytes_max: int) -> str:
    """The text of a response, at most `bytes_max` bytes of it."""
    kind = response.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
    if not (kind.startswith(_TEXTS) or kind.endswith(_SUFFIXES)):
        raise ToolError(f"the page is not text: {kind}")
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise ToolError("the page is compressed")
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > bytes_max:
            break
    text = _decoded(bytes(body[:bytes_max]), response.charset_encoding)
    text = _visible(text) if kind in ("text/html", "application/xhtml+xml") else text
    return text + f"\n[cut after {bytes_max:,} bytes]" if len(body) > bytes_max else text


def _decoded(body: bytes, charset: str | None) -> str:
    try:
        return body.decode(charset or "utf-8", "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


class _Visible(HTMLParser):
    """Collects the text of a page that a browser would show."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 - the parser's signature
        self._hidden += tag in _UNSEEN
        if tag in _BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._hidden = max(0, self._hidden - (tag in _UNSEEN))

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data)


def _visible(page: str) -> str:
    parser = _Visible()
    parser.feed(page)
    parser.close()
    lines = (" ".join(line.split()) for line in "".join(parser.parts).splitlines())
    return "\n".join(line for line in lines if line)
