"""Matrix beside a scripted homeserver, as the contract of channels plays with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self

from tests.contract.people_casts import ANN, BOB, MATRIX_DIRECT, MATRIX_GROUP, MatrixPeople
from tests.contract.provider_cast import FAILS, QUICK, SPEED, ListeningProviderServer, reply_in

from keepsaid.adapters.channels.matrix.api import MatrixApi
from keepsaid.adapters.channels.matrix.channel import MatrixChannel
from keepsaid.adapters.channels.matrix.e2ee import MatrixCrypto
from keepsaid.adapters.channels.matrix.line import MatrixAccount, MatrixLine
from keepsaid.adapters.channels.matrix.listener import MatrixListener
from keepsaid.adapters.channels.pace import SendingPace
from keepsaid.domain.message import Lane, lane_key
from keepsaid.domain.reply import StoredReply
from keepsaid.ports.channel import Channel
from keepsaid.ports.extension import ListeningProvider
from keepsaid.testing.clock import FastClock
from keepsaid.testing.listening import LineLog, MemoryInbox
from keepsaid.testing.listening_contract import ProviderTraits
from keepsaid.testing.providers.matrix import TOKEN, MatrixServer
from keepsaid.testing.providers.matrix_peer import MatrixPeer
from keepsaid.testing.providers.matrix_rooms import USER, MatrixError
from keepsaid.testing.providers.mischief import Mischief, harmless, mischief_of, one_after_the_other

MEGOLM = "m.megolm.v1.aes-sha2"


class MatrixCast(MatrixPeople):
    """An account of Matrix, in a room with one person and in one with two."""

    acts = upload_acts = FAILS
    secrets = (TOKEN,)
    provider = ProviderTraits()

    def __init__(self) -> None:
        self.clock = FastClock(SPEED)
        self.matrix = MatrixServer(now_ms=lambda: self.clock.now_ms() + self.ahead_ms, poll_scale=1 / SPEED)
        self.server: ListeningProviderServer = self.matrix
        self.inbox = MemoryInbox()

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.matrix.room(MATRIX_DIRECT, ANN)
        self.matrix.room(MATRIX_GROUP, ANN, BOB)
        pace = SendingPace(self.clock, QUICK, QUICK)
        self.channel: Channel = MatrixChannel(self._account(), pace, self.clock, self.upload)
        return self

    def _account(self) -> MatrixAccount:
        return MatrixAccount(MatrixApi(TOKEN, self.matrix.url))

    def reply(self, text: str, number: int = 1) -> StoredReply:
        conversation = f"matrix:{MATRIX_DIRECT}"
        return reply_in(Lane("matrix", USER, conversation, lane_key(conversation)), text, number, self.clock.now_ms())

    def script(self, *acts: Mischief) -> None:
        self.matrix.mischief = one_after_the_other(*acts, method="send")

    def sent(self) -> Sequence[str]:
        return [one.body for one in self.matrix.sent]

    def close_place(self) -> None:
        self.matrix.refusals[MATRIX_DIRECT] = MatrixError(403, "M_FORBIDDEN", "you are not in the room")

    @asynccontextmanager
    async def listener(self, line: LineLog) -> AsyncIterator[ListeningProvider]:
        account = self._account()
        try:
            yield MatrixListener(account, MatrixLine(self.clock, line))
        finally:
            await account.api.close()

    def say(self, text: str) -> None:
        self.last = self.matrix.say(text, MATRIX_DIRECT, ANN)

    def say_in_group(self, text: str, *, addressed: bool) -> None:
        named: dict[str, Any] = {"m.mentions": {"user_ids": [USER]}} if addressed else {}
        self.matrix.say(text, MATRIX_GROUP, ANN, **named)

    def say_itself(self, text: str) -> None:
        self.matrix.say(text, MATRIX_DIRECT, USER)

    def garble(self) -> None:
        self.matrix.send("m.room.message", MATRIX_DIRECT, ANN, {"msgtype": 7, "body": ["?"]})

    def drop(self) -> None:
        self.matrix.drop()

    def trouble(self, seed: int) -> None:
        self.matrix.mischief = mischief_of(seed, 0.2) if seed else harmless

    def refuse(self, *, token: bool) -> None:
        self.matrix.token = "another" if token else TOKEN


class EncryptedMatrixCast(MatrixCast):
    """An account of Matrix in rooms that are encrypted; people write by another implementation of the encryption."""

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        for room in (MATRIX_DIRECT, MATRIX_GROUP):
            self.matrix.room(room, encryption=MEGOLM)
        self.ann = MatrixPeer(self.matrix, ANN)
        return self

    def _account(self) -> MatrixAccount:
        api = MatrixApi(TOKEN, self.matrix.url)
        return MatrixAccount(api, crypto=MatrixCrypto(api, self.clock, self.inbox))

    def sent(self) -> Sequence[str]:
        return self.ann.texts(MATRIX_DIRECT)

    def sent_files(self) -> Sequence[tuple[str, bytes]]:
        return self.ann.files(MATRIX_DIRECT)

    def say(self, text: str) -> None:
        self.last = self.ann.say(text, MATRIX_DIRECT)

    def edit(self, text: str) -> None:
        self.ann.edit(self.last, text, MATRIX_DIRECT)

    def say_in_group(self, text: str, *, addressed: bool) -> None:
        named: dict[str, Any] = {"m.mentions": {"user_ids": [USER]}} if addressed else {}
        self.ann.say(text, MATRIX_GROUP, **named)

    def garble(self) -> None:
        super().garble()
        self.matrix.send("m.room.encrypted", MATRIX_DIRECT, ANN, {"algorithm": MEGOLM, "ciphertext": ["?"]})
