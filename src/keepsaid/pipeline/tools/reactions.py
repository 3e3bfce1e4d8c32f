"""The tool `react`: gives a message of the conversation that is answered an emoji, instead of words or beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from keepsaid.domain.message import StoredMessage, Trust
from keepsaid.domain.prompt import Json, Record, answered_calls, object_schema
from keepsaid.domain.turn import ClaimedBatch, ToolClass
from keepsaid.errors import ToolError
from keepsaid.ports.channel import ReactingChannel, ReactionTarget
from keepsaid.ports.model import Tool

REACT = "react"
_EMOJI_CHARS_MAX = 100
_DONE = "The message has the reaction now."
_SCHEMA = object_schema(
    {
        "emoji": {"type": "string", "description": "one emoji"},
        "message": {"type": "integer", "description": "its number, if several are shown; by default the newest"},
    },
    "emoji",
)


def react(channel: ReactingChannel, current: Callable[[], ClaimedBatch]) -> Tool:
    """Make the tool for a turn; `current` returns its batch with the messages that have joined it.

    It serves whoever the turn answers: it reaches no other conversation and sends no words. The class is idempotent,
    as a message has each emoji of the agent once: a call that a crash interrupted is repeated.
    """

    async def run(arguments: dict[str, Json]) -> str:
        emoji, claimed = _read_emoji(arguments), current()
        message = _find_message(claimed, arguments)
        marks, sender = message.inbound.marks, message.inbound.origin.sender
        target = ReactionTarget(marks.provider_id or "", sender, message.received_at)
        await channel.react(claimed.batch.lane, target, emoji)
        return _DONE

    says = "Give a message of this conversation an emoji, where that says enough; no answer has to follow."
    return Tool(REACT, says, _SCHEMA, run, ToolClass.IDEMPOTENT, serves=Trust.EXTERNAL, output=Trust.OWNER)


def reason_in(records: Sequence[Record]) -> str:
    """Return why a turn without a reply has none, if the agent reacted in it; "" if it did not."""
    done = any(call.text == _DONE for call in answered_calls(records, REACT))
    return "the agent reacted with an emoji" if done else ""


def _read_emoji(arguments: Mapping[str, Json]) -> str:
    emoji = arguments.get("emoji")
    if not isinstance(emoji, str) or not emoji.strip() or len(emoji) > _EMOJI_CHARS_MAX:
        raise ToolError("emoji must be one emoji")
    return emoji.strip()


def _find_message(claimed: ClaimedBatch, arguments: Mapping[str, Json]) -> StoredMessage:
    """The message that a call means. Raises ToolError if there is none, or if its medium has no name for it."""
    number, shown = arguments.get("message"), claimed.messages
    if number is None:
        named = [one for one in claimed.all_messages if one.inbound.marks.provider_id]
        if not named:
            raise ToolError("no message that is answered here can get a reaction")
        return named[-1]
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= len(shown):
        raise ToolError(f"message must be a number from 1 to {len(shown)}, as the messages are numbered")
    if not shown[number - 1].inbound.marks.provider_id:
        raise ToolError(f"message number {number} cannot get a reaction")
    return shown[number - 1]
