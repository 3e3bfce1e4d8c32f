"""Forgetting as people ask for it: what they name, what would go, and the receipt of what went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keepsaid.app.forgetting import backups_of
from keepsaid.app.instance import Instance
from keepsaid.domain.forgetting import Forgetting, Wish
from keepsaid.domain.ids import read, show
from keepsaid.domain.memory import OWNER, Listener
from keepsaid.errors import InputError
from keepsaid.interfaces.shapes import Shape, when
from keepsaid.memory.forgetting import counted
from keepsaid.text.normal import cut, normalise

_SHOWN_MAX = 20
_TEXT_CHARS = 200
_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_COUNT_DIGITS_MAX = 12
_UNDO_MS_MAX = 30 * 86_400_000
_OWNER = Listener(None, everything=True)
_SAFE = "Nothing was changed."
_HINT = "keepsaid memory forget --help"


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be forgotten, as it was typed."""

    ids: tuple[str, ...] = ()
    person: str = ""
    conversation: str = ""
    text: str = ""
    undo_for: str = ""


def asked_in(fields: Mapping[str, Any]) -> Asked:
    """What a request body asks for; raises InputError."""
    names = ("person", "conversation", "filter", "undo_for")
    ids, rest = fields.get("ids") or [], [fields.get(name) or "" for name in names]
    if not isinstance(ids, list) or not all(isinstance(one, str) for one in (*ids, *rest)):
        raise InputError(f"ids must be a list of texts; {', '.join(names)} texts", safe=_SAFE, hint=_HINT)
    return Asked(tuple(ids), *rest)


async def forget(instance: Instance, wish: Wish, by: str, undo_ms: int = 0) -> Forgetting | None:
    """Forget what a wish names: nobody is told it when this returns; None when there is nothing.

    A runtime that is up does the rest beside its work; else it is done here.
    """
    begun = await instance.forgetter.forget(wish, by, undo_ms)
    if begun is None or not instance.running:
        return None if begun is None else await instance.forgetter.finish(begun.id)
    instance.forgetting.set()
    return begun


def wish_of(asked: Asked) -> Wish:
    """What is meant; raises InputError for an id that is none, for nothing, and for two ways of choosing at once."""
    memories, messages = [], []
    for given in asked.ids:
        memory, message = read("memory", given), read("message", given)
        if given.startswith("msg_") and message is not None:
            messages.append(message)
        elif memory is not None:
            memories.append(memory)
        else:
            raise InputError(f"{given} names no memory and no message", safe=_SAFE, hint="keepsaid memory ls")
    ways = [bool(asked.ids), *(bool(way.strip()) for way in (asked.person, asked.conversation, asked.text))]
    if sum(ways) != 1:
        raise InputError("name ids, or a person, or a conversation, or a text: one of these", safe=_SAFE, hint=_HINT)
    person, conversation, text = (normalise(one.strip()) for one in (asked.person, asked.conversation, asked.text))
    return Wish(tuple(memories), tuple(messages), person, conversation, text)


def undo_ms(text: str) -> int:
    """For how long it can be undone, in milliseconds: `30d`, `12h`, `45m` or `90s`; 0 for "". Raises InputError."""
    said = text.strip()
    number, unit = said[:-1], _UNITS_MS.get(said[-1:])
    if not said:
        return 0
    is_count = number.isascii() and number.isdecimal() and len(number) < _COUNT_DIGITS_MAX
    if unit is None or not is_count or not 0 < int(number) * unit <= _UNDO_MS_MAX:
        raise InputError(
            f"{cut(text, 40)!r} is no time to undo in: 30d, 12h, 45m or 90s, 30 days at most", safe=_SAFE, hint=_HINT
        )
    return int(number) * unit


async def undone(instance: Instance, name: str) -> Shape:
    """Put back what a request took; raises InputError where that cannot be."""
    number = read("forgetting", name)
    done = None if number is None else await instance.forgetter.undo(number)
    if done is None:
        raise InputError(f"{name} cannot be undone", safe=_SAFE, hint="keepsaid memory forgotten")
    return forgetting_shape(done)


async def would_go(instance: Instance, asked: Asked) -> Shape:
    """What would go, counted, with the first memories of it; nothing is changed. Refuses what forgetting would."""
    undo_ms(asked.undo_for)
    wanted = await instance.forgetter.wanted(wish_of(asked))
    first = await instance.memories.fetch(_OWNER, wanted.memories[:_SHOWN_MAX])
    shown = [
        {"id": show("memory", one.id), "kind": str(one.new.kind), "text": cut(one.text, _TEXT_CHARS)} for one in first
    ]
    return {"dry_run": True, "counts": dict(counted(wanted)), "memories": shown}


async def forgotten(instance: Instance, asked: Asked) -> Shape:
    """Forget, and the receipt as far as it is known; raises InputError where there is nothing to forget."""
    done = await forget(instance, wish_of(asked), OWNER, undo_ms(asked.undo_for))
    if done is None:
        raise InputError("there is nothing like that to forget", safe=_SAFE, hint="keepsaid memory search")
    return forgetting_shape(done, backups_of(instance.home, instance.config))


def forgetting_shape(one: Forgetting, backups: Sequence[str] = ()) -> Shape:
    """A request to forget, how far it is, and what went, by place."""
    return {
        "id": show("forgetting", one.id),
        "state": one.state,
        "how": one.how,
        "by": one.by,
        "requested_at": when(one.requested_at),
        "changed_at": when(one.changed_at),
        "undo_until": when(one.undo_until),
        "counts": dict(one.counts),
        "backups": list(backups),
    }
