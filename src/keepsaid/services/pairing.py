"""Pairing, by the owner's word: who was sent a code, is let in, and is let in no longer."""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.config import Config
from keepsaid.config.channels import CLAIMED, UNOWNED
from keepsaid.domain.pairing import LetIn, LetInResult, Pairing, ShutOut, code_in
from keepsaid.domain.visibility import Identity, identity_in
from keepsaid.errors import InputError
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store import Store
from keepsaid.text.normal import normalise

_SAFE = "Nothing was changed."
_LS = "keepsaid channel ls"
_PAIRINGS_MAX = 10_000


def _unknown(code: str) -> InputError:
    what = f"nobody has the code {code}: it held for an hour, or was used"
    return InputError(what, safe=_SAFE, hint=_LS)


class PairingService:
    """Lets people in on channels that not everybody may use."""

    def __init__(self, store: Store, config: Config, clock: Clock) -> None:
        self._store = store
        self._config = config
        self._clock = clock

    async def list(self, limit: int) -> Sequence[Pairing]:
        """Those who were sent a code or let in, newest first."""
        return await self._store.pairings.everybody(limit)

    async def let_in(self, who: str, *, as_owner: bool) -> LetInResult:
        """Let a person in, who is named by a code or as CHANNEL:ACCOUNT:SENDER. Raises InputError with nothing changed.

        `as_owner` says that it is the owner who writes there.
        """
        code = code_in(who)
        named = await self._with_code(code) if code else self._named(who)
        if as_owner and named.channel in CLAIMED:
            what = f"whoever may post on {named.channel} can use any name there, so that none is the owner's by a code"
            raise InputError(
                what, safe=_SAFE, hint="name it in the setting owner; its messages need the operator's token"
            )
        found = await self._store.apply(LetIn(self._clock.now_ms(), code, None if code else named, as_owner))
        if found is None:
            raise _unknown(code)
        return found

    async def shut_out(self, who: str) -> Identity:
        """Let a person in no longer. Raises InputError where they were not let in."""
        named = self._named(who)
        if not await self._store.apply(ShutOut(named)):
            raise InputError(f"{named.person} was not let in by a code", safe=_SAFE, hint=_LS)
        return named

    async def _with_code(self, code: str) -> Identity:
        """Who was sent a code. Raises InputError where nobody has it."""
        found = await self._store.pairings.everybody(_PAIRINGS_MAX)
        if (who := next((one.who for one in found if one.code == code), None)) is None:
            raise _unknown(code)
        return who

    def _named(self, who: str) -> Identity:
        named = identity_in(normalise(who).strip())
        if named is None:
            what = f"{who!r} names nobody: it takes a code of eight letters and digits, or CHANNEL:ACCOUNT:SENDER"
            raise InputError(what, safe=_SAFE, hint=_LS)
        if named.channel not in self._config.channels:
            raise InputError(f"there is no channel {named.channel!r}", safe=_SAFE, hint=_LS)
        if named.channel in UNOWNED:
            raise InputError(f"nobody is let in on {named.channel}: {UNOWNED[named.channel]}", safe=_SAFE, hint=_LS)
        return named
