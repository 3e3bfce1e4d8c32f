"""The media of a scripted homeserver: for the token of the account, or without one where the server is old."""

from __future__ import annotations

from typing import Any

from keepsaid.testing.model_http import Connection, HttpRequest
from keepsaid.testing.providers.kept_files import KeptFiles
from keepsaid.testing.providers.matrix_rooms import MatrixError

_CREATE, _UPLOAD = "/_matrix/media/v1/create", "/_matrix/media/v3/upload"
_NOW, _BEFORE = "/_matrix/client/v1/media/download/", "/_matrix/media/v3/download/"


class MatrixMedia:
    """What can be downloaded with `token`; `paths` has what was asked for, in order.

    `is_old` says that the server is one before v1.11, which knows the former address alone, and `makes_addresses` that
    it gives an address before a file is uploaded there. Files have at most `bytes_max` bytes.
    """

    def __init__(self, token: str) -> None:
        self.files = KeptFiles()
        self.is_old = False
        self.makes_addresses = True
        self.bytes_max = 50_000_000
        self._addresses = 0
        self.paths: list[str] = []
        self.token = token

    def serves(self, request: HttpRequest) -> bool:
        """Whether a request is for a file, and not for a method below `/_matrix/client/v3`."""
        return request.path.startswith((_NOW, _BEFORE))

    def takes(self, request: HttpRequest) -> bool:
        """Whether a request makes an address for a file, or uploads one."""
        return request.path == _CREATE or request.path.startswith(_UPLOAD)

    def take(self, request: HttpRequest) -> dict[str, Any]:
        """Make an address, or take a file. Raises MatrixError for what the real one refuses."""
        name = request.path.removeprefix(_UPLOAD).strip("/")
        if request.path == _CREATE and not self.makes_addresses:
            raise MatrixError(404, "M_UNRECOGNIZED", "Unrecognized request")
        if request.path == _CREATE or not name:
            self._addresses += 1
        made = f"up{self._addresses}"
        if request.path == _CREATE:
            return {"content_uri": f"mxc://test/{made}", "unused_expires_at": 4_000_000_000_000}
        number = name.rpartition("/")[2] or made
        if name and not (name.startswith("test/up") and number.removeprefix("up").isdecimal()):
            raise MatrixError(404, "M_NOT_FOUND", "Unknown media ID")
        if number in self.files.contents:
            raise MatrixError(409, "M_CANNOT_OVERWRITE_MEDIA", "Media ID already has content")
        if len(request.body) > self.bytes_max:
            raise MatrixError(413, "M_TOO_LARGE", "Upload request body is too large")
        self.files.contents[number] = request.body
        return {"content_uri": f"mxc://test/{number}"} if not name else {}

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
