"""Files out on Telegram: the method that each kind of file is sent by, and what is sent where Telegram refuses it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from keepsaid.adapters.channels.telegram_api import TelegramRefused
from keepsaid.adapters.channels.uploads import not_sent
from keepsaid.domain.turn_files import TurnFile

FILE: Final = "file"
"""The key in a part by which it names its file; `method` is how it is sent, `name` what it is called."""

DOCUMENT: Final = "sendDocument"
_PHOTO_BYTES_MAX = 10_000_000
_METHODS = {
    "image/jpeg": "sendPhoto",
    "image/png": "sendPhoto",
    "image/webp": "sendPhoto",
    "image/gif": "sendAnimation",
    "audio/ogg": "sendVoice",
    "audio/mpeg": "sendAudio",
    "audio/mp4": "sendAudio",
    "video/mp4": "sendVideo",
}
"""As what a kind of file is shown; every other is a document."""


def file_body(place: Mapping[str, object], file: TurnFile) -> dict[str, object]:
    """The part that brings a file to the place of a reply."""
    method = _METHODS.get(file.kind, DOCUMENT)
    if method == "sendPhoto" and file.size > _PHOTO_BYTES_MAX:
        method = DOCUMENT
    where = {name: value for name, value in place.items() if name != "link_preview_options"}
    return {**where, FILE: file.number, "method": method, "name": file.name}


def field_of(method: str) -> str:
    """The field of a method that takes the file."""
    return method.removeprefix("send").lower()


def parameters_of(message: Mapping[str, object]) -> dict[str, object]:
    """The parameters of the method that sends a part with a file."""
    return {name: value for name, value in message.items() if name not in (FILE, "method", "name")}


def instead_of(message: Mapping[str, object], why: str) -> dict[str, object]:
    """The message in the place of a file that cannot be sent."""
    said = not_sent(str(message["name"]), why)
    caption = message.get("caption")
    where = {name: value for name, value in parameters_of(message).items() if name != "caption"}
    return {**where, "text": f"{caption}{said}" if caption else said}


def plainer(message: dict[str, object], error: TelegramRefused) -> tuple[dict[str, object], str] | None:
    """What is sent where Telegram refuses how a part is made, and what that is noted as; None where nothing helps.

    A text goes without its styles, a picture or a recording as a document, and words say that a document cannot.
    """
    if FILE in message and error.code in (400, 413):
        if message["method"] != DOCUMENT:
            return {**message, "method": DOCUMENT}, f"sent as a document: {error}"
        return instead_of(message, f"Telegram answered {error.code}"), f"a file was not sent: {error}"
    if error.code == 400 and "entit" in error.what.lower() and "entities" in message:
        return {name: value for name, value in message.items() if name != "entities"}, f"sent without styles: {error}"
    return None
