"""Focus: the message that the person most likely refers to (seed 003, FocusAnchor)."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from keepsaid.domain.message import Trust
from keepsaid.domain.personality import Personality
from keepsaid.domain.slot import Slot
from keepsaid.text.tokens import Calibration
from keepsaid.values import frozen


class FocusKind(StrEnum):
    """How it was found: `reply` target, last `answer` of ours in the lane, pending `slot`, or `none`."""

    REPLY = "reply"
    ANSWER = "answer"
    SLOT = "slot"
    NONE = "none"


@frozen
class Focus:
    """What a turn's newest message is about, and why we think so.

    `ref` names the message or reply, such as `message:17` or `reply:9`, "" when it is not known here. `text` is
    what it said, `speaker` who: a name, or "" for ourselves.
    """

    kind: FocusKind = FocusKind.NONE
    ref: str = ""
    text: str = ""
    speaker: str = ""
    reason: str = ""


@frozen
class ReplyTarget:
    """What a reply target said: `ref` as in `Focus`, `speaker` a name, or "" for ourselves."""

    provider_id: str
    ref: str
    text: str
    speaker: str = ""
    trust: Trust = field(default=Trust.EXTERNAL, compare=False)


@frozen
class TurnInputs:
    """Stored state that a turn starts with: the open questions of its lane, and its known reply targets.

    `personalities` are those set for its lane, its people and everybody, `calibrations`
    how models count tokens. `wrong` are the memories that somebody marked as wrong for turns of its lane.
    """

    slots: tuple[Slot, ...] = ()
    said: tuple[ReplyTarget, ...] = ()
    personalities: tuple[Personality, ...] = ()
    calibrations: tuple[Calibration, ...] = ()
    flagged: frozenset[int] = frozenset()

    def calibration(self, model: str) -> Calibration:
        """How a model counts tokens, as far as it is known."""
        return next((one for one in self.calibrations if one.model == model), Calibration(model))

    def target(self, provider_id: str) -> ReplyTarget | None:
        """What was said under a provider's id."""
        return next((one for one in self.said if one.provider_id == provider_id), None)
