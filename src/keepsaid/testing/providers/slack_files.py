"""(short: one server) Files of the scripted Slack: for the token of the bot with its scope; else a login page."""

from __future__ import annotations

from typing import Any

from keepsaid.testing.model_http import Connection, HttpRequest
from keepsaid.testing.providers.kept_files import KeptFiles

_PATH = "/files-pri/"
_LOGIN = b"<!DOCTYPE html><html><title>Sign in to Slack</title></html>"


class SlackFileServer:
    """What can be downloaded with the token of the bot; `has_scope` says whether it has `files:read`."""

    def __init__(self, token: str) -> None:
        self.files = KeptFiles()
        self.has_scope = True
        self._token = token

    def serves(self, request: HttpRequest) -> bool:
        """Whether a request is for a file, and not for a method of the Web API."""
        return request.path.startswith(_PATH)

    def attach(self, url: str, content: bytes, /, **fields: Any) -> dict[str, Any]:
        """Keep a file; returns it as messages have it, at a server with this URL."""
        name = self.files.keep(content)
        address = f"{url}{_PATH}T0TEAM-F1/{name}"
        made = {"id": f"F{name}", "name": name, "mode": "hosted", "size": len(content), "url_private": address}
        return {**made, "url_private_download": address, **fields}

    async def send(self, connection: Connection, request: HttpRequest) -> bool:
        """Answer a request for a file; returns whether the connection goes on."""
        if not self.has_scope or request.headers.get("authorization") != f"Bearer {self._token}":
            await connection.send(200, _LOGIN, "text/html; charset=utf-8")
            return True
        return await self.files.send(connection, request.path.rpartition("/")[2], request.headers)
