"""Promises of commands and questions: carried out once, opened by their turn alone, answered by whoever was asked."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from keepsaid_testkit.crash.evidence import Evidence, MessageRow, SlotRow
from keepsaid_testkit.crash.promises import by_place, held_by

_ASKED = re.compile(r"\[ask:([^\]\s]+)\]")
_FILLED = "filled"
_RESET = "/reset"
"""A turn with this command resets its lane before it reads anything, and no question waits any more."""


def group_messages_by_turn(seen: Evidence) -> dict[int, list[MessageRow]]:
    """The messages that each committed turn settled: those of its batch and of the batches that joined it."""
    places = by_place(seen)
    turns = {turn.batch: turn.id for turn in seen.turns if turn.state == "committed"}
    committed = set(turns.values())
    messages: defaultdict[int, list[MessageRow]] = defaultdict(list)
    for batch in sorted(seen.batches, key=lambda one: (one.lane, one.first)):
        turn = batch.steered if batch.steered in committed else turns.get(batch.id)
        if turn is not None:
            messages[turn] += held_by(batch, places)
    return messages


def check_commands(seen: Evidence) -> Iterator[str]:
    """Every command is run once, by the turn that settles it."""
    wanted = Counter(
        (turn, message.text[1:])
        for turn, messages in group_messages_by_turn(seen).items()
        for message in messages
        if message.is_command
    )
    done = Counter((one.turn, one.name) for one in seen.obeyed)
    for turn, name in sorted(wanted | done):
        if wanted[turn, name] != done[turn, name]:
            times = f"{wanted[turn, name]} times and carried out {done[turn, name]} times"
            yield f"commands: /{name} was answered {times} in turn {turn}"


def check_questions(seen: Evidence) -> Iterator[str]:
    """A committed turn that was to ask a question left one open, for a person in its lane; no other turn did."""
    wanted = {
        turn: _ASKED.findall(" ".join(one.text for one in messages))
        for turn, messages in group_messages_by_turn(seen).items()
    }
    slots = {slot.turn: slot for slot in seen.slots}
    for turn, keys in wanted.items():
        slot = slots.pop(turn, None)
        if bool(keys) != (slot is not None):
            yield f"questions: turn {turn} was to ask {keys}, and asked {slot.question if slot else 'nothing'}"
        elif slot is not None and not any(key in slot.question for key in keys):
            yield f"questions: turn {turn} was to ask {keys}, and asked {slot.question}"
    for turn in slots:
        yield f"questions: something is asked by turn {turn}, which is not committed"
    waiting = Counter((slot.lane, slot.person) for slot in seen.slots if slot.state == "open")
    for (lane, person), many in waiting.items():
        if many > 1:
            yield f"questions: {person} is asked {many} things at once in lane {lane}"


def check_answers(seen: Evidence) -> Iterator[str]:
    """A question is filled only by the first answer in its lane, after the question and in time.

    A question that was asked before that answer was received replaces it.
    """
    stored = {f"message:{message.id}": message for message in seen.messages}
    commits = {turn.id: turn.seq for turn in seen.turns if turn.seq is not None}
    heard: defaultdict[tuple[int, str], list[tuple[MessageRow, int]]] = defaultdict(list)
    resets: defaultdict[int, list[int]] = defaultdict(list)
    questions: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    for turn, messages in sorted(group_messages_by_turn(seen).items(), key=lambda one: commits.get(one[0], 0)):
        for message in messages:
            heard[message.lane, message.sender].append((message, commits.get(turn, 0)))
            if message.text == _RESET:
                resets[message.lane].append(commits.get(turn, 0))
    for slot in seen.slots:
        questions[slot.lane, slot.person].append(commits.get(slot.turn, 0))
    for slot in seen.slots:
        if slot.state == _FILLED:
            yield from _misled(slot, stored.get(slot.filled_by))
            continue
        since = ((one, at) for one, at in heard[slot.lane, slot.person] if one.at >= slot.opened)
        said, when = next(since, (None, 0))
        asked_at = commits.get(slot.turn, 0)
        anew = any(asked_at < at <= when for at in resets[slot.lane])
        instead = any(asked_at < at < when for at in questions[slot.lane, slot.person])
        if said is not None and said.text.isdigit() and said.at < slot.expires and not anew and not instead:
            yield f"questions: {said.external_id} answers what turn {slot.turn} asked, and that is {slot.state}"


def _misled(slot: SlotRow, by: MessageRow | None) -> Iterator[str]:
    if by is None or (by.lane, by.sender) != (slot.lane, slot.person):
        yield f"questions: what turn {slot.turn} asked is answered by {slot.filled_by}, who was not asked there"
    elif not by.text.isdigit() or by.text != slot.value:
        yield f"questions: {by.external_id} is taken for the answer {slot.value}"
    elif not slot.opened <= by.at < slot.expires:
        yield f"questions: {by.external_id} came too early or too late for what it answers"
