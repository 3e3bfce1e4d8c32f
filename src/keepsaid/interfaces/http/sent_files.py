"""Files in the body of a message: read from base64, checked, and named by hashes in the payload that is stored."""

from __future__ import annotations

import binascii
import json
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import field
from hashlib import sha256

from starlette.requests import Request

from keepsaid.app.instance import Instance
from keepsaid.domain.commits import Received
from keepsaid.domain.fetching import AWAITED
from keepsaid.domain.files import FILES_MAX, fitting
from keepsaid.domain.message import Attachment, Inbound
from keepsaid.errors import InputError, TooLarge
from keepsaid.interfaces.http.responses import BadRequest, ServerBusy
from keepsaid.text.normal import cut, kind_of
from keepsaid.values import frozen

FILES = "files"
"""The field of a body that has them."""

_FIELDS = ("name", "type", "content")
_QUOTED_MAX = 80


@frozen
class SentFiles:
    """Files of a message: `payload` is its body with hashes for their bytes, `contents` are the bytes in order.

    `named` are the files as the payload names them.
    """

    payload: bytes = field(repr=False)
    named: Sequence[Mapping[str, object]]
    files: tuple[Attachment, ...]
    contents: tuple[bytes, ...] = field(repr=False)


def read_files(fields: Mapping[str, object], bytes_max: int) -> SentFiles:
    """The files of a body that has some, each of at most `bytes_max` bytes.

    Raises BadRequest, InputError and TooLarge, naming the file.
    """
    given = fields[FILES]
    if not isinstance(given, list):
        raise InputError(f"the field {FILES!r} must be a list of objects, not {kind_of(given)}")
    if len(given) > FILES_MAX:
        raise BadRequest(f"the message has {len(given)} files; {FILES_MAX} are allowed")
    read = [_read(one, f"{FILES}[{n}]", bytes_max) for n, one in enumerate(given)]
    contents = tuple(content for _, content in read)
    named = [
        {"name": file.name, "type": file.kind, "bytes": len(content), "sha256": sha256(content).hexdigest()}
        for file, content in read
    ]
    payload = json.dumps({**fields, FILES: named}, ensure_ascii=False, sort_keys=True)
    return SentFiles(payload.encode("utf-8", "replace"), named, fitting([file for file, _ in read]), contents)


async def receive_with_files(
    request: Request, instance: Instance, inbound: Inbound, contents: Sequence[bytes] = ()
) -> Received:
    """Put a message in; returns once it and its files are on disk. Raises ServerBusy, and what `receive` raises."""
    received = await instance.receive(inbound)
    if contents and not await instance.fetcher.bring(received.id, contents):
        safe = "The message is stored; its files are not known to be."
        raise ServerBusy("another request brings the same files, or the message was forgotten", safe=safe)
    request.app.state.refused_at = None
    return received


def _read(given: object, place: str, bytes_max: int) -> tuple[Attachment, bytes]:
    if not isinstance(given, dict):
        raise InputError(f"{place} must be an object with name and content, not {kind_of(given)}")
    for name in given:
        if name not in _FIELDS:
            raise BadRequest(f"unknown field {cut(name, _QUOTED_MAX)!r} in {place}; known: {', '.join(_FIELDS)}")
    name, content = (_text(given, one, place) for one in ("name", "content"))
    if not name.strip():
        raise InputError(f"{place} needs a name")
    kind = "" if given.get("type") is None else _text(given, "type", place)
    shown = f"{place} ({cut(name, _QUOTED_MAX)!r})"
    padding = content[-2:].count("=")
    if (size := len(content) // 4 * 3 - padding) > bytes_max:
        raise TooLarge(f"the file {shown} has {size:,} bytes; {bytes_max:,} are allowed (files.bytes_max)")
    try:
        read = b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        what = f"the content of {shown} is not base64 (RFC 4648, with padding, without line breaks)"
        raise BadRequest(what) from None
    return Attachment(name, kind, AWAITED, len(read)), read


def _text(given: Mapping[str, object], name: str, place: str) -> str:
    if (value := given.get(name)) is None:
        raise InputError(f"the field {name!r} of {place} is missing")
    if not isinstance(value, str):
        raise InputError(f"the field {name!r} of {place} must be text, not {kind_of(value)}")
    return value
