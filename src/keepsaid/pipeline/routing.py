"""Route: judge the waiting messages of a lane and cut them into batches of one rule each."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import groupby

from keepsaid.domain.batch import DueLane, Routed, TaskDraft, WaitingGroup, Window
from keepsaid.domain.commits import Dispatch
from keepsaid.domain.message import StoredMessage, Trust
from keepsaid.domain.route import (
    Action,
    Fields,
    Routes,
    Rule,
    Verdict,
    describe,
    foreseen,
    has_places,
    judge,
    payload_fields,
    reasoned,
)
from keepsaid.domain.work import WorkTerms
from keepsaid.ports.runtime import Ids
from keepsaid.text.normal import joined, normalise

_INLINE_BYTES_MAX = 64_000
"""Larger payloads are parsed off the event loop (design: no slice of the loop longer than 2 ms)."""

Judged = tuple[StoredMessage, Verdict, Rule | None, Fields]


def route_unread(routes: Routes, due: DueLane, window: Window, ids: Ids, at: int) -> Dispatch | None:
    """The commit that routes all that waits in a lane as one batch, by what its lane tells.

    None when its messages must be read: for what rules ask, or because one batch may not hold them all.
    """
    count = due.head - due.numbered_after
    if count > window.count_max or (count > 1 and due.chars > window.chars_max):
        return None
    decided = foreseen(routes, due.lane)
    if decided is None:
        return None
    verdict, rule = decided
    priority = due.priority if rule is None or rule.priority is None else rule.priority
    known = (due.numbered_after + 1, due.head, due.oldest_at, due.last_id, due.chars)
    return Dispatch(due.lane, due.numbered_after, (Routed(ids.next(), *known, verdict, priority),), window, at)


async def route(routes: Routes, group: WaitingGroup, window: Window, ids: Ids, at: int) -> Dispatch:
    """The commit that routes a group: one batch for each run of messages with the same rule."""
    judged = []
    for message in group.messages:
        judged.append(await _judged(routes, message))
        await asyncio.sleep(0)
    batches = []
    for _, run in groupby(judged, key=lambda one: (one[1].rule, one[1].action)):
        batches += [await _batch(list(part), ids) for part in _bounded(list(run), window)]
    return Dispatch(group.lane, group.numbered_after, tuple(batches), window, at)


async def _judged(routes: Routes, message: StoredMessage) -> Judged:
    if message.damaged:
        # No rule can read it, and it must not vanish: the turn parks it for a person.
        return message, Verdict(Action.FORWARD, "damaged", routes.version, "it does not match its hash"), None, {}
    payload = await _parsed(message) if routes.reads_payload else {}
    verdict, rule = judge(routes, message, payload)
    return message, verdict, rule, payload


async def _parsed(message: StoredMessage) -> Fields:
    if len(message.inbound.content.payload) <= _INLINE_BYTES_MAX:
        return payload_fields(message)
    return await asyncio.to_thread(payload_fields, message)


def _bounded(run: list[Judged], window: Window) -> list[list[Judged]]:
    """The run, cut where a batch would outgrow the window's bounds; a single message is never cut."""
    parts: list[list[Judged]] = []
    chars = 0
    for one in run:
        size = len(one[0].text)
        if not parts or len(parts[-1]) >= window.count_max or chars + size > window.chars_max:
            parts.append([])
            chars = 0
        parts[-1].append(one)
        chars += size
    return parts


async def _batch(part: list[Judged], ids: Ids) -> Routed:
    messages = [one[0] for one in part]
    _, verdict, rule, payload = part[0]
    priority = min(message.inbound.priority for message in messages)
    if rule is not None and rule.priority is not None:
        priority = rule.priority
    task, template = None, rule.reason if rule else ""
    fields = payload or await _parsed(messages[0]) if verdict.action is Action.SPAWN or has_places(template) else {}
    if has_places(template):
        verdict = replace(verdict, reason=normalise(reasoned(template, messages, fields)))
    if verdict.action is Action.SPAWN:
        lane = messages[0].lane
        key = joined("|", verdict.rule, lane.channel, lane.account, lane.conversation)
        described = normalise(describe(rule.task if rule else "", messages, fields))
        outside = any(one.inbound.origin.trust is not Trust.OWNER for one in messages)
        task = TaskDraft(ids.next(), key, described, rule.work if rule else WorkTerms(), outside)
    chars = sum(len(message.text) for message in messages)
    first, last = messages[0], messages[-1]
    return Routed(ids.next(), first.number, last.number, first.received_at, last.id, chars, verdict, priority, task)
