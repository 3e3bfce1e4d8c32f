"""Admission: who is let in; what a stranger says is kept, in no prompt and no memory, and answered by a code alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from keepsaid.domain import message
from keepsaid.domain.commits import Received
from keepsaid.domain.message import Inbound, Trust
from keepsaid.domain.pairing import CODE_BITS, CODE_MS, AccessRule, PairingState, SendCode, code_of
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.visibility import Identity
from keepsaid.ports.runtime import Clock, Ids, Wakeups
from keepsaid.ports.store import Store
from keepsaid.text.normal import normalise
from keepsaid.values import frozen

_OURS = (message.UNREADABLE, message.AUTOMATIC, message.STRANGER, message.LOOP)
"""Events of what nobody said, and of what was decided about before."""

_EXCHANGES, _WITHIN_MS, _SILENT_MS = 20, 60_000, 60_000
"""After that number of messages of a bot in a conversation within a time, it is not answered there for a time."""

_NOTICE = """\
You are not known here yet: what you write is kept, and not answered.

If this is your agent, run: keepsaid channel pair --owner {code}
If it is somebody else's, give them this code: {code}

The code holds for an hour."""


@frozen
class Admission:
    """Decides whether a sender is let in, on channels that have a rule; on all others everybody is.

    `chance` makes a number of random bits that nobody can guess.
    """

    store: Store
    clock: Clock
    ids: Ids
    hints: Wakeups
    rules: Mapping[str, AccessRule]
    chance: Callable[[int], int]

    async def admit(self, inbound: Inbound) -> Inbound:
        """The message with the trust of a sender who was paired; that of a stranger is marked. Raises StoreError."""
        origin = inbound.origin
        if not _is_said(inbound):
            return inbound
        if inbound.by_bot and await self._is_in_loop(inbound):
            return replace(inbound, content=replace(inbound.content, event=message.LOOP))
        if (rule := self.rules.get(origin.channel)) is None:
            return inbound
        paired = await self.store.pairings.standing(_who(inbound))
        if paired is PairingState.OWNER:
            return replace(inbound, origin=replace(origin, trust=Trust.OWNER))
        if rule.lets_in(origin, paired):
            return inbound
        shut_out = replace(inbound.content, event=message.STRANGER)
        return replace(inbound, origin=replace(origin, trust=Trust.EXTERNAL), content=shut_out)

    async def _is_in_loop(self, inbound: Inbound) -> bool:
        """Whether a bot wrote so often in a conversation that it is not answered for a minute (spec: channels, C11)."""
        latest = await self.store.pairings.recent_times(_who(inbound), inbound.origin.conversation, _EXCHANGES)
        if len(latest) < _EXCHANGES or latest[0] - latest[-1] > _WITHIN_MS:
            return False
        return self.clock.now_ms() - latest[0] < _SILENT_MS

    async def send_code(self, inbound: Inbound, received: Received) -> None:
        """Send a code to a stranger who may be paired, once an hour. Raises StoreError.

        It is asked again for a message that comes again: the process may have died before.
        """
        origin = inbound.origin
        rule = self.rules.get(origin.channel)
        if rule is None or inbound.content.event != message.STRANGER or not rule.pairs(origin):
            return
        now, code = self.clock.now_ms(), code_of(self.chance(CODE_BITS))
        reply_to, url = inbound.marks.provider_id, inbound.reply_url
        notice = ReplyDraft(self.ids.next(), _NOTICE.format(code=code), notice=True, url=url, reply_to=reply_to)
        if await self.store.apply(SendCode(_who(inbound), received.id, code, notice, now, now + CODE_MS)):
            self.hints.deliver.set()


def _is_said(inbound: Inbound) -> bool:
    """Whether a person said it, and not the program."""
    return inbound.origin.sender != message.SYSTEM and inbound.content.event not in _OURS


def _who(inbound: Inbound) -> Identity:
    origin = inbound.origin
    return Identity(origin.channel, normalise(origin.account), normalise(origin.sender))
