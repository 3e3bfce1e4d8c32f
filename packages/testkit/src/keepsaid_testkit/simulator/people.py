"""People and webhooks: they send until it is acknowledged, some of it twice, late or out of order."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from keepsaid.domain.commits import Received
from keepsaid.domain.ids import read
from keepsaid.domain.message import Content, Inbound, Origin, ProviderMarks, Trust
from keepsaid.domain.reply import StoredReply
from keepsaid.errors import KeepsaidError
from keepsaid_testkit.simulator.channels import HOOKS, POST, TALK, WEB, Provider
from keepsaid_testkit.simulator.ledger import RunRecord, Sent
from keepsaid_testkit.simulator.loop import Reset
from keepsaid_testkit.simulator.net import Net

_BATCH = re.compile(r"bat_\w{13}")
_POLL_S = 3.0
_EXCHANGES = 2
_COMMANDS = ("/context", "/reset", "/personality", "/personality set Speak in rhymes.", "/help")


class SimulatedGate(Protocol):
    """The door of whatever process is running; Reset when none is or it dies."""

    async def receive(self, inbound: Inbound) -> Received:
        """Hand a message over."""
        ...

    async def unseen(self, conversation: str) -> tuple[StoredReply, ...]:
        """Replies that wait to be pulled."""
        ...

    async def shown(self, reply_id: int) -> bool:
        """A reply was pulled."""
        ...

    async def requeue(self, batch_id: int) -> bool:
        """A person wants a batch tried again."""
        ...


class Sender:
    """Whoever sends: in one conversation, on one channel."""

    def __init__(self, net: Net, seen: RunRecord, gate: SimulatedGate, place: tuple[str, str], name: str) -> None:
        self._net = net
        self._seen = seen
        self._gate = gate
        self.channel, self.conversation = place
        self._name = name
        self._said: list[str] = []

    async def talk(self, count: int) -> None:
        """Send a number of messages, mostly one after the other."""
        sending: list[asyncio.Task[None]] = []
        for _ in range(count):
            await self._net.pause(0.0, self._net.chance.choice((0.3, 3.0, 12.0)))
            task = asyncio.ensure_future(self._say())
            sending.append(task)
            if self._net.chance.random() < 0.7:
                await task
        for task in sending:
            await task
        if self._net.weather.commands and self.channel != HOOKS:
            await self._converse()
        if self._net.weather.pauses and self.channel != HOOKS:
            await self._say(mode="/resume")

    async def _converse(self) -> None:
        """Stay with the root lane for a while, one thing after the other: what is asked there is answered."""
        for _ in range(_EXCHANGES):
            await self._net.pause(2.0, 12.0)
            await self._say(aside=False)

    async def _say(self, *, aside: bool = True, mode: str = "") -> None:
        """One thing, until it is acknowledged; without a key every try is a message of its own.

        Only `aside` is it a command, in another lane, or a reply to something else. `mode` pauses or resumes the
        conversation instead, from its root lane.
        """
        chance, weather = self._net.chance, self._net.weather
        keyed, again = chance.random() < 0.8, True
        if not mode and aside and weather.pauses and self.channel != HOOKS and self._net.happens(weather.pauses):
            mode = chance.choice(("/pause", "/resume"))
        keyed, aside = keyed or bool(mode), aside and not mode
        sent = self._made(keyed, aside=aside, mode=mode)
        while again:
            copies = [self._try(sent)]
            if keyed and self._net.happens(0.25):
                copies.append(self._try(sent))
            again = not any(await asyncio.gather(*copies))
            if again:
                await self._net.pause(0.2, 4.0)
                sent = sent if keyed else self._made(keyed, aside=aside)
        if keyed and self._net.happens(0.15):
            await self._conflict(sent)

    def _made(self, keyed: bool, *, aside: bool, mode: str = "") -> Sent:
        chance, word = self._net.chance, f"w-{len(self._seen.sent)}"
        event, text = "", f"{word} {chance.choice(('hello there', 'and now?', 'the lantern is in the mill'))}"
        if self.channel == HOOKS:
            event = chance.choice(("push", "deploy", "noise"))
        elif mode:
            text = mode
            self._net.trace.add(f"{word} is {mode}")
        elif aside and self._net.happens(self._net.weather.commands):
            text = chance.choice(_COMMANDS)
        marks = ProviderMarks(word if keyed else None, word)
        topic = chance.choice((None, None, "left", "right")) if aside and self.channel != TALK else None
        if aside and topic is None and self._said and chance.random() < 0.15:
            marks = replace(marks, reply_to=chance.choice(self._said))
        origin = Origin(self.channel, "me", self.conversation, self._name, self._name, trust=Trust.KNOWN)
        payload = json.dumps({"word": word, "text": text}).encode()
        priority = 50 if self.channel == HOOKS else 10
        sent = Sent(
            word, Inbound(origin, Content(payload, text, event), marks, priority, topic), self._net.wall.passed_ms()
        )
        self._seen.sent[word] = sent
        return sent

    async def _try(self, sent: Sent) -> bool:
        """One request; whether it was acknowledged."""
        await self._net.pause(0.0, 0.5)
        try:
            received = await self._gate.receive(sent.inbound)
        except (Reset, KeepsaidError) as error:
            self._net.trace.add(f"{sent.word} not acknowledged: {type(error).__name__}")
            return False
        self._net.trace.add(f"{sent.word} acknowledged: {received.intake} {received.number}")
        if sent.receipt is None:
            sent.receipt, sent.acked = received, self._net.wall.passed_ms()
            self._said.append(sent.word)
        elif sent.receipt[1:] != received[1:]:
            self._seen.broken.append(f"{sent.word} has two receipts: {sent.receipt} and {received}")
        return True

    async def _conflict(self, sent: Sent) -> None:
        """The same key with other content is refused."""
        other = replace(sent.inbound, content=Content(b"{}", f"{sent.word} other words"))
        try:
            received = await self._gate.receive(other)
        except (Reset, KeepsaidError):
            return
        self._seen.broken.append(f"{sent.word}: other content under its key was {received.intake}")

    async def pull(self, provider: Provider, over: Callable[[], bool]) -> None:
        """Ask for replies again and again; what was got is confirmed."""
        while not over():
            await asyncio.sleep(_POLL_S)
            try:
                for reply in await self._gate.unseen(self.conversation):
                    provider.show(reply)
                    await self._gate.shown(reply.id)
            except (Reset, KeepsaidError):
                continue


class SimulatedOwner:
    """Reads notices and has some batches tried again."""

    def __init__(self, net: Net, seen: RunRecord, gate: SimulatedGate) -> None:
        self._net = net
        self._seen = seen
        self._gate = gate

    async def read(self, over: Callable[[], bool]) -> None:
        """Look at notices while the storm lasts."""
        known = 0
        while not over():
            await asyncio.sleep(_POLL_S)
            news, known = self._seen.shown[known:], len(self._seen.shown)
            for one in news:
                named = _BATCH.search(one.text)
                if one.notice and named is not None and self._net.happens(0.4):
                    await self._requeue(read("batch", named.group()))

    async def _requeue(self, batch_id: int | None) -> None:
        if batch_id is None:
            return
        self._seen.requeued.add(batch_id)
        try:
            await self._gate.requeue(batch_id)
        except (Reset, KeepsaidError):
            return


CHANNELS = (TALK, POST, WEB)
