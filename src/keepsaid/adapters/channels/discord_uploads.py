"""Files out on Discord: a message with a file, the form that carries it, and what is sent where Discord refuses it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from keepsaid.adapters.channels.discord_api import DiscordRefused
from keepsaid.adapters.channels.discord_markdown import REPEATED, escaped
from keepsaid.adapters.channels.uploads import FormBody, Upload, form_of, not_sent
from keepsaid.domain.turn_files import TurnFile

FILE: Final = "file"
"""The key in a part by which it names its file; `name` and `size` are those by which it is found again."""

_OWN = (FILE, "name", "size")
_REASONS: Mapping[int, str] = {
    400: "Discord answered 400",
    403: "Discord answered 403; the bot may lack the permission Attach Files",
    413: "Discord answered 413; it is too large there",
}
"""The refusals of a file that words replace, by their status."""


def file_body(file: TurnFile) -> dict[str, object]:
    """The fields of a part that brings a file, without words."""
    return {"content": "", FILE: file.number, "name": file.name, "size": file.size}


def upload_form(message: Mapping[str, object], file: Upload) -> FormBody:
    """The form that sends a message with its file, as the only attachment."""
    given = {name: value for name, value in message.items() if name not in _OWN}
    given["attachments"] = [{"id": 0, "filename": file.name}]
    return form_of({"payload_json": json.dumps(given)}, {"files[0]": file})


def instead_of(message: Mapping[str, object], why: str) -> dict[str, object]:
    """The message in the place of a file that cannot be sent."""
    words = escaped(not_sent(str(message["name"]), why))
    given = {name: value for name, value in message.items() if name not in _OWN}
    return {**given, "content": f"{message['content']}{words}"}


def plainer(message: dict[str, Any], error: DiscordRefused) -> tuple[dict[str, Any], str] | None:
    """The message to send where Discord refuses how one is made, and its note; None where nothing helps.

    It answers no message any more, then its file is replaced by words.
    """
    if error.status == 400 and "message_reference" in message:
        given = {name: value for name, value in message.items() if name != "message_reference"}
        return given, f"sent without the message it answers: {error}"
    if FILE in message and (why := _REASONS.get(error.status)) is not None:
        return instead_of(message, why), f"a file was not sent: {error}"
    return None


def has_content(found: Mapping[str, Any], message: Mapping[str, Any]) -> bool:
    """Whether a message that was read has the content of a part, perhaps marked: its file, or words in its place."""
    content, wanted = str(found.get("content")), str(message["content"])
    if FILE not in message:
        return content in (wanted, f"{REPEATED}{wanted}")
    words = escaped(not_sent(str(message["name"]), "").rstrip("]"))
    if content.removeprefix(REPEATED).startswith(words.rstrip()):
        return True
    return content in ("", REPEATED.strip()) and _has_file(found.get("attachments"), message)


def _has_file(attachments: object, message: Mapping[str, Any]) -> bool:
    """Whether the only attachment is the file of a part, which Discord may have renamed.

    Discord keeps letters, digits and dots of ASCII in the name, and perhaps the whole of it as the title.
    """
    if not isinstance(attachments, list) or len(attachments) != 1 or not isinstance(attachments[0], dict):
        return False
    file = attachments[0]
    return file.get("size") == message["size"] and _letters(str(file.get("filename"))) == _letters(message["name"])


def _letters(name: str) -> str:
    """The letters and digits of a name that Discord keeps."""
    return "".join(letter for letter in name if letter.isascii() and letter.isalnum())
