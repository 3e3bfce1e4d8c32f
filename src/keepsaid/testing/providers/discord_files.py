"""Files of the scripted Discord: its CDN, whose signed addresses expire, and uploads with messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qs

from keepsaid.testing.model_http import Connection, HttpRequest
from keepsaid.testing.providers.discord_messages import DiscordFault
from keepsaid.testing.providers.forms import UploadedFile
from keepsaid.testing.providers.kept_files import KeptFiles

_PATH = "/attachments/"
_UPLOAD_BYTES_MAX: Final = 10 * 1_024 * 1_024
_FILES_MAX = 10


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

    def take(self, url: str, channel: str, file: UploadedFile) -> dict[str, Any]:
        """Keep a file that was uploaded, under the name that Discord gives it; returns the attachment."""
        stem, _, ending = file.name.rpartition(".")
        filename = re.sub(r"[^A-Za-z0-9_.-]", "", file.name.replace(" ", "_")) or "unknown"
        title = {} if filename == file.name else {"title": stem or ending}
        return self.attach(url, channel, file.content, filename=filename, content_type=file.kind, **title)

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


def uploads_in(given: Mapping[str, Any]) -> list[UploadedFile]:
    """The files of a message in the order of its `attachments`; raises DiscordFault for what the real one refuses."""
    files = {name: one for name, one in given.items() if isinstance(one, UploadedFile)}
    if any(len(one.content) > _UPLOAD_BYTES_MAX for one in files.values()):
        raise DiscordFault(413, 40_005, "Request entity too large")
    if any(not one.content for one in files.values()):
        raise DiscordFault(400, 50_006, "Cannot send an empty message")
    named = given.get("attachments")
    wanted = list(files) if named is None else [f"files[{one.get('id')}]" for one in named]
    if len(wanted) > _FILES_MAX or any(one not in files for one in wanted):
        raise DiscordFault(400, 50_035, "Invalid Form Body: attachments")
    return [files[one] for one in wanted]
