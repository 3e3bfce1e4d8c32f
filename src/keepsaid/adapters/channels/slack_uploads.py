"""Files out on Slack: uploaded to an address that Slack names, then shared; words where Slack refuses that.

Nothing is shared before the last request, so what fails before it did not arrive. The message that Slack makes of a
shared file has no key. It is found by its author, and by the name and the size of its file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final

from keepsaid.adapters.channels.slack_api import SlackApi, SlackRefused, SlackUnreachable, refused, unreachable
from keepsaid.adapters.channels.slack_find import WHOLE, messages_since, number_of
from keepsaid.adapters.channels.slack_markdown import escaped
from keepsaid.adapters.channels.uploads import GONE, Upload, UploadSource, not_sent, upload_of
from keepsaid.domain.reply import Delivered, SendResult, StoredReply
from keepsaid.domain.turn_files import TurnFile
from keepsaid.errors import FileRefused

FILE: Final = "file"
"""The key in a part by which it names its file; `name` and `size` are those by which it is found again."""

REPEATED: Final = "(may be a repeat)\n\n"
_OWN = (FILE, "name", "size")
_KNOWN_MAX = 2_000
_NO_SCOPE = "the app lacks the scope files:write (OAuth & Permissions; then install it again)"
_REASONS: Mapping[str, str] = {
    "missing_scope": _NO_SCOPE,
    "file_upload_size_restricted": "the workspace takes no file so large",
    "file_uploads_disabled": "the workspace takes no files",
    "file_uploads_except_images_restricted": "the workspace takes only pictures",
    "no_permission": "the app may not send files there",
}
"""The reason why a file cannot be sent, by the error that Slack names."""


def file_body(place: Mapping[str, object], file: TurnFile) -> dict[str, object]:
    """The part that brings a file to the place of a reply."""
    return {**place, FILE: file.number, "name": file.name, "size": file.size}


def instead_of(message: Mapping[str, object], why: str) -> dict[str, object]:
    """The message in the place of a file that cannot be sent."""
    given = {name: value for name, value in message.items() if name not in _OWN}
    return {**given, "markdown_text": escaped(not_sent(str(message["name"]), why))}


class SlackUploads:
    """Sends files with the bot of `api`; `source` reads their bytes."""

    def __init__(self, api: SlackApi, source: UploadSource) -> None:
        self._api = api
        self._source = source
        self._known: deque[str] = deque(maxlen=_KNOWN_MAX)

    async def find(self, account: str, reply: StoredReply, message: Mapping[str, object], key: str) -> dict[int, str]:
        """The name of the message with the file of a part, or with the words in its place, as that of the whole part.

        Messages with the same file that came with other parts, or as earlier parts of the reply, are not taken for it.
        Raises SlackRefused and SlackUnreachable.
        """
        bot, found = account.partition(":")[2], dict[str, str]()
        since_ms = reply.tried_from or reply.created_at
        async with aclosing(messages_since(self._api, message, since_ms)) as messages:
            async for one in messages:
                ts = str(one.get("ts", ""))
                if number_of(one, bot, key) is not None:
                    return {WHOLE: ts}
                if one.get("user") == bot and (file_id := _file_in(one, message)):
                    found[file_id] = ts
        new = {file_id: ts for file_id, ts in found.items() if file_id not in self._known}
        if not new or len(found) <= _earlier(reply, message):
            return {}
        last = max(new, key=lambda file_id: new[file_id])
        self._known.append(last)
        return {WHOLE: new[last]}

    async def share(self, reply: StoredReply, message: Mapping[str, object], *, is_repeat: bool) -> SendResult | str:
        """Send the file of a part; returns the result, or the reason why words have to be sent in its place."""
        if (file := await upload_of(self._source, reply, message[FILE])) is None:
            return GONE
        try:
            file_id = await self._uploaded(file)
        except FileRefused as error:
            return error.what
        except SlackUnreachable as error:
            return SendResult(Delivered.RETRY, f"not sent: {error}", outage=True)
        except SlackRefused as error:
            return _refusal(error) or replace(refused(error), outcome=Delivered.RETRY, outage=True)
        try:
            await self._api.call("files.completeUploadExternal", _sharing(message, file_id, is_repeat=is_repeat))
        except SlackUnreachable as error:
            return unreachable(error)
        except SlackRefused as error:
            return _refusal(error) or refused(error)
        self._known.append(file_id)
        return SendResult(Delivered.CONFIRMED)

    async def _uploaded(self, file: Upload) -> str:
        """Upload a file; returns its id, by which it can be shared. Raises FileRefused where Slack does not take it,
        or names the address of another server, SlackRefused and SlackUnreachable.
        """
        wanted = {"filename": file.name, "length": len(file.content)}
        named = await self._api.call("files.getUploadURLExternal", wanted)
        url, file_id = named.get("upload_url"), named.get("file_id")
        if not isinstance(url, str) or not isinstance(file_id, str):
            raise SlackUnreachable("Slack does not say where to upload it", sent=True)
        await self._api.upload(url, file.content)
        return file_id


def _sharing(message: Mapping[str, object], file_id: str, *, is_repeat: bool) -> dict[str, object]:
    """The parameters that share an uploaded file in the place of a part."""
    shared: dict[str, object] = {"files": [{"id": file_id, "title": message["name"]}], "channel_id": message["channel"]}
    if "thread_ts" in message:
        shared["thread_ts"] = message["thread_ts"]
    return {**shared, "initial_comment": REPEATED.strip()} if is_repeat else shared


def _refusal(error: SlackRefused) -> str:
    """The reason why a file is never sent; "" where trying it again may help."""
    if (reason := _REASONS.get(error.error)) is not None:
        return f"Slack answered {error}: {reason}"
    passes = error.is_throttled or error.is_in_doubt or error.is_bad_token or error.is_not_done
    return "" if passes else f"Slack answered {error}"


def _earlier(reply: StoredReply, message: Mapping[str, object]) -> int:
    """The number of parts before that of a message that bring a file of the same name and size."""
    before = reply.files[: next((n for n, one in enumerate(reply.files) if one.number == message[FILE]), 0)]
    return sum((one.name, one.size) == (message["name"], message["size"]) for one in before)


def _file_in(found: Mapping[str, Any], message: Mapping[str, object]) -> str:
    """The id of the only file of a message if it is that of a part; else ""."""
    files = found.get("files")
    if not isinstance(files, list) or len(files) != 1 or not isinstance(files[0], Mapping):
        return ""
    file = files[0]
    is_named = message["name"] in (file.get("title"), file.get("name"))
    return str(file.get("id", "")) if is_named and file.get("size") == message["size"] else ""
