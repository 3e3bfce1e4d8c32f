"""The media of a scripted homeserver: for the token of the account, or without one where the server is old."""

from __future__ import annotations

from typing import Any

from keepsaid.testing.model_http import Connection, HttpRequest
from keepsaid.testing.providers.kept_files import KeptFiles

_NOW, _BEFORE = "/_matrix/client/v1/media/download/", "/_matrix/media/v3/download/"


class MatrixMedia:
    """What can be downloaded with `token`; `paths` has what was asked for, in order.

    `is_old` says that the server is one before v1.11, which knows the former address alone.
    """

    def __init__(self, token: str) -> None:
        self.files = KeptFiles()
        self.is_old = False
        self.paths: list[str] = []
        self.token = token

    def serves(self, request: HttpRequest) -> bool:
        """Whether a request is for a file, and not for a method below `/_matrix/client/v3`."""
        return request.path.startswith((_NOW, _BEFORE))

    def attach(self, content: bytes, text: str, /, **fields: Any) -> dict[str, Any]:
        """Keep a file; returns the content of an event that sends it."""
        name = self.files.keep(content)
        info = {"mimetype": "application/octet-stream", "size": len(content)}
        made = {"msgtype": "m.file", "body": text or name, "filename": name, "url": f"mxc://test/{name}", "info": info}
        return {**made, **fields}

    async def send(self, connection: Connection, request: HttpRequest) -> bool:
        """Answer a request for a file; returns whether the connection goes on."""
        self.paths.append(request.path)
        is_now = request.path.startswith(_NOW)
        if is_now and self.is_old:
            await connection.send(404, b'{"errcode": "M_UNRECOGNIZED", "error": "Unrecognized request"}')
        elif is_now and request.headers.get("authorization") != f"Bearer {self.token}":
            await connection.send(401, b'{"errcode": "M_UNKNOWN_TOKEN", "error": "Invalid access token passed."}')
        elif not is_now and not self.is_old:
            await connection.send(404, b'{"errcode": "M_NOT_FOUND", "error": "Not found"}')
        else:
            return await self.files.send(connection, request.path.rpartition("/")[2], request.headers)
        return True
