"""Uploads: the bytes of files that go with replies, read when their part is sent, and how a form carries them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field

from keepsaid.domain.reply import StoredReply
from keepsaid.domain.turn_files import TurnFile
from keepsaid.values import frozen

UPLOAD_S = 180.0
"""How long the request that brings a file may take."""

UploadSource = Callable[[TurnFile], Awaitable[bytes | None]]
"""Reads the bytes of a file; None once they are gone: its message or its turn was forgotten."""


async def no_uploads(_file: TurnFile) -> bytes | None:
    """There is no store to read from."""
    return None


@frozen
class Upload:
    """A file as it is sent."""

    name: str
    kind: str
    content: bytes = field(repr=False)


async def upload_of(source: UploadSource, reply: StoredReply, number: object) -> Upload | None:
    """A file of a reply by its number, with its bytes; None once it is not kept any more."""
    file = next((one for one in reply.files if one.number == number), None)
    content = await source(file) if file is not None else None
    return None if file is None or content is None else Upload(file.name, file.kind, content)


@frozen
class FormBody:
    """The body of a request, and the type that says where its parts begin."""

    content: bytes = field(repr=False)
    kind: str


def form_of(fields: Mapping[str, str], files: Mapping[str, Upload]) -> FormBody:
    """A form with files by the names of their fields (RFC 7578)."""
    import httpx2  # noqa: PLC0415 - a program that sends no file starts without

    given = {name: (file.name, file.content, file.kind) for name, file in files.items()}
    request = httpx2.Request("POST", "http://form.invalid", data=dict(fields), files=given)
    return FormBody(request.read(), request.headers["content-type"])


def not_sent(name: str, why: str) -> str:
    """What is sent in the place of a file that cannot be."""
    return f"[{name} could not be sent: {why}]"


GONE = "it is not kept any more"
"""Why a file is not sent that was forgotten meanwhile."""
