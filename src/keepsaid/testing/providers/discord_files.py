"""The CDN of the scripted Discord: attachments under signed addresses, which expire."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

from keepsaid.testing.model_http import Connection, HttpRequest
from keepsaid.testing.providers.kept_files import KeptFiles

_PATH = "/attachments/"


class DiscordCdn:
    """What can be downloaded. An address holds its signature; `expire` ends all that were given out."""

    def __init__(self) -> None:
        self.files = KeptFiles()
        self._signature = 1

    def expire(self) -> None:
        """No address that was given out is valid any more; a message that is read again has new ones."""
        self._signature += 1

    def serves(self, request: HttpRequest) -> bool:
        """Whether a request is for a file, and not for the REST interface."""
        return request.path.startswith(_PATH)

    def attach(self, url: str, channel: str, content: bytes, /, **fields: Any) -> dict[str, Any]:
        """Keep a file; returns the attachment as messages of a channel have it, at a CDN with this URL."""
        name = self.files.keep(content)
        made = {"id": name.rpartition("-")[2], "filename": name, "size": len(content)}
        address = f"{url}{_PATH}{channel}/{name}?hm={self._signature}"
        return {**made, "url": address, "proxy_url": address, **fields}

    def signed_now(self, message: dict[str, Any]) -> dict[str, Any]:
        """A message whose attachments have the addresses that are valid now."""
        files = [{**one, "url": self._signed(one["url"])} for one in message.get("attachments", ())]
        return {**message, **({"attachments": files} if files else {})}

    async def send(self, connection: Connection, request: HttpRequest) -> bool:
        """Answer a request for a file; returns whether the connection goes on."""
        name = request.path.rpartition("/")[2]
        if parse_qs(request.query).get("hm") != [str(self._signature)]:
            await connection.send(404, b"This content is no longer available.", "text/plain")
            return True
        return await self.files.send(connection, name, request.headers)

    def _signed(self, url: str) -> str:
        path, _, query = url.partition("?hm=")
        return f"{path}?hm={self._signature}" if query else url
