"""Explaining a turn: why a memory did not come to mind, and turns without a model."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from keepsaid.domain import receipt, views
from keepsaid.domain.command import command_in
from keepsaid.domain.memory import LANE_BOUND, Listener, Memory
from keepsaid.domain.message import SYSTEM, Trust
from keepsaid.domain.route import Action
from keepsaid.domain.turn import ClaimedBatch
from keepsaid.memory.injection import listener_of
from keepsaid.text.topics import topic
from keepsaid.values import frozen


def commanded(turn: views.TurnStory) -> str:
    """Why such a turn has no context, in words; empty for every other turn."""
    if turn.batch.verdict.action is Action.LISTEN and not turn.trace:
        return "the verdict is listen, so no model was called"
    commands = [command_in(message) for message in turn.messages]
    names = [f"/{command.name}" for command in commands if command is not None]
    if turn.trace or not names or len(names) < len(commands):
        return ""
    said = f"{names[0]} is a command" if len(names) == 1 else f"{', '.join(names)} are commands"
    return f"{said}, carried out without a model and without memory"


class AbsenceStage(StrEnum):
    """How far a memory came: it was shown, fell to a rule, ranked behind, or was never among what was searched."""

    SHOWN = "shown"
    LEFT_OUT = "left_out"
    RANK = "rank"
    NOT_SEARCHED = "not_searched"
    LATER = "later"
    SCOPE = "scope"
    STATE = "state"
    NOT_FOUND = "not_found"


@frozen
class Absence:
    """Where a memory fell, and why; `found` is what the trace says of it, if it knows it."""

    stage: AbsenceStage
    why: str
    found: dict[str, Any] | None = None


def listened(turn: views.TurnStory) -> Listener:
    """Who listened in a turn."""
    said = tuple(one for one in turn.messages if one.inbound.origin.sender != SYSTEM)
    return listener_of(ClaimedBatch(turn.batch, turn.turn_id, turn.messages), said)


def absence(turn: views.TurnStory, memory: Memory, *, heard: bool) -> Absence:
    """Why the turn was not shown the memory; `heard` says whether who listened may hear it."""
    found, behind = receipt.candidate_in(turn.trace, memory.id), receipt.beyond_in(turn.trace, memory.id)
    if found is not None:
        shown = bool(found["chosen"])
        return Absence(AbsenceStage.SHOWN if shown else AbsenceStage.LEFT_OUT, str(found["reason"]), dict(found))
    if behind is not None:
        considered = len(_part(turn, "candidates"))
        why = f"it was number {behind['rank']} of what was found, and the best {considered} were looked at"
        return Absence(AbsenceStage.RANK, why, dict(behind))
    skipped = _memory(turn).get("skipped")
    if skipped or not _memory(turn):
        why = commanded(turn) or "the turn recorded no context"
        return Absence(AbsenceStage.NOT_SEARCHED, f"nothing was searched: {skipped or why}")
    if memory.recorded_at > turn.started_at:
        return Absence(AbsenceStage.LATER, "it was not known yet: it was recorded after the turn began")
    if not heard:
        return Absence(AbsenceStage.SCOPE, _unheard(turn, memory))
    if memory.state != "active":
        return Absence(AbsenceStage.STATE, f"it is no longer valid: {memory.state}")
    return Absence(AbsenceStage.NOT_FOUND, _unfound(turn, memory))


def _unheard(turn: views.TurnStory, memory: Memory) -> str:
    new, lane = memory.new, turn.batch.lane
    if new.scope not in listened(turn).scopes:
        return f"it may not be read there: its scope is {new.scope}"
    if new.trust is Trust.EXTERNAL and new.lane != lane:
        return "it came from outside and is readable in its own lane only"
    bound = new.kind in LANE_BOUND and new.lane != lane
    return "it was said in another lane" if bound else f"it may not be read there: its scope is {new.scope}"


def _unfound(turn: views.TurnStory, memory: Memory) -> str:
    said = topic("\n".join(one.text for one in turn.messages))
    shared = sorted(word for word in said & topic(memory.text) if isinstance(word, str))
    missing = "; ".join(str(one) for one in _part(turn, "missing"))
    why = "no leg had it among its best: " + (f"it shares {', '.join(shared[:5])}" if shared else "it shares no word")
    return why + (f" (missing: {missing})" if missing else "")


def _memory(turn: views.TurnStory) -> dict[str, Any]:
    memory = turn.trace.get("memory") if isinstance(turn.trace, dict) else None
    return memory if isinstance(memory, dict) else {}


def _part(turn: views.TurnStory, part: str) -> list[Any]:
    found = _memory(turn).get(part)
    return found if isinstance(found, list) else []
