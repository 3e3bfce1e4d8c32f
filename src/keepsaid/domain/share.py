"""Shares: how a prompt's tokens are divided among its layers, as one line and as a picture's numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from keepsaid.domain.prompt import Json


@dataclass(frozen=True, slots=True)
class Share:
    """A layer of a prompt: its estimated tokens, its characters, and what of it was cut, "" for nothing."""

    name: str
    tokens: int
    chars: int
    cut: str = ""


def shares_of(trace: Json) -> tuple[Share, ...]:
    """The layers that a turn's trace records, in their order; none where none is recorded."""
    layers = trace.get("layers") if isinstance(trace, dict) else None
    found = [one for one in layers if isinstance(one, dict)] if isinstance(layers, list) else []
    return tuple(
        Share(str(one.get("name", "")), _number(one, "tokens"), _number(one, "chars"), str(one.get("cut") or ""))
        for one in found
    )


def _number(layer: Mapping[str, Json], name: str) -> int:
    value = layer.get(name)
    return value if isinstance(value, int) else 0


def in_one_line(shares: tuple[Share, ...], window: int = 0) -> str:
    """The layers with their tokens, and what all of them are of a model's window of so many tokens, 0 for not known."""
    total = sum(one.tokens for one in shares)
    told = " | ".join(f"{one.name} {one.tokens:,}" + (f" ({one.cut})" if one.cut else "") for one in shares)
    whole = f" of {window:,} ({100 * total / window:.0f} %)" if window else ""
    return f"{told}   about {total:,} tokens{whole}"
