"""Reactions of an account of Nostr: an event of kind 7 in a gift wrap for each participant (NIP-17, NIP-25).

The time in the event is that of the message, so that the same reaction is the same event however often it is published:
clients show it once, by its id.
"""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.adapters.channels.nostr.keys import DIRECT, HEX, REACTION, NostrForged, NostrKeys
from keepsaid.adapters.channels.nostr.parts import NostrPart, event_of
from keepsaid.adapters.channels.nostr.people import Participants
from keepsaid.errors import ToolError
from keepsaid.ports.channel import ReactionTarget

_SECOND_MS = 1_000


def reaction_of(target: ReactionTarget, emoji: str, people: Participants | None, keys: NostrKeys) -> NostrPart:
    """The events of a reaction, that of the account itself last. Raises ToolError where none can be made.

    The last `p` tag names the author of the message, as NIP-25 wants; the others are the room's.
    """
    if people is None or not people.others:
        raise ToolError("it is not known who takes part in this conversation, or there are too many")
    if people.is_legacy:
        raise ToolError("this conversation uses direct messages of kind 4, which have no private reactions")
    if not HEX.fullmatch(target.provider_id):
        raise ToolError("that message cannot get a reaction: it has no id of Nostr")
    try:
        number, rumor = keys.make_rumor(REACTION, emoji, _tags(target, people.others), target.at_ms // _SECOND_MS)
        events = [event_of(keys.wrap(rumor, person), person) for person in (*people.others, keys.public)]
    except NostrForged:
        raise ToolError("that reaction cannot be written as an event of Nostr") from None
    return NostrPart(number, events)


def _tags(target: ReactionTarget, others: Sequence[str]) -> list[list[str]]:
    author = [target.sender] if target.sender in others else []
    people = [*(one for one in others if one not in author), *author]
    return [["e", target.provider_id], *(["p", one] for one in people), ["k", str(DIRECT)]]
