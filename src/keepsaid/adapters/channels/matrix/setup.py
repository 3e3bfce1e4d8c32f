"""The account of a token, looked up at its homeserver: who it is, and what its owner should know of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

from keepsaid.adapters.channels.matrix.api import MatrixApi, MatrixRefused, MatrixUnreachable, path_of
from keepsaid.adapters.channels.matrix.line import reading, unread_rooms, user_of, why_unread
from keepsaid.adapters.channels.matrix.rooms import MatrixRooms
from keepsaid.adapters.channels.matrix.updates import NAME, MatrixUser
from keepsaid.errors import ChannelError
from keepsaid.ports.channel import AccountReport

_ROOMS_MAX = 30
"""Rooms that are looked at for encryption: each costs a request."""


async def look_up(api: MatrixApi, device: str = "", *, decrypts: bool = False) -> AccountReport:
    """The account of the token; `device` is the cursor of that name, the device that the listener used before.

    `decrypts` says that the packages for encrypted rooms are installed.

    Raises ChannelError if the homeserver refuses the token, or does not answer.
    """
    try:
        user = await user_of(api)
        name = await _name(api, user)
        notes = [note async for note in _notes(api, user, device, decrypts=decrypts)]
    except MatrixRefused as error:
        what = f"the homeserver refuses matrix.token: {error}" if error.is_bad_token else f"it answers: {error}"
        hint = "log in again for a token of its own device, and see that matrix.homeserver is the address of the API"
        raise ChannelError(what, hint=hint) from error
    except MatrixUnreachable as error:
        what = f"the homeserver cannot be reached: {error}"
        raise ChannelError(what, hint="see that this machine is online, and matrix.homeserver") from error
    finally:
        await api.close()
    return AccountReport(NAME, user.id, name or user.id, tuple(notes))


async def _name(api: MatrixApi, user: MatrixUser) -> str:
    """The name that the account shows; "" for none. Raises MatrixRefused for what passes, and MatrixUnreachable."""
    try:
        profile = await api.call("GET", path_of("profile", user.id, "displayname"))
    except MatrixRefused as error:
        if error.passes:
            raise
        return ""
    name = profile.get("displayname")
    return name if isinstance(name, str) else ""


async def _notes(api: MatrixApi, user: MatrixUser, device: str, *, decrypts: bool) -> AsyncIterator[str]:
    if not user.device:
        yield "the token belongs to no device: a message that may have arrived is looked for, and repeated marked"
    elif device and device != user.device:
        yield (
            f"the device of the token changed from {device} to {user.device}: messages that may have arrived before "
            "are looked for, and repeated marked"
        )
    joined = (await api.call("GET", "/joined_rooms")).get("joined_rooms")
    rooms, known = (
        [room for room in joined if isinstance(room, str)] if isinstance(joined, list) else [],
        MatrixRooms(api),
    )
    encrypted = [room for room in rooms[:_ROOMS_MAX] if await known.is_encrypted(room)]
    if encrypted and decrypts and user.device:
        yield reading(user)
    elif encrypted:
        yield unread_rooms(encrypted, why_unread(user, "" if decrypts else None))
    if not rooms:
        yield "the account is in no room yet: invite it"
