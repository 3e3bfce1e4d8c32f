"""Quoted reply: what the message answers, labelled, and never mixed into its words (seed 003)."""

from __future__ import annotations

from keepsaid.domain.prompt import Layer
from keepsaid.domain.scene import Scene
from keepsaid.domain.text import cut
from keepsaid.pipeline.context.labels import QUOTED
from keepsaid.pipeline.context.layer import layer
from keepsaid.pipeline.context.speech import indented

_NAME_CHARS_MAX = 60


def quoted(scene: Scene, chars_max: int) -> Layer:
    """The text, cut at its end; whose words they are is said, so that they are not taken for the asker's."""
    quote = scene.passing.quote
    if quote is None or not quote.text:
        return layer("quoted", "")
    name = cut(" ".join(quote.speaker.replace("[", "(").replace("]", ")").split()), _NAME_CHARS_MAX)
    whose = f"written by {name}" if name else "your own words"
    shown = quote.text[:chars_max]
    reason = f"cut to {chars_max:,} of {len(quote.text):,} characters" if len(shown) < len(quote.text) else ""
    return layer("quoted", f"{QUOTED}: the new message replies to this, {whose}]\n  {indented(shown)}", reason)
