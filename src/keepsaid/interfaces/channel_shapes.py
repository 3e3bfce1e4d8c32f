"""Channels and who may talk there as JSON, the same by command and over HTTP."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from keepsaid.domain.ids import show, when
from keepsaid.domain.pairing import LetInResult, Pairing, PairingState
from keepsaid.ports.channel import AccountReport, ChannelAbilities


def pairing_shape(one: Pairing, at: int) -> dict[str, Any]:
    """A person who was sent a code or let in; `state` is `expired` where the code holds no longer."""
    is_over = one.state is PairingState.PENDING and one.until <= at
    return {
        "who": one.who.person,
        "name": one.name,
        "conversation": one.conversation or None,
        "state": "expired" if is_over else one.state.value,
        "code": None if is_over else one.code or None,
        "at": when(one.at),
    }


def pairings_shape(found: Sequence[Pairing], at: int) -> dict[str, Any]:
    """Those who were sent a code or let in."""
    return {"people": [pairing_shape(one, at) for one in found]}


def let_in_shape(done: LetInResult) -> dict[str, Any]:
    """Who was let in, and the dropped batches with what they said before."""
    dropped = [show("batch", number) for number in done.dropped]
    return {"who": done.who.person, "name": done.name, "state": done.state.value, "dropped": dropped}


def abilities_shape(one: ChannelAbilities) -> dict[str, Any]:
    """What a channel and its medium can do; `keyed_s` is null where a key holds for ever."""
    return {
        "keyed_s": None if math.isinf(one.keyed_s) else one.keyed_s,
        "findable": one.findable,
        "chars_max": one.chars_max,
        "unit": one.unit,
        "typing_s": one.typing_s,
        "streams": one.streams,
        "edits": one.edits,
        "files": one.files,
        "reactions": one.reactions,
        "uploads": one.uploads,
    }


def account_shape(report: AccountReport) -> dict[str, Any]:
    """An account that its provider knows."""
    return {
        "channel": report.channel,
        "account": report.account,
        "name": report.name,
        "notes": list(report.notes),
    }
