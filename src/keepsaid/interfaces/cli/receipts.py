"""Receipts for people: what came to mind in a turn and why, and in which turns a memory came up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from keepsaid.domain.ids import show as name
from keepsaid.domain.receipt import Feedback, FeedbackState, How, Use
from keepsaid.interfaces.cli.escapes import visible
from keepsaid.interfaces.shapes import when
from keepsaid.text.normal import cut

_SHOWN_MAX = 10
_WIDTH = 79
_INDENT = "    "
_HOW = {How.INJECTED: "shown", How.OPENED: "opened by the model", How.LEFT_OUT: "left out", How.BEYOND: "ranked behind"}


def searched(memory: dict[str, Any]) -> list[tuple[str, str]]:
    """How long recall took, how many each leg found and in what time, and what was missing."""
    answered = [one for one in memory.get("searched") or [] if not one["why"]]
    found = [f"{one['leg']} {one['found']} in {one['took_ms']:g} ms" for one in answered]
    recall = [f"{memory.get('took_ms', 0):g} ms", *found]
    recall += [f"nothing was recalled: {memory['skipped']}"] if memory.get("skipped") else []
    return [("recall", "   ".join(recall)), *(("missing", leg) for leg in memory.get("missing") or [])]


def memories(memory: dict[str, Any], *, everything: bool) -> Iterator[str]:
    """What was chosen, and what was left out and why."""
    candidates = memory.get("candidates") or []
    chosen = [one for one in candidates if one["chosen"]]
    left = [one for one in candidates if not one["chosen"]]
    behind = len(memory.get("beyond") or [])
    yield f"CHOSEN {len(chosen)}"
    yield from (_candidate(one) for one in chosen)
    causes = Counter(str(one.get("cause", "")) for one in left)
    grouped = "   ".join(filter(None, (f"{cause} {count}" for cause, count in causes.most_common())))
    yield f"LEFT OUT {len(left)}   {grouped}".rstrip() + (f"   (and {behind} that ranked behind)" if behind else "")
    shown = left if everything else left[:_SHOWN_MAX]
    yield from (_candidate(one) for one in shown)
    if len(shown) < len(left):
        yield f"  {len(left) - len(shown)} more: --all lists them"


def _candidate(one: dict[str, Any]) -> str:
    """A memory in three lines: where the legs had it, what it says, what became of it."""
    legs = one.get("legs") or [[one["leg"], one["rank"], one["score"]]]
    places = "  ".join(f"{leg} #{rank} ({score:.3g})" for leg, rank, score, *_ in legs)
    value = f"  {one['value']:.3f}" if one.get("value") else ""
    return "\n".join(
        (
            f"  {name('memory', one['id'])}{value}  {places}",
            shortened(f"{_INDENT}[{one['kind']}] {one['text']}"),
            f"{_INDENT}{one['reason']}{_measured(one)}",
        )
    )


def _measured(one: dict[str, Any]) -> str:
    """The numbers of a verdict, each beside the least that passes."""
    numbers = (
        f"{what} {value:.3g}" + ("" if least is None else f" of {least:.3g}")
        for what, value, least in one.get("measured") or []
    )
    told = ", ".join(numbers)
    return f" ({told})" if told else ""


def shortened(text: str) -> str:
    """A text on one line of eighty characters; what it begins with stays."""
    begins = text[: len(text) - len(text.lstrip())]
    return cut(begins + " ".join(visible(text).split()), _WIDTH)


def judged(feedback: Sequence[Feedback]) -> list[tuple[str, str]]:
    """What people said of memories."""
    return [
        (
            "wrong" if said.state is FeedbackState.WRONG else "withdrawn",
            f"{name('memory', said.memory_id)} for {name('turn', said.turn_id)}, said by {said.by} {when(said.at)}",
        )
        for said in feedback
    ]


def uses(found: Sequence[Use]) -> Iterator[str]:
    """The turns a memory came up in, newest first."""
    for use in found:
        one: dict[str, Any] = use.found if isinstance(use.found, dict) else {}
        why = str(one.get("reason") or "")
        why = why or (f"it was number {one['rank']}" if use.how is How.BEYOND and one else "")
        yield f"  {name('turn', use.turn_id)}  {when(use.at)}  {_HOW[use.how]}"
        yield shortened(f"{_INDENT}{use.lane.channel} {use.lane.key}" + (f": {why}" if why else ""))
