"""Files of Matrix: downloads from the homeserver of the account, whichever server has them.

Source: Matrix specification v1.16, client-server API, module "Content repository".
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing

from keepsaid.adapters.channels.downloads import AnswerStart, FileDownloads
from keepsaid.adapters.channels.matrix.sealed import opened_pieces, sealed_file
from keepsaid.domain.message import Attachment
from keepsaid.errors import FileRefused, FileUnavailable

_PROVIDER = "the homeserver"
_ADDRESS = re.compile(r"mxc://([0-9A-Za-z\[][0-9A-Za-z.:\[\]-]*)/([0-9A-Za-z_-]+)")
_NOW, _BEFORE = "/_matrix/client/v1/media/download", "/_matrix/media/v3/download"
"""Where files are: with the token, and at servers before v1.11 without one."""


class _OldServer(Exception):
    """The homeserver does not know the address of today."""


def is_address(text: str) -> bool:
    """Whether a text is the address of a file: `mxc://SERVER/ID`, with no letters that could lead elsewhere."""
    return _ADDRESS.fullmatch(text) is not None


class MatrixFiles:
    """Downloads what came with messages, from the homeserver at `url` alone."""

    def __init__(self, token: str, url: str) -> None:
        self._token = token
        self._url = url
        self._downloads = FileDownloads(_PROVIDER, url)

    async def fetch(self, file: Attachment) -> AsyncGenerator[bytes, None]:
        """The bytes of a file, decrypted. Raises FileRefused and FileUnavailable; neither shows the token."""
        if (sealed := sealed_file(file.ref)) is None:
            found = self._pieces(file.ref)
        else:
            found = opened_pieces(sealed, self._pieces(sealed.address))
        async with aclosing(found):
            async for piece in found:
                yield piece

    async def _pieces(self, address: str) -> AsyncGenerator[bytes, None]:
        """The bytes at an address."""
        if (found := _ADDRESS.fullmatch(address)) is None:
            raise FileRefused("its address is not one of Matrix")
        name = f"{found.group(1)}/{found.group(2)}"
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        try:
            async with aclosing(self._downloads.pieces(f"{self._url}{_NOW}/{name}", headers, _check)) as pieces:
                async for piece in pieces:
                    yield piece
            return
        except _OldServer:
            pass  # it is asked again below, as such servers expect it
        async with aclosing(self._downloads.pieces(f"{self._url}{_BEFORE}/{name}")) as pieces:
            async for piece in pieces:
                yield piece

    async def close(self) -> None:
        """Close the connections."""
        await self._downloads.close()


def _check(start: AnswerStart) -> None:
    """Raise _OldServer where the server does not know the request, and FileUnavailable for a bad token."""
    if start.status == 401:
        raise FileUnavailable(f"{_PROVIDER} does not accept matrix.token")
    if start.status == 404 and _code_of(start.text) == "M_UNRECOGNIZED":
        raise _OldServer


def _code_of(text: bytes) -> object:
    """The code of the error in an answer; None for one that is not by Matrix."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return told.get("errcode") if isinstance(told, dict) else None
