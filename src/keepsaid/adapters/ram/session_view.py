"""What readers see of sessions, pending questions, and what messages refer to."""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.adapters.ram import receipts, sessions, standing
from keepsaid.adapters.ram.slots import pending
from keepsaid.adapters.ram.state import State
from keepsaid.adapters.ram.summaries import has_strangers
from keepsaid.domain.attachment import in_words
from keepsaid.domain.focus import Said, Surroundings
from keepsaid.domain.lane import Lane
from keepsaid.domain.message import Message, Trust
from keepsaid.domain.personality import Personality, scopes_around
from keepsaid.domain.session import Quiet, Session
from keepsaid.domain.slot import Slot


class RamSessions:
    """Sessions and slots, read only."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def sessions(self, lane: Lane, limit: int) -> Sequence[Session]:
        """The newest sessions of a lane."""
        row = self._state.lanes.get(lane)
        return [one.value(len(row.transcript)) for one in row.sessions[::-1][:limit]] if row else []

    async def slots(self, lane: Lane, limit: int) -> Sequence[Slot]:
        """The newest questions of a lane."""
        row = self._state.lanes.get(lane)
        return [row.slots[number] for number in sorted(row.slots, reverse=True)[:limit]] if row else []

    async def quiet_since(self) -> Quiet:
        """Since when the longest quiet lanes are."""
        return sessions.quiet_since(self._state)

    async def personalities(self, scopes: Sequence[str]) -> tuple[Personality, ...]:
        """What is set for these scopes."""
        return standing.personalities(self._state, scopes)


def surroundings(state: State, lane: Lane, messages: Sequence[Message]) -> Surroundings:
    """What is asked in a lane, and what these messages reply to in its conversation, in whatever lane that was."""
    row = state.lanes.get(lane)
    targets = dict.fromkeys(message.inbound.marks.reply_to for message in messages)
    found = (_said(state, lane, target) for target in targets if target is not None)
    known = tuple(said for said in found if said is not None)
    set_here = standing.personalities(state, scopes_around(lane, messages))
    asked, wrong = pending(row) if row else (), receipts.wrong_here(state, lane)
    return Surroundings(asked, known, set_here, tuple(state.calibrations.values()), wrong)


def _said(state: State, lane: Lane, target: str) -> Said | None:
    """The first message of that name, else the reply; without an outsider's words of another lane."""
    place = (lane.channel, lane.account, lane.conversation)
    for _, message in sorted(state.messages.items()):
        if message.inbound.marks.provider_id == target and message.lane[:3] == place:
            origin, ref = message.inbound.origin, f"message:{message.id}"
            if message.lane != lane and origin.trust is Trust.EXTERNAL:
                return Said(target, ref, "")
            return Said(target, ref, in_words(message.inbound.content), origin.name or origin.sender, origin.trust)
    for reply_id, reply in sorted(state.replies.items()):
        if reply.provider_id == target and reply.place == place:
            ref = f"notice:{reply_id}" if reply.turn_id is None else f"reply:{reply.turn_id}"
            elsewhere = reply.lane != lane and has_strangers(state.lanes[reply.lane])
            said = state.lanes[reply.lane].transcript if reply.turn_id is not None else []
            trust = next((entry.record.trust for entry in said if entry.ref == ref), None)
            return Said(target, ref, "" if elsewhere else reply.draft.text, trust=trust or Trust.EXTERNAL)
    return None
