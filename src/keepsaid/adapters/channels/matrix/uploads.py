"""Files out on Matrix: their address is made when the reply is split, their bytes are uploaded before their message.

So the content of the message is decided once, and encrypted once where the room is encrypted. Source: Matrix
specification v1.16, client-server API, "Content repository", asynchronous uploads.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Final

from keepsaid.adapters.channels.matrix.api import MatrixApi, MatrixRefused
from keepsaid.adapters.channels.matrix.contents import Content, place_of_part
from keepsaid.adapters.channels.matrix.sealed import SealedBytes, seal_bytes, sealed_fields
from keepsaid.adapters.channels.uploads import GONE, Upload, UploadSource, not_sent, upload_of
from keepsaid.domain.reply import StoredReply
from keepsaid.domain.turn_files import TurnFile
from keepsaid.values import frozen

_CREATE: Final = "/_matrix/media/v1/create"
_UPLOAD: Final = "/_matrix/media/v3/upload"
_ADDRESS = re.compile(r"mxc://([0-9A-Za-z\[][0-9A-Za-z.:\[\]-]*)/([0-9A-Za-z_-]+)")
_TYPES = {"image": "m.image", "audio": "m.audio", "video": "m.video"}
_BINARY = "application/octet-stream"
_NOT_THERE = "the homeserver does not take it, or it is not kept any more"
"""Words for both: they are encrypted before it is known which they are for."""


@frozen
class FilePart:
    """A part that brings a file: its content, the words in its place, and what is to be uploaded; nothing for {}."""

    content: Content
    words: Content
    upload: Mapping[str, object]


class MatrixUploads:
    """Uploads files of replies to the homeserver of the account."""

    def __init__(self, api: MatrixApi, source: UploadSource) -> None:
        self._api = api
        self._source = source

    async def prepare(self, reply: StoredReply, first: int, *, sealed: bool, is_direct: bool) -> list[FilePart]:
        """The parts that bring the files of a reply, from number `first` on; `sealed` where their room is encrypted.

        Raises MatrixUnreachable and StoreError, and MatrixRefused for what may pass.
        """
        return [
            await self._prepared(reply, file, place_of_part(reply, n, is_direct=is_direct), sealed=sealed)
            for n, file in enumerate(reply.files, start=first)
        ]

    async def _prepared(
        self, reply: StoredReply, file: TurnFile, place: Mapping[str, object], *, sealed: bool
    ) -> FilePart:
        found = await upload_of(self._source, reply, file.number)
        if found is None:
            return _in_words(file, place, GONE)
        made = await asyncio.to_thread(seal_bytes, found.content) if sealed else None
        try:
            address, upload = await self._address(file, found, made)
        except MatrixRefused as error:
            if error.passes:
                raise
            return _in_words(file, place, f"the homeserver answers {error.code or error.status}")
        info = {"mimetype": file.kind, "size": file.size}
        about = {"msgtype": _TYPES.get(file.kind.partition("/")[0], "m.file"), "body": file.name, "filename": file.name}
        where = {"url": address} if made is None else {"file": sealed_fields(made, address)}
        content = {**about, "info": info, "m.mentions": {}, **where, **place}
        return FilePart(content, _in_words(file, place, _NOT_THERE).content, upload)

    async def _address(
        self, file: TurnFile, found: Upload, made: SealedBytes | None
    ) -> tuple[str, Mapping[str, object]]:
        """The address that a file will have, and what is to be uploaded there. Raises as a request.

        At a homeserver that makes none before an upload, it is uploaded now.
        """
        try:
            told = await self._api.media("POST", _CREATE)
        except MatrixRefused as error:
            if error.status not in (404, 405):
                raise
            content, kind = (found.content, found.kind) if made is None else (made.content, _BINARY)
            told = await self._api.media("POST", _UPLOAD, content, kind)
            return str(told.get("content_uri")), {}
        address = str(told.get("content_uri"))
        if _ADDRESS.fullmatch(address) is None:
            raise MatrixRefused(400, "M_UNKNOWN", "the homeserver names no address for a file")
        keys = {} if made is None else {"key": made.key.hex(), "counter": made.counter.hex()}
        return address, {"number": file.number, "url": address, **keys}

    async def bring(self, reply: StoredReply, upload: Mapping[str, object]) -> str:
        """Upload a file to its address; returns why words go in its place, "" where it is there.

        Raises MatrixUnreachable and StoreError, and MatrixRefused for what may pass.
        """
        found = await upload_of(self._source, reply, upload["number"])
        if found is None:
            return GONE
        content, kind = found.content, found.kind
        if "key" in upload:
            key, counter = (bytes.fromhex(str(upload[name])) for name in ("key", "counter"))
            made = await asyncio.to_thread(seal_bytes, content, key, counter)
            content, kind = made.content, _BINARY
        server, number = str(upload["url"]).removeprefix("mxc://").split("/")
        try:
            await self._api.media("PUT", f"{_UPLOAD}/{server}/{number}", content, kind)
        except MatrixRefused as error:
            if error.code == "M_CANNOT_OVERWRITE_MEDIA":
                return ""  # an earlier try arrived
            if error.passes:
                raise
            return f"the homeserver answers {error.code or error.status}"
        return ""


def _in_words(file: TurnFile, place: Mapping[str, object], why: str) -> FilePart:
    content = {"msgtype": "m.text", "body": not_sent(file.name, why), "m.mentions": {}, **place}
    return FilePart(content, content, {})
