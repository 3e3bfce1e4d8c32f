"""Messages that may have arrived at Slack: found by the key in their metadata, which the agent alone writes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from typing import Final

from keepsaid.adapters.channels.slack_api import Answer, SlackApi

_EVENT = "keepsaid_reply"
_EARLIER_MS = 5_000
"""How far before the first try is looked: the clocks of Slack and of this machine differ."""

_PAGE, _PAGES_MAX = 200, 10
WHOLE: Final = -1
"""The number of the message that holds a whole part; plain texts that replace it count from 0."""


def metadata_of(key: str, number: int) -> dict[str, object]:
    """The metadata of a message: the key of its part, and its number among the texts that replace the part, if any."""
    payload: dict[str, object] = {"key": key}
    if number >= 0:
        payload["text"] = number
    return {"event_type": _EVENT, "event_payload": payload}


async def find_sent(
    api: SlackApi, account: str, message: Mapping[str, object], key: str, since_ms: int
) -> dict[int, str]:
    """The names of the messages with a key by their numbers, in the thread or channel to which `message` goes.

    Raises SlackRefused and SlackUnreachable.
    """
    bot = account.partition(":")[2]
    found: dict[int, str] = {}
    async with aclosing(messages_since(api, message, since_ms)) as messages:
        async for one in messages:
            if (number := number_of(one, bot, key)) is not None:
                found[number] = str(one.get("ts", ""))
    return found


async def messages_since(
    api: SlackApi, message: Mapping[str, object], since_ms: int
) -> AsyncGenerator[Mapping[str, object], None]:
    """The messages of the thread or channel to which `message` goes, from `since_ms` (milliseconds UTC) less 5 s on.

    At most the newest 2,000. Raises SlackRefused and SlackUnreachable.
    """
    query: dict[str, object] = {
        "channel": message["channel"],
        "oldest": f"{max(0, since_ms - _EARLIER_MS) / 1_000:.6f}",
        "inclusive": True,
        "include_all_metadata": True,
        "limit": _PAGE,
    }
    thread = message.get("thread_ts")
    if thread is not None:
        query["ts"] = thread
    for _ in range(_PAGES_MAX):
        answer = await api.call("conversations.history" if thread is None else "conversations.replies", query)
        for one in messages_in(answer):
            yield one
        if not (cursor := next_cursor(answer)):
            break
        query["cursor"] = cursor


def messages_in(answer: Answer) -> Iterator[Mapping[str, object]]:
    """The messages in an answer of `conversations.history` or `conversations.replies`."""
    messages = answer.get("messages")
    for one in messages if isinstance(messages, list) else ():
        if isinstance(one, Mapping):
            yield one


def next_cursor(answer: Answer) -> str:
    """The cursor of the next page; "" on the last."""
    about = answer.get("response_metadata")
    cursor = about.get("next_cursor") if isinstance(about, Mapping) else None
    return cursor if isinstance(cursor, str) else ""


def number_of(message: Mapping[str, object], bot: str, key: str) -> int | None:
    """The number of a message of the bot with this key; None of any other."""
    metadata = message.get("metadata")
    if message.get("user") != bot or not isinstance(metadata, Mapping) or metadata.get("event_type") != _EVENT:
        return None
    payload = metadata.get("event_payload")
    if not isinstance(payload, Mapping) or payload.get("key") != key:
        return None
    number = payload.get("text", WHOLE)
    return number if isinstance(number, int) and not isinstance(number, bool) else None
