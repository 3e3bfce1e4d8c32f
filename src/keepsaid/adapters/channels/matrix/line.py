"""The line of an account of Matrix: who it is, whether messages come in, why not, and how long until the next try."""

from __future__ import annotations

import asyncio
from typing import Final

from keepsaid.adapters.channels.backoff import LONGEST_WAIT_MS
from keepsaid.adapters.channels.line import ChannelLine, LineTrouble
from keepsaid.adapters.channels.matrix.api import MatrixApi, MatrixRefused, MatrixUnreachable, wait_ms
from keepsaid.adapters.channels.matrix.e2ee import MatrixCrypto
from keepsaid.adapters.channels.matrix.rooms import MatrixRooms
from keepsaid.adapters.channels.matrix.updates import MatrixUser
from keepsaid.domain.line import LineState
from keepsaid.errors import StoreError, installation

BAD_TOKEN: Final = "KS-CHN: matrix.token is not accepted"  # noqa: S105 - the reason, not a token
_OTHER_USER = "the token is that of another account"
_NAMED_MAX = 5

MatrixTrouble = (MatrixRefused, MatrixUnreachable, StoreError)
"""Errors that a line waits out, however often they come."""


class MatrixAccount:
    """The account of a token; looked up once, and again after the server refused the token.

    `id` is the user id, as `@bot:example.org`; where that is not known, it is "" until the account is looked up.
    """

    def __init__(self, api: MatrixApi, account: str = "", crypto: MatrixCrypto | None = None) -> None:
        self.api = api
        self.id = account
        self.crypto = crypto
        self.rooms = MatrixRooms(api, reads_encrypted=crypto is not None)
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

    def crypto_of(self, user: MatrixUser) -> MatrixCrypto | None:
        """What encrypts and decrypts for the device of the account; None where nothing can."""
        return self.crypto if self.crypto is not None and user.device and not self.crypto.refusal else None

    def encryption(self, user: MatrixUser) -> str:
        """How encrypted rooms fare, for people; "" where there are none."""
        if not self.rooms.encrypted:
            return ""
        if self.crypto_of(user) is not None:
            return reading(user)
        titles = sorted(map(self.rooms.title, self.rooms.encrypted))
        return unread_rooms(titles, why_unread(user, self.crypto.refusal if self.crypto is not None else None))

    def forget(self) -> None:
        """Look up again whose the token is: it may have been revoked."""
        self._user = None


class MatrixLine(ChannelLine):
    """The line of an account: its note says how encrypted rooms fare."""

    def judge(self, error: Exception) -> LineTrouble:
        """What an error makes of the line; a rate limit is waited out as long as the server says, at least."""
        if isinstance(error, MatrixRefused):
            if error.is_throttled:
                return LineTrouble(LineState.THROTTLED, str(error), least_ms=wait_ms(error.retry_after_ms))
            if error.is_bad_token or error.code == "M_FORBIDDEN":
                return LineTrouble(LineState.REFUSED, f"{BAD_TOKEN} ({error})", LONGEST_WAIT_MS)
        return super().judge(error)


def reading(user: MatrixUser) -> str:
    """That encrypted rooms are read, and by which device."""
    return f"encrypted rooms are read by the device {user.device}"


def why_unread(user: MatrixUser, refusal: str | None) -> str:
    """Why encrypted rooms are not read; `refusal` is None where the packages for it are missing."""
    if refusal is None:
        return f"to read them: {installation('matrix-e2ee')}"
    return refusal if user.device else "the token belongs to no device: log in for one that has a device"


def unread_rooms(titles: list[str], why: str = "") -> str:
    """The rooms that are not read because they are encrypted, for people: five by name, the others by their number."""
    if not titles:
        return ""
    more = len(titles) - _NAMED_MAX
    named = ", ".join(titles[:_NAMED_MAX])
    rest = f"{f' and {more} more' if more > 0 else ''}{f'; {why}' if why else ''}"
    return f"messages of encrypted rooms are kept, and not read: {named}{rest}"


async def user_of(api: MatrixApi) -> MatrixUser:
    """The account and the device of the token; raises MatrixRefused and MatrixUnreachable."""
    found = await api.call("GET", "/account/whoami")
    user, device = (one if isinstance(one := found.get(name), str) else "" for name in ("user_id", "device_id"))
    if not user:
        raise MatrixUnreachable("/account/whoami names no user", sent=True)
    return MatrixUser(user, device)
