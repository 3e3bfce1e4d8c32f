"""Attend: which message the newest one is about, and what of the reply targets the model is shown (seed 003)."""

from __future__ import annotations

from collections.abc import Iterator

from keepsaid.domain.attention import Attention, Quote, Settled
from keepsaid.domain.effects import FillSlot
from keepsaid.domain.focus import Focus, FocusKind
from keepsaid.domain.message import Message
from keepsaid.domain.prompt import Json, Role
from keepsaid.domain.reference import Guess, Said, infer
from keepsaid.domain.turn import Claimed, Recent
from keepsaid.pipeline.context.speech import is_named, speaker

_OURSELVES = "assistant"
_UNKNOWN = "it replies to a message that is not known here"


def attend(claimed: Claimed, recent: Recent, settled: tuple[Settled, ...]) -> Attention:
    """The focus in seed 003's order, and the quotes; a retry keeps to what an earlier attempt was shown."""
    shown = claimed.trace.get("quoted") if isinstance(claimed.trace, dict) else None
    focus = _focus(claimed, recent, settled)
    return Attention(focus, _quotes(claimed, recent), settled, shown if isinstance(shown, str) else None)


def _focus(claimed: Claimed, recent: Recent, settled: tuple[Settled, ...]) -> Focus:
    """Reply target; else what is inferred where several speak; else our last words; else a question that fits."""
    newest = claimed.messages[-1]
    replied = _replied(claimed, newest)
    if replied is not None:
        return replied
    guess = _inferred(claimed, recent, newest)
    if guess is not None:
        text, who = next((text, who) for ref, text, who in _told(recent) if ref == guess.ref)
        return Focus(FocusKind.REPLY, guess.ref, text, who, f"inferred: {guess.reason} ({guess.score:g})")
    answer = next(((ref, text) for ref, text, who in reversed(_told(recent)) if not who), None)
    filled = next((one for one in settled if one.message_id == newest.id and isinstance(one.effect, FillSlot)), None)
    if filled is not None and (answer is None or answer[0] == filled.slot.anchor):
        question = filled.slot.question
        reason = f"it answers the pending question, of type {question.expected}"
        return Focus(FocusKind.SLOT, filled.slot.anchor, question.text, "", reason)
    if answer is not None:
        return Focus(FocusKind.ANSWER, answer[0], answer[1], "", "the last thing said to the lane")
    return Focus(reason="no answer stands in this lane yet")


def _replied(claimed: Claimed, newest: Message) -> Focus | None:
    reply_to = newest.inbound.marks.reply_to
    if reply_to is None:
        return None
    target = claimed.around.target(reply_to)
    if target is None:
        return Focus(FocusKind.REPLY, reason=_UNKNOWN)
    return Focus(FocusKind.REPLY, target.ref, target.text, target.speaker, "it replies to it")


def _told(recent: Recent) -> list[tuple[str, str, str]]:
    """What was said in the lane, oldest first: what it shows, its text, and who said it, "" for ourselves."""
    return [
        (ref, record.text, record.speaker if record.role is Role.USER else "")
        for record, ref in zip(recent.records, recent.refs, strict=True)
        if ref and record.text and record.role is not Role.TOOL
    ]


def _inferred(claimed: Claimed, recent: Recent, newest: Message) -> Guess | None:
    """What the newest message answers, where more people than one speak."""
    if not is_named(claimed):
        return None
    history = [Said(ref, who or _OURSELVES, text, name=who) for ref, text, who in _told(recent)]
    before = [Said(f"message:{one.id}", speaker(one), one.text, name=speaker(one)) for one in claimed.messages[:-1]]
    people = {one.speaker for one in (*history, *before)} - {_OURSELVES} | {speaker(newest)}
    if len(people) < 2 or not history:
        return None
    guess = infer([*history, *before], Said("", speaker(newest), newest.text, name=speaker(newest)))
    return guess if guess is not None and any(guess.ref == ref for ref, _, _ in _told(recent)) else None


def _quotes(claimed: Claimed, recent: Recent) -> tuple[Quote, ...]:
    """The known reply targets of the messages, each once, but for those beside them, and one right above the only one.

    That needs no quote: it is the last thing the model reads before the message. With several messages, or with
    anything said since, it would have to guess which one is meant.
    """
    last = recent.refs[-1] if recent.refs else ""
    several = len(claimed.messages) > 1
    return tuple(quote for ref, quote in _targets(claimed) if several or ref != last)


def _targets(claimed: Claimed) -> Iterator[tuple[str, Quote]]:
    seen = {f"message:{message.id}" for message in claimed.messages}
    several = len(claimed.messages) > 1
    for number, message in enumerate(claimed.messages, 1):
        reply_to = message.inbound.marks.reply_to
        target = None if reply_to is None else claimed.around.target(reply_to)
        if target is not None and target.text and target.ref not in seen:
            seen.add(target.ref)
            yield target.ref, Quote(target.text, target.speaker, number if several else 0, target.trust)


def attention_shape(attention: Attention, quoted: str) -> dict[str, Json]:
    """What a trace keeps of it: the focus with its reason, the questions settled, and the block as sent."""
    focus = attention.focus
    slots: list[Json] = [_slot(one) for one in attention.settled]
    about: Json = {"kind": str(focus.kind), "ref": focus.ref, "speaker": focus.speaker, "reason": focus.reason}
    return {"focus": about, "slots": slots, "quoted": quoted}


def _slot(one: Settled) -> Json:
    question, effect = one.slot.question, one.effect
    filled = isinstance(effect, FillSlot)
    return {
        "turn": one.slot.id,
        "question": question.text,
        "expected": str(question.expected),
        "message": one.message_id,
        "verb": "fill" if isinstance(effect, FillSlot) else effect.verb,
        "value": effect.value if isinstance(effect, FillSlot) else "",
        "reason": "" if filled or isinstance(effect, FillSlot) else effect.reason,
    }
