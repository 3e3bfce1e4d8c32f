"""The rank picture: how memories moved from their places in each leg of recall to the place they ended at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from keepsaid.interfaces.picture import COLOURS, MARGIN, STYLE, WIDTH, text_of
from keepsaid.text.normal import cut

_TOP, _ROW, _ROWS_MAX = 96, 24, 25
_TEXT_CHARS = 44
_LABELS = 430
_FURTHER = _ROWS_MAX + 1


def rank_shift(title: str, candidates: Sequence[dict[str, Any]]) -> str:
    """One column a leg and one for the end; a line a memory, whole where it was shown and dashed where left out.

    Of a trace's candidates the first 25 are drawn; a place in a leg behind the 25th stands at the bottom.
    """
    drawn = [one for one in candidates if one.get("legs")][:_ROWS_MAX]
    legs = list(dict.fromkeys(str(place[0]) for one in drawn for place in one["legs"]))
    columns = {leg: MARGIN + 20 + n * (WIDTH - _LABELS - MARGIN) // max(1, len(legs)) for n, leg in enumerate(legs)}
    end = WIDTH - _LABELS
    height = _TOP + _ROW * (_FURTHER + 1) + MARGIN
    shown = sum(bool(one["chosen"]) for one in drawn)
    told = f"{title}: of {len(drawn)} memories that came to mind {shown} were shown"
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
            f"<title>{text_of(told)}</title><style>{STYLE}\n</style>",
            f'<rect class="page" width="{WIDTH}" height="{height}"/>',
            f'<text x="{MARGIN}" y="34" font-weight="bold">{text_of(title)}</text>',
            f'<text class="note" x="{MARGIN}" y="56">{text_of(told.removeprefix(f"{title}: "))}</text>',
            *(_heading(leg, x) for leg, x in {**columns, "in the end": end}.items()),
            *(line for n, one in enumerate(drawn) for line in _moved(n, one, columns, end)),
            "</svg>\n",
        )
    )


def _heading(leg: str, x: int) -> str:
    return f'<text x="{x}" y="{_TOP - 18}" text-anchor="middle">{text_of(leg)}</text>'


def _moved(n: int, one: dict[str, Any], columns: dict[str, int], end: int) -> Iterator[str]:
    """One memory: a dot in each leg that had it, the line to its end, and what it says."""
    colour, final = COLOURS[n % len(COLOURS)], _y(n + 1)
    dots = sorted((columns[str(leg)], _y(int(rank)), int(rank)) for leg, rank, *_ in one["legs"])
    path = " L ".join(f"{x} {y}" for x, y in (*((x, y) for x, y, _ in dots), (end, final)))
    dash = "" if one["chosen"] else ' stroke-dasharray="4 3" opacity="0.6"'
    yield f'<path d="M {path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'
    for x, y, rank in dots:
        yield f'<circle cx="{x}" cy="{y}" r="9" fill="{colour}"/>'
        yield f'<text x="{x}" y="{y + 4}" text-anchor="middle" style="fill:#fff;font-size:10px">{rank}</text>'
    yield f'<circle cx="{end}" cy="{final}" r="5" fill="{colour}"/>'
    fell = "" if one["chosen"] else f" ({one.get('cause') or 'left out'})"
    told = text_of(f"{n + 1}. {cut(' '.join(str(one['text']).split()), _TEXT_CHARS)}{fell}")
    yield f'<text x="{end + 14}" y="{final + 4}">{told}</text>'


def _y(rank: int) -> int:
    return _TOP + _ROW * (min(rank, _FURTHER) - 1) + _ROW // 2
