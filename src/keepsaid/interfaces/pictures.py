"""Pictures: the context of a turn as a bar, and how each leg of recall moved memories, in SVG files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

from keepsaid.domain.prompt import LayerShare
from keepsaid.text.normal import cut

WIDTH, MARGIN = 900, 24
"""Of every picture, and what is left free at its sides."""

_BAR, _ROW = 36, 22
_TOP = 84
_NAME_CHARS_MAX, _CUT_CHARS_MAX = 40, 90
COLOURS = ("#3366aa", "#aa6633", "#338866", "#8855aa", "#aa3355", "#557788", "#888833", "#4455cc", "#cc6677", "#447744")
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1a1a1a }
  .page { fill: #ffffff } .free { fill: none; stroke: #767676; stroke-dasharray: 4 3 } .note { fill: #595959 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f0f0 } .page { fill: #16181c } .note { fill: #b0b4ba }
  }"""


def context_bar(title: str, shares: Sequence[LayerShare], window: int) -> str:
    """The layers of a prompt beside one another, as wide as they are long, and each in a line below.

    `window` is how many tokens the model takes; what is free of it stands below, and is drawn where a fifth is used.
    """
    total = sum(one.tokens for one in shares)
    height = _TOP + _BAR + 24 + _ROW * (len(shares) + 1) + MARGIN
    used = f"{total:,} of {window:,} tokens ({100 * total / max(1, window):.1f} %)"
    told = f"{title}: {used}. " + ", ".join(f"{one.name} {one.tokens:,}" for one in shares)
    heading = f'<text x="{MARGIN}" y="58">{text_of(used)}</text>'
    return _framed(title, told, height, (heading, *_bars(shares, total, window), *_lines(shares, total, window)))


def _framed(title: str, told: str, height: int, parts: Iterable[str]) -> str:
    """A whole picture: its parts below its title; `told` is the text alternative."""
    lines = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{text_of(told)}</title><style>{STYLE}\n</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}"/>',
        f'<text x="{MARGIN}" y="34" font-weight="bold">{text_of(title)}</text>',
        *parts,
        "</svg>\n",
    )
    return "\n".join(lines)


def _bars(shares: Sequence[LayerShare], total: int, window: int) -> Iterator[str]:
    """One rectangle a layer; the whole is the window, or what was sent where that is under a fifth of it."""
    room, whole = WIDTH - 2 * MARGIN, max(1, total, window if 5 * total >= window else 0)
    at = float(MARGIN)
    for n, one in enumerate(shares):
        width = room * one.tokens / whole
        label = f"{one.name}: {one.tokens:,} tokens"
        place = f'x="{at:.1f}" y="{_TOP}" width="{width:.1f}" height="{_BAR}"'
        yield f'<rect {place} fill="{COLOURS[n % len(COLOURS)]}"><title>{text_of(label)}</title></rect>'
        at += width
    if whole > total:
        width = WIDTH - MARGIN - at
        yield f'<rect class="free" x="{at:.1f}" y="{_TOP}" width="{width:.1f}" height="{_BAR}"/>'


def _lines(shares: Sequence[LayerShare], total: int, window: int) -> Iterator[str]:
    y = _TOP + _BAR + 30
    for n, one in enumerate(shares):
        colour = COLOURS[n % len(COLOURS)]
        yield f'<rect x="{MARGIN}" y="{y - 11}" width="12" height="12" fill="{colour}"/>'
        yield f'<text x="{MARGIN + 20}" y="{y}">{text_of(cut(one.name, _NAME_CHARS_MAX))}</text>'
        yield f'<text x="290" y="{y}" text-anchor="end">{one.tokens:,}</text>'
        yield f'<text x="350" y="{y}" text-anchor="end">{100 * one.tokens / max(1, total):.0f} %</text>'
        if one.cut:
            yield f'<text class="note" x="370" y="{y}">{text_of(cut(one.cut, _CUT_CHARS_MAX))}</text>'
        y += _ROW
    yield f'<text class="note" x="{MARGIN + 20}" y="{y}">free</text>'
    yield f'<text class="note" x="290" y="{y}" text-anchor="end">{max(0, window - total):,}</text>'


def one_page(*pictures: str) -> str:
    """Several pictures below one another, as one file."""
    heights = [int(picture.split(f'viewBox="0 0 {WIDTH} ', 1)[1].split('"', 1)[0]) for picture in pictures]
    tops = [sum(heights[:n]) for n in range(len(heights))]
    placed = (
        picture.replace("<svg ", f'<svg y="{top}" width="{WIDTH}" height="{height}" ', 1)
        for picture, top, height in zip(pictures, tops, heights, strict=True)
    )
    whole = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {sum(heights)}">'
    return "\n".join((whole, *placed, "</svg>\n"))


def text_of(text: str) -> str:
    """Text as XML takes it: escaped, and without what XML knows no way to write."""
    return escape("".join(one if one.isprintable() or one in " \n" else "\ufffd" for one in text))


_TOP_RANKS, _ROW_RANKS, _ROWS_MAX = 96, 24, 25
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
    height = _TOP_RANKS + _ROW_RANKS * (_FURTHER + 1) + MARGIN
    shown = sum(bool(one["chosen"]) for one in drawn)
    told = f"{title}: of {len(drawn)} memories that came to mind {shown} were shown"
    note = f'<text class="note" x="{MARGIN}" y="56">{text_of(told.removeprefix(f"{title}: "))}</text>'
    headings = (_heading(leg, x) for leg, x in {**columns, "in the end": end}.items())
    moves = (line for n, one in enumerate(drawn) for line in _moved(n, one, columns, end))
    return _framed(title, told, height, (note, *headings, *moves))


def _heading(leg: str, x: int) -> str:
    return f'<text x="{x}" y="{_TOP_RANKS - 18}" text-anchor="middle">{text_of(leg)}</text>'


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
    return _TOP_RANKS + _ROW_RANKS * (min(rank, _FURTHER) - 1) + _ROW_RANKS // 2
