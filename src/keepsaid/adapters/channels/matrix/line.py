"""The line of an account of Matrix: who it is, whether messages come in, why not, and how long until the next try."""

from __future__ import annotations

import asyncio
from typing import Final

from keepsaid.adapters.channels.backoff import LONGEST_WAIT_MS, LineBackoff
from keepsaid.adapters.channels.matrix.api import MatrixApi, MatrixRefused, MatrixUnreachable, wait_ms
from keepsaid.adapters.channels.matrix.rooms import MatrixRooms
from keepsaid.adapters.channels.matrix.updates import MatrixUser
from keepsaid.domain.line import LineState
from keepsaid.errors import StoreError
from keepsaid.ports.channel import LineKeeper
from keepsaid.ports.runtime import Clock

BAD_TOKEN: Final = "KS-CHN: matrix.token is not accepted"  # noqa: S105 - the reason, not a token
_OTHER_USER = "the token is that of another account"
_NAMED_MAX = 5

MatrixTrouble = (MatrixRefused, MatrixUnreachable, StoreError)
"""Errors that a line waits out, however often they come."""


class MatrixAccount:
    """The account of a token; looked up once, and again after the server refused the token.

    `id` is the user id, as `@bot:example.org`; where that is not known, it is "" until the account is looked up.
    """

    def __init__(self, api: MatrixApi, account: str = "") -> None:
        self.api = api
        self.id = account
        self.rooms = MatrixRooms(api)
        self._user: MatrixUser | None = None
        self._looking_up = asyncio.Lock()

    async def user(self) -> MatrixUser:
        """The account; raises MatrixRefused, also for the token of another one, and MatrixUnreachable."""
        async with self._looking_up:
            if self._user is None:
                user = await user_of(self.api)
                if user.id != (self.id or user.id):
                    raise MatrixRefused(401, "", _OTHER_USER)
                self.id, self._user = user.id, user
            return self._user

    def forget(self) -> None:
        """Look up again whose the token is: it may have been revoked."""
        self._user = None


class MatrixLine:
    """Shows the state of the line, and waits before the next try: longer each time, from 1 to 60 seconds."""

    def __init__(self, clock: Clock, keeper: LineKeeper) -> None:
        self.clock = clock
        self._keeper = keeper
        self._backoff = LineBackoff(clock)

    @property
    def is_up(self) -> bool:
        """Whether the last request succeeded."""
        return self._backoff.is_up

    def connecting(self) -> None:
        """Nothing was read yet."""
        self._keeper.show(LineState.CONNECTING)

    def up(self, rooms: MatrixRooms) -> None:
        """Messages come in, from all rooms but those that are encrypted: they are named."""
        self._backoff.up()
        self._keeper.show(LineState.UP, unread_rooms(sorted(map(rooms.title, rooms.encrypted))))

    async def wait_out(self, error: Exception) -> None:
        """Show the error, and wait before the next try, a rate limit as long as the server says."""
        state, reason, wait = LineState.DOWN, str(error), self._backoff.next_ms()
        if isinstance(error, MatrixRefused):
            if error.is_throttled:
                state, wait = LineState.THROTTLED, max(wait, wait_ms(error.retry_after_ms))
            elif error.is_bad_token or error.code == "M_FORBIDDEN":
                state, reason, wait = LineState.REFUSED, f"{BAD_TOKEN} ({error})", LONGEST_WAIT_MS
        self._keeper.show(state, reason, int(wait))
        await self.clock.wait(asyncio.Event(), wait)


def unread_rooms(titles: list[str]) -> str:
    """The rooms that are not read because they are encrypted, for people: five by name, the others by their number."""
    if not titles:
        return ""
    more = len(titles) - _NAMED_MAX
    named = ", ".join(titles[:_NAMED_MAX])
    return f"messages of encrypted rooms are kept, and not read: {named}{f' and {more} more' if more > 0 else ''}"


async def user_of(api: MatrixApi) -> MatrixUser:
    """The account and the device of the token; raises MatrixRefused and MatrixUnreachable."""
    found = await api.call("GET", "/account/whoami")
    user, device = (one if isinstance(one := found.get(name), str) else "" for name in ("user_id", "device_id"))
    if not user:
        raise MatrixUnreachable("/account/whoami names no user", sent=True)
    return MatrixUser(user, device)
