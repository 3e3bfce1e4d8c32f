"""Receipts: in which turns memories came up, and what people said of that."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from keepsaid.adapters.ram.state import State, TurnRow
from keepsaid.domain.commits import Judge
from keepsaid.domain.lane import Lane
from keepsaid.domain.receipt import Feedback, FeedbackState, How, JudgeMemory, Reminded, Use, beyond_in, candidate_in
from keepsaid.domain.states import move

_LAST = 20


def judge(state: State, commit: Judge) -> bool:
    """A person's word on a memory."""
    return judged(state, commit.word, commit.at)


def judged(state: State, word: JudgeMemory, at: int) -> bool:
    """Whether the word stands now; False where the turn was not shown the memory, or nothing is to withdraw."""
    place = (word.turn_id, word.memory_id)
    known, turn = state.feedback.get(place), state.turns.get(word.turn_id)
    if known is not None:
        lane, said = known
        stands = FeedbackState.WRONG if word.verb == "mark" else FeedbackState.WITHDRAWN
        if said.state != stands:
            moved = FeedbackState(move("feedback", said.state, word.verb))
            state.feedback[place] = lane, replace(said, state=moved, by=word.by, at=at)
        return True
    if turn is None or word.memory_id not in turn.shown or word.verb != "mark":
        return False
    state.feedback[place] = turn.batch.lane.lane, Feedback(*place, FeedbackState.WRONG, word.by, at)
    return True


def wrong_here(state: State, lane: Lane) -> frozenset[int]:
    """The memories that somebody said were wrong for turns of a lane."""
    return frozenset(
        said.memory_id for at, said in state.feedback.values() if at == lane and said.state is FeedbackState.WRONG
    )


def feedback_of_turn(state: State, turn_id: int) -> tuple[Feedback, ...]:
    """What was said of the memories of a turn."""
    found = [said for _, said in state.feedback.values() if said.turn_id == turn_id]
    return tuple(sorted(found, key=lambda said: said.memory_id))


class RamReceipts:
    """Receipts, read only."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def reminded(self, lane: Lane) -> Reminded | None:
        """The newest of the lane's last twenty turns that was shown any memory."""
        turns = sorted(turn_id for turn_id, turn in self._state.turns.items() if turn.batch.lane.lane == lane)
        shown = [self._state.turns[turn_id] for turn_id in turns[-_LAST:] if self._state.turns[turn_id].shown]
        return Reminded(shown[-1].id, tuple(shown[-1].shown)) if shown else None

    async def uses(self, memory_id: int, turns: int) -> Sequence[Use]:
        """The turns a memory was shown to or, of the newest, left out of."""
        traced = sorted(turn_id for turn_id, turn in self._state.turns.items() if json.loads(turn.trace) is not None)
        newest = set(traced[-turns:] if turns > 0 else ())
        found = (_use(turn, memory_id, newest) for _, turn in sorted(self._state.turns.items(), reverse=True))
        return [use for use in found if use is not None]

    async def wrong(self, lane: Lane) -> Sequence[Feedback]:
        """What was said to be wrong for turns of a lane and still stands, newest first."""
        stands = [
            said for at, said in self._state.feedback.values() if at == lane and said.state is FeedbackState.WRONG
        ]
        return sorted(stands, key=lambda said: (-said.at, -said.turn_id, said.memory_id))

    async def feedback(self, memory_id: int) -> Sequence[Feedback]:
        """What people said of a memory, newest first."""
        found = [said for _, said in self._state.feedback.values() if said.memory_id == memory_id]
        return sorted(found, key=lambda said: (said.at, said.turn_id), reverse=True)


def _use(turn: TurnRow, memory_id: int, newest: set[int]) -> Use | None:
    trace = json.loads(turn.trace)
    considered, behind = candidate_in(trace, memory_id), beyond_in(trace, memory_id)
    place = (turn.id, turn.batch.lane.lane, turn.started_at)
    if memory_id in turn.shown:
        return Use(*place, How.INJECTED if memory_id in turn.chosen else How.OPENED, considered)
    if turn.id not in newest:
        return None
    if considered is not None and not considered["chosen"]:
        return Use(*place, How.LEFT_OUT, considered)
    return None if behind is None else Use(*place, How.BEYOND, behind)
