"""Files out on Discord: a message brings one, under the nonce of its part, and is found again by its size."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from keepsaid.adapters.channels.discord_api import DiscordApi, DiscordRefused
from keepsaid.adapters.channels.discord_markdown import REPEATED
from keepsaid.adapters.channels.uploads import GONE, Upload, UploadSource, not_sent, upload_of
from keepsaid.domain.reply import StoredReply
from keepsaid.domain.turn_files import TurnFile

FILE: Final = "keepsaid_file"
"""The key in a part by which it names its file: number, name and size."""

_REFUSED = (400, 403, 413)
"""A file that Discord refuses so is refused again: it is too large, or the bot may attach none there."""


def file_body(message: Mapping[str, object], file: TurnFile) -> str:
    """The part that brings a file, made of a message without words."""
    return json.dumps({**message, "content": "", FILE: [file.number, file.name, file.size]})


def repeated(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message that says it may be a repeat."""
    return {**message, "content": f"{REPEATED}{message['content']}"}


async def send_message(
    api: DiscordApi, place: str, message: Mapping[str, Any], file: Upload | None
) -> tuple[object, str]:
    """Send a message, with a file if there is one; words where Discord refuses that. Returns it, and what to note.

    Raises as a request.
    """
    if FILE not in message:
        return await api.call("POST", f"/channels/{place}/messages", message), ""
    plain = {name: one for name, one in message.items() if name != FILE}
    if file is None:
        return await api.call("POST", f"/channels/{place}/messages", _in_words(message, plain, GONE)), ""
    payload = {**plain, "attachments": [{"id": 0, "filename": file.name}]}
    try:
        return await api.upload(f"/channels/{place}/messages", payload, file), ""
    except DiscordRefused as error:
        if error.status not in _REFUSED or "message_reference" in message:
            raise
        words = _in_words(message, plain, f"Discord answered {error.status}")
        made = await api.call("POST", f"/channels/{place}/messages", words)
        return made, f"a file was not sent: {error}"


async def file_of(source: UploadSource, reply: StoredReply, message: Mapping[str, Any]) -> Upload | None:
    """The file that a part brings; None for none, and once it is not kept any more."""
    return await upload_of(source, reply, message[FILE][0]) if FILE in message else None


def brings(told: Mapping[str, Any], message: Mapping[str, Any]) -> bool:
    """Whether a message at Discord has the file of a part; Discord may write the name in another way."""
    found = told.get("attachments")
    sizes = [one.get("size") for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
    return sizes == ([message[FILE][2]] if FILE in message else [])


def _in_words(message: Mapping[str, Any], plain: Mapping[str, Any], why: str) -> dict[str, Any]:
    return {**plain, "content": f"{message['content']}{not_sent(message[FILE][1], why)}"}
