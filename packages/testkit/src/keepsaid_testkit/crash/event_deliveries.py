"""Promises of the journal: who subscribed hears of everything at least once, and of nothing again that was done."""

from __future__ import annotations

from collections.abc import Iterator

from keepsaid_testkit.crash.evidence import Evidence

_EACH = 1_024
_SLACK_MS = 50
"""Between what is written down of a hearing and of its end stand two clocks' roundings."""


def check_event_deliveries(seen: Evidence) -> Iterator[str]:
    """Every message and every committed turn was delivered, and each delivery ended exactly once."""
    last = {one.event: one.at for one in seen.heard}
    about = {one.about for one in seen.heard}
    for message in seen.messages:
        if str(message.id) not in about:
            yield f"told: nobody heard of message {message.id}"
    for turn in seen.turns:
        if turn.state == "committed" and turn.seq is not None and turn.seq * _EACH not in last:
            yield f"told: nobody heard of turn {turn.id}"
    for one in seen.deliveries:
        if one.state != "done":
            yield f"told: the delivery of event {one.event} is {one.state} in the end"
        elif one.event not in last:
            yield f"told: event {one.event} is done, and was not heard"
        elif last[one.event] > one.ended + _SLACK_MS:
            yield f"told: event {one.event} was told again after it was done"
