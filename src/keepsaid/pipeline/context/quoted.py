"""Quoted reply: what the message answers, labelled, and never mixed into its words (seed 003)."""

from __future__ import annotations

from keepsaid.domain.prompt import Layer
from keepsaid.domain.scene import Scene
from keepsaid.pipeline.context.labels import QUOTED, named_short
from keepsaid.pipeline.context.layer import layer
from keepsaid.pipeline.context.speech import indented


def quoted(scene: Scene, chars_max: int) -> Layer:
    """The text, cut at its end; whose words they are is said, so that they are not taken for the asker's."""
    quote = scene.passing.quote
    if quote is None or not quote.text:
        return layer("quoted", "")
    name = named_short(quote.speaker)
    whose = f"written by {name}" if name else "your own words"
    shown = quote.text[:chars_max]
    reason = f"cut to {chars_max:,} of {len(quote.text):,} characters" if len(shown) < len(quote.text) else ""
    return layer("quoted", f"{QUOTED}: the new message replies to this, {whose}]\n  {indented(shown)}", reason)
