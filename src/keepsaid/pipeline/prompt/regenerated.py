"""Requests for another answer in a batch: each gets the words of the message that it answers once more."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.files import StoredFile
from keepsaid.domain.message import StoredMessage
from keepsaid.domain.prompt import Record
from keepsaid.domain.regeneration import REGENERATE, answered_by, record_of, with_words
from keepsaid.domain.turn import ClaimedBatch
from keepsaid.ports.store import Store

GONE = "the message that was to be answered once more was forgotten, or is not the sender's own"
"""Why a request for another answer has none."""


async def with_answered(store: Store, claimed: ClaimedBatch) -> ClaimedBatch:
    """The batch in which each request has the words and the files of its message.

    A request whose message is gone is left out. `repeats` has the records that replace those of the requests.
    """
    if not any(one.inbound.content.event == REGENERATE for one in claimed.messages):
        return claimed
    messages, files = list[StoredMessage](), list[StoredFile]()
    repeats = list[tuple[int, Record | None]]()
    for message in claimed.messages:
        if (said_id := answered_by(message)) is None:
            messages.append(message)
            continue
        answered = await _answered(store, message, said_id)
        repeats.append((message.id, None if answered is None else record_of(answered, said_id)))
        if answered is not None:
            messages.append(answered)
            files += await store.files.of_messages((said_id,))
    return replace(claimed, messages=tuple(messages), files=(*claimed.files, *files), repeats=tuple(repeats))


async def _answered(store: Store, request: StoredMessage, said_id: int) -> StoredMessage | None:
    """The request with the words of its message; None where that is gone."""
    story = await store.story(said_id)
    return None if story is None else with_words(request, story.message)
