"""People, by the owner's word: joined, split, and what they said shared more widely."""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.config import Config
from keepsaid.domain import memory, message, visibility
from keepsaid.domain.pairing import PairingState
from keepsaid.domain.revision import RevisionRefusal
from keepsaid.errors import InputError
from keepsaid.ports import runtime, store, store_views
from keepsaid.text.normal import normalise
from keepsaid.values import frozen

_SAFE = "Nothing was changed."
_PEOPLE = "keepsaid memory people ls"
_REASON_CHARS_MAX = 1_000


def person_in(text: str, config: Config) -> str:
    """Whom CHANNEL:ACCOUNT:SENDER names; every identity of the owner's is `owner`. Raises InputError."""
    if (named := normalise(text).strip()) == memory.OWNER:
        return memory.OWNER
    if (identity := visibility.identity_in(named)) is None:
        raise InputError(f"{text!r} names nobody: it takes CHANNEL:ACCOUNT:SENDER, or owner", safe=_SAFE, hint=_PEOPLE)
    if identity.channel not in config.channels:
        raise InputError(f"there is no channel {identity.channel!r}", safe=_SAFE, hint="keepsaid config show channels")
    trust = config.trust_of(message.Origin(identity.channel, identity.account, "", identity.sender))
    return memory.OWNER if trust is message.Trust.OWNER else identity.person


@frozen
class PeopleList:
    """Persons that were joined, and identities that something is remembered from, by name."""

    people: Sequence[visibility.Person]
    seen: Sequence[visibility.SeenIdentity]


async def list_people(memories: store.MemoryStore, limit: int) -> PeopleList:
    """Read persons and identities from a store; raises StoreError."""
    return PeopleList(await memories.people.everybody(), await memories.people.seen(limit))


class PeopleService:
    """Links identities of one person, and shares memories."""

    def __init__(
        self, memories: store.MemoryStore, pairings: store_views.PairingView, config: Config, clock: runtime.Clock
    ) -> None:
        self._memories = memories
        self._pairings = pairings
        self._config = config
        self._clock = clock

    async def list(self, limit: int) -> PeopleList:
        """Return all persons that were joined, and up to `limit` identities that something is remembered from."""
        return await list_people(self._memories, limit)

    async def join(self, names: Sequence[str]) -> visibility.Person:
        """Make one person of several identities, by the owner's word. Raises InputError where they are one already."""
        people = tuple(dict.fromkeys([await self._person(name) for name in names]))
        if len(people) < 2:
            raise InputError("it takes two who are not the same already", safe=_SAFE, hint=_PEOPLE)
        person = await self._memories.people.join(people, memory.OWNER, self._clock.now_ms())
        assert person is not None, "the owner joins whom he wants"
        return person

    async def split(self, name: str) -> str:
        """Separate one identity from its person; returns its name. Raises InputError when it was alone."""
        person = await self._person(name)
        if not await self._memories.people.split(person):
            raise InputError(f"{person} is joined with nobody", safe=_SAFE, hint=_PEOPLE)
        return person

    async def _person(self, name: str) -> str:
        """Whom a name means; one whose identity was paired as the owner's is `owner`. Raises InputError."""
        person = person_in(name, self._config)
        identity = visibility.identity_in(person)
        if identity is not None and await self._pairings.standing(identity) is PairingState.OWNER:
            return memory.OWNER
        return person

    async def share(self, memory_id: int, to: str, reason: str) -> visibility.MemoryShared:
        """Share a memory more widely, as the owner. Raises InputError with the reason why not."""
        said = normalise(reason).strip()
        if to not in list(visibility.ShareReach):
            raise InputError(f"there is no {to!r} to widen to; one of: {', '.join(visibility.ShareReach)}", safe=_SAFE)
        if not 0 < len(said) <= _REASON_CHARS_MAX:
            raise InputError(f"say why in 1 to {_REASON_CHARS_MAX:,} characters", safe=_SAFE, hint="--reason TEXT")
        word = visibility.ShareMemory(memory_id, visibility.ShareReach(to), memory.OWNER, said, self._clock.now_ms())
        done = await self._memories.sharing.share(word)
        if isinstance(done, visibility.ShareRefusal):
            raise InputError(str(done), safe=_SAFE, hint="keepsaid memory ls")
        if isinstance(done, RevisionRefusal):
            raise InputError(done.sentence, safe=_SAFE, hint=done.hint)
        return done
