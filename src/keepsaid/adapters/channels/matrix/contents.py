"""What a reply is at Matrix: the contents of its messages, of possible repeats of them, and as plain text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from keepsaid.adapters.channels.matrix.events import ROOM, THREAD
from keepsaid.adapters.channels.matrix.find import KEY
from keepsaid.adapters.channels.matrix.html import MatrixText, html_of, matrix_texts
from keepsaid.domain.message import Lane, topic_of
from keepsaid.domain.reply import StoredReply
from keepsaid.domain.reply_parts import ReplyPart

Content = Mapping[str, object]
REPEATED: Final = "(may be a repeat)\n"


def part_contents(reply: StoredReply, *, is_direct: bool) -> list[Content]:
    """The contents of the parts of a reply, in the thread of its lane.

    Outside of a thread the first part answers a message, if the room is not direct.
    """
    if reply.files and not reply.draft.text.strip():
        return []
    return [
        {**_words(text), **place_of_part(reply, n, is_direct=is_direct)}
        for n, text in enumerate(matrix_texts(reply.draft.text))
    ]


def place_of_part(reply: StoredReply, n: int, *, is_direct: bool) -> dict[str, object]:
    """What every part has: its key, and its thread, or the message that it answers."""
    thread, answered = topic_of(reply.lane), reply.draft.reply_to
    answered = answered if answered is not None and answered.startswith("$") else None
    place: dict[str, object] = {KEY: ReplyPart(reply.id, n, "").key}
    if thread is not None:
        related = {"rel_type": THREAD, "event_id": thread, "is_falling_back": True}
        place["m.relates_to"] = {**related, "m.in_reply_to": {"event_id": answered or thread}}
    elif answered is not None and n == 0 and not is_direct:
        place["m.relates_to"] = {"m.in_reply_to": {"event_id": answered}}
    return place


def _words(text: MatrixText) -> dict[str, object]:
    """The text in the content of a message. The empty `m.mentions` says that nobody is mentioned, nor the room."""
    content: dict[str, object] = {"msgtype": "m.text", "body": text.body, "m.mentions": {}}
    if text.html:
        content |= {"format": "org.matrix.custom.html", "formatted_body": text.html}
    return content


def marked(content: Mapping[str, object]) -> dict[str, object]:
    """A content that says that it may be a repeat."""
    made = {**content, "body": f"{REPEATED}{content['body']}"}
    if "formatted_body" in content:
        made["formatted_body"] = f"{html_of(REPEATED)}{content['formatted_body']}"
    return made


def plain_form(content: Mapping[str, object]) -> dict[str, object]:
    """A content without HTML, and outside of a thread without the message it answers."""
    related = content.get("m.relates_to")
    dropped = {"format", "formatted_body"}
    if isinstance(related, Mapping) and related.get("rel_type") != THREAD:
        dropped.add("m.relates_to")
    return {name: one for name, one in content.items() if name not in dropped}


def room_of(lane: Lane) -> str:
    """The id of the room of a lane."""
    return lane.conversation.removeprefix(ROOM)
