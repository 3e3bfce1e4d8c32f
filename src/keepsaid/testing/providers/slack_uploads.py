"""Uploads to the scripted Slack: an address for each file, its bytes posted there, then shared once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from keepsaid.testing.model_http import HttpRequest
from keepsaid.testing.providers.forms import UploadedFile, is_form, read_form

_PATH = "/upload/v1/"
_OK, _REFUSED, _GONE = 200, 400, 404


class SlackUploadServer:
    """Takes the bytes of files, raw or as a form, as many as were announced.

    `url` replaces the address of this server in what is named, `status` the answer to what is uploaded.
    """

    def __init__(self) -> None:
        self.url = ""
        self.status = _OK
        self._announced: dict[str, tuple[str, int]] = {}
        self._taken: dict[str, UploadedFile] = {}

    def serves(self, request: HttpRequest) -> bool:
        """Whether a request brings a file, and is not for a method of the Web API."""
        return request.path.startswith(_PATH)

    def name(self, url: str, form: Mapping[str, str]) -> dict[str, Any]:
        """Name an address at a server with this URL for a file; raises KeyError with the error that Slack names."""
        name, length = form.get("filename", ""), form.get("length", "")
        if not name or not length.isdecimal() or not int(length):
            raise KeyError("invalid_arguments")
        number = f"F0UP{len(self._announced) + 1}"
        self._announced[number] = (name, int(length))
        return {"upload_url": f"{self.url or url}{_PATH}{number}", "file_id": number}

    def take(self, request: HttpRequest) -> int:
        """Take the bytes of a file; returns the status of the answer."""
        number = request.path.removeprefix(_PATH)
        if number not in self._announced or request.method != "POST":
            return _GONE
        if self.status != _OK:
            return self.status
        name, length = self._announced[number]
        content = next(iter(read_form(request).files.values())).content if is_form(request) else request.body
        if len(content) != length:
            return _REFUSED
        self._taken[number] = UploadedFile(name, "application/octet-stream", content)
        return _OK

    def complete(self, form: Mapping[str, str]) -> dict[str, tuple[str, UploadedFile]]:
        """The titles and the files that are shared now, by their ids; each can be shared once.

        Raises KeyError with the error that Slack names.
        """
        wanted = {str(one["id"]): str(one.get("title", "")) for one in json.loads(form["files"])}
        if not wanted:
            raise KeyError("invalid_arguments")
        if any(number not in self._taken for number in wanted):
            raise KeyError("file_not_found")
        files = {number: self._taken.pop(number) for number in wanted}
        return {number: (wanted[number] or one.name, one) for number, one in files.items()}
