"""Route: judge the waiting messages of a lane and cut them into batches of one rule each."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from itertools import groupby

from keepsaid.domain import route
from keepsaid.domain.addressing import Dialogue, decide
from keepsaid.domain.batch import DueLane, Routed, TaskDraft, WaitingGroup, Window
from keepsaid.domain.busy import BusyPolicy, Interrupt
from keepsaid.domain.command import command_in
from keepsaid.domain.commits import Dispatch
from keepsaid.domain.ids import show
from keepsaid.domain.message import Lane, StoredMessage, Trust
from keepsaid.domain.slot import SlotState
from keepsaid.errors import KeepsaidError
from keepsaid.ports import channel, runtime
from keepsaid.ports.store import Store
from keepsaid.ports.telemetry import NO_TELEMETRY, Telemetry
from keepsaid.text.normal import joined, normalise
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.route")
_LANES_MAX = 64
_FAILED_MS = 1_000
_QUESTIONS_MAX = 8
_MOMENT_MS = 50
"""After work the next is looked for a moment later, so that what was just routed goes first."""

_INLINE_BYTES_MAX = 64_000
"""Larger payloads are parsed off the event loop (design: no slice of the loop longer than 2 ms)."""

Judged = tuple[StoredMessage, route.Verdict, route.Rule | None, route.Fields]


def route_unread(routes: route.Routes, due: DueLane, window: Window, ids: runtime.Ids, at: int) -> Dispatch | None:
    """The commit that routes all that waits in a lane as one batch, by what its lane tells.

    None when its messages must be read: for what rules ask, because one batch may not hold them all, or because the
    conversation is paused and its commands get batches of their own.
    """
    count = due.head - due.numbered_after
    if due.paused:
        return None
    if count > window.count_max or (count > 1 and due.chars > window.chars_max):
        return None
    if (decided := route.foreseen(routes, due.lane)) is None:
        return None
    verdict, rule = decided
    priority = due.priority if rule is None or rule.priority is None else rule.priority
    known = (due.numbered_after + 1, due.head, due.oldest_at, due.last_id, due.chars)
    return Dispatch(due.lane, due.numbered_after, (Routed(ids.next(), *known, verdict, priority),), window, at)


async def route_group(routes: route.Routes, group: WaitingGroup, window: Window, ids: runtime.Ids, at: int) -> Dispatch:
    """The commit that routes a group: one batch for each run of messages with the same rule."""
    judged, dialogue = [], Dialogue(group.answered, group.asked, group.addressed, group.settled)
    for message in group.messages:
        one = await _judged(routes, message, dialogue)
        judged.append(_apart(one) if group.paused else one)
        await asyncio.sleep(0)
    batches = []
    for _, run in groupby(judged, key=lambda one: (one[1].rule, one[1].action)):
        batches += [await _batch(list(part), ids) for part in _bounded(list(run), window)]
    return Dispatch(group.lane, group.numbered_after, tuple(batches), window, at, group.paused)


def _apart(judged: Judged) -> Judged:
    """A message of a paused conversation: if it is a command, its batch can be claimed, whatever waits before it."""
    message, verdict, rule, payload = judged
    if verdict.action is not route.Action.FORWARD or command_in(message) is None:
        return judged
    verdict = replace(verdict, rule=route.COMMAND_RULE, reason="a command is read while its conversation is paused")
    return message, verdict, rule, payload


async def _judged(routes: route.Routes, message: StoredMessage, dialogue: Dialogue) -> Judged:
    if message.damaged:
        # No rule can read it, and it must not vanish: the turn parks it for a person.
        verdict = route.Verdict(route.Action.FORWARD, "damaged", routes.version, "it does not match its hash")
        return message, verdict, None, {}
    payload = await _parsed(message) if routes.reads_payload else {}
    verdict, rule = decide(routes, message, payload, dialogue)
    return message, verdict, rule, payload


async def _parsed(message: StoredMessage) -> route.Fields:
    if len(message.inbound.content.payload) <= _INLINE_BYTES_MAX:
        return route.payload_fields(message)
    return await asyncio.to_thread(route.payload_fields, message)


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


async def _batch(part: list[Judged], ids: runtime.Ids) -> Routed:
    messages = [one[0] for one in part]
    _, verdict, rule, payload = part[0]
    priority = min(message.inbound.priority for message in messages)
    if rule is not None and rule.priority is not None:
        priority = rule.priority
    task, template = None, rule.reason if rule else ""
    spawns, is_template = verdict.action is route.Action.SPAWN, route.has_places(template)
    fields = payload or await _parsed(messages[0]) if spawns or is_template else {}
    if is_template:
        verdict = replace(verdict, reason=normalise(route.reasoned(template, messages, fields)))
    if spawns:
        lane = messages[0].lane
        key = joined("|", verdict.rule, lane.channel, lane.account, lane.conversation)
        described = normalise(route.describe(rule.task if rule else "", messages, fields))
        outside = any(one.inbound.origin.trust is not Trust.OWNER for one in messages)
        task = TaskDraft(ids.next(), key, described, rule.work if rule else route.WorkTerms(), outside)
    chars = sum(len(message.text) for message in messages)
    first, last = messages[0], messages[-1]
    return Routed(ids.next(), first.number, last.number, first.received_at, last.id, chars, verdict, priority, task)


@frozen
class RoutingRules:
    """The rules, and by channel the windows and the handling of messages for a busy lane."""

    routes: route.Routes
    windows: Mapping[str, Window]
    busy: Mapping[str, BusyPolicy]

    def window(self, lane: Lane) -> Window:
        return self.windows.get(lane.channel, Window())


@frozen
class Router:
    """Routes every lane whose window has closed, many side by side; one that cannot be routed stops no other.

    `writing` surrounds the commit of a batch; `hints` are set for the work that follows.
    """

    store: Store
    clock: runtime.Clock
    ids: runtime.Ids
    hints: runtime.Wakeups
    writing: Callable[[], AbstractContextManager[None]]
    progress: channel.Progresses
    telemetry: Telemetry = NO_TELEMETRY

    async def route(self, rules: RoutingRules) -> int | None:
        """Lanes whose window has closed become batches with a verdict; returns when the next closes."""
        now = self.clock.due_ms()
        if not (lanes := await self.store.due(now, _LANES_MAX)):
            return await self.store.next_due()
        unread = {lane.lane: route_unread(rules.routes, lane, rules.window(lane.lane), self.ids, now) for lane in lanes}
        read = [lane for lane, dispatch in unread.items() if dispatch is None]
        groups = await self.store.waiting(read) if read else ()
        ready = (
            self._routed(one.batches[-1].last_id, partial(self._dispatch, rules, one)) for one in unread.values() if one
        )
        judged = (self._routed(group.messages[-1].id, partial(self._judge, rules, group, now)) for group in groups)
        routing = asyncio.gather(*ready, *judged)
        self.hints.work.set()
        if not all(await routing):
            return now + _FAILED_MS
        return now if len(lanes) == _LANES_MAX else now + _MOMENT_MS

    async def _routed(self, last_id: int, work: Callable[[], Awaitable[None]]) -> bool:
        """Whether a lane could be routed."""
        try:
            await work()
        except KeepsaidError:
            raise
        except Exception as error:  # noqa: BLE001  # guard: engine loop - one lane must not stop the others
            _log.error("the lane of %s cannot be routed", show("message", last_id), exc_info=error)
            return False
        return True

    async def _judge(self, rules: RoutingRules, group: WaitingGroup, now: int) -> None:
        if group.lane.channel in rules.routes.addressing.channels:
            slots = await self.store.slots(group.lane, _QUESTIONS_MAX)
            asked = frozenset(one.person for one in slots if one.state is SlotState.OPEN and one.expires_at > now)
            group = replace(group, asked=asked)
        dispatch = await route_group(rules.routes, group, rules.window(group.lane), self.ids, now)
        await self._dispatch(rules, dispatch)
        self._tell_settled(group, dispatch)
        if any(batch.task is not None for batch in dispatch.batches):
            self.hints.record.set()
            self.hints.task.set()

    async def _dispatch(self, rules: RoutingRules, dispatch: Dispatch) -> None:
        with self.writing():
            await self.store.apply(dispatch)
        for routed in dispatch.batches:
            self.telemetry.add("keepsaid_batches_routed_total", (routed.verdict.action,))
            waited_ms = self.clock.now_ms() - routed.first_at
            self.telemetry.observe("keepsaid_route_wait_seconds", waited_ms / 1_000)
        if rules.busy.get(dispatch.lane.channel) is BusyPolicy.INTERRUPT:
            # the new messages join the running batch, which restarts
            begun_anew = await self.store.apply(Interrupt(dispatch.lane, dispatch.window, self.clock.now_ms()))
            if begun_anew is not None:
                self.hints.wake_holders(begun_anew)
            self.hints.work.set()

    def _tell_settled(self, group: WaitingGroup, dispatch: Dispatch) -> None:
        """Messages that no turn will answer are settled here; those of a paused conversation wait."""
        for routed in dispatch.batches:
            messages = [one for one in group.messages if routed.first <= one.number <= routed.last]
            if routed.verdict.action in (route.Action.SPAWN, route.Action.DROP):
                self.progress.tell(messages, channel.TurnProgress("settled", routed.verdict.reason))
            elif dispatch.paused and routed.verdict.rule != route.COMMAND_RULE:
                self.progress.tell(messages, channel.TurnProgress("waiting", route.PAUSED, paused=True))
