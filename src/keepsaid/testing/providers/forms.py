"""Forms with files (RFC 7578), as a scripted provider reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesParser
from email.policy import HTTP

from keepsaid.testing.model_http import BadHttpError, HttpRequest


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """A file that was uploaded: its name, its media type, and its bytes."""

    name: str
    kind: str
    content: bytes


@dataclass(frozen=True, slots=True)
class UploadForm:
    """The fields of a form, and the files by the names of theirs."""

    fields: Mapping[str, str]
    files: Mapping[str, UploadedFile]


def is_form(request: HttpRequest) -> bool:
    """Whether the body of a request is a form with files."""
    return request.headers.get("content-type", "").startswith("multipart/form-data")


def read_form(request: HttpRequest) -> UploadForm:
    """The form in a request. Raises BadHttpError for none."""
    head = b"content-type: " + request.headers.get("content-type", "").encode() + b"\r\n\r\n"
    message = BytesParser(policy=HTTP).parsebytes(head + request.body)
    if not message.is_multipart():
        raise BadHttpError(400, "The body has no parts.")
    fields, files = dict[str, str](), dict[str, UploadedFile]()
    for part in message.iter_parts():
        name, content = str(part.get_param("name", header="content-disposition")), _content_of(part)
        if (file := _name_of(part)) is None:
            fields[name] = content.decode()
        else:
            files[name] = UploadedFile(file, part.get_content_type(), content)
    return UploadForm(fields, files)


def _name_of(part: Message) -> str | None:
    """The name of a file, which is UTF-8 where it is not ASCII."""
    found = part.get_filename()
    return None if found is None else found.encode("utf-8", "surrogateescape").decode()


def _content_of(part: Message) -> bytes:
    content = part.get_payload(decode=True)
    assert isinstance(content, bytes), "a part of a form holds no parts"
    return content
