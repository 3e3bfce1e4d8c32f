"""The quoted tail of a mail, cut for the prompt: what the sender answers is in the conversation already.

Only a tail is cut. Answers between quoted lines stay as they are, with what they answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_INTRO_LINES_MAX, _INTRO_CHARS_MAX = 4, 500
_INTROS = (
    ("on ", "wrote:"),
    ("am ", "schrieb", ":"),
    ("le ", "a écrit", ":"),
    ("el ", "escribió", ":"),
    ("il ", "ha scritto:"),
    ("em ", "escreveu", ":"),
)
"""How the line begins, what is in it, and how it ends: English, German, French, Spanish, Italian, Portuguese."""

_ORIGINAL = frozenset(
    (
        "original message",
        "ursprüngliche nachricht",
        "message d'origine",
        "message d’origine",
        "mensaje original",
        "messaggio originale",
        "mensagem original",
    )
)
_OUTLOOK = (
    ("from:", ("sent:", "date:")),
    ("von:", ("gesendet:", "datum:")),
    ("de :", ("envoyé :", "date :")),
    ("de:", ("enviado:", "enviado el:", "enviada em:", "envoyé:", "fecha:")),
    ("da:", ("inviato:", "data:")),
)
"""The first lines of the head that Outlook writes above what is answered."""

_SIGNATURE_LINES_MAX = 15
_DIGIT = re.compile(r"[0-9]")


def without_quoted_tail(text: str) -> str:
    """A text without its signature and what it quotes at its end; the whole text where nothing else is in it."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    kept = _without_trailing_quotes(_without_signature(_before_intro(_without_original(lines))))
    shown = "\n".join(line.rstrip() for line in kept).strip("\n")
    return shown if shown.strip() else "\n".join(line.rstrip() for line in lines).strip("\n")


def _without_original(lines: Sequence[str]) -> Sequence[str]:
    """The lines before the mail that a program appended, under a line such as `-----Original Message-----`."""
    for n, line in enumerate(lines):
        bare = line.strip()
        if bare.startswith("--") and bare.endswith("--") and bare.strip("- ").lower() in _ORIGINAL:
            return lines[:n]
        if _begins_outlook_head(bare.strip("*").lower(), lines[n + 1 : n + 3]):
            before = lines[n - 1].strip() if n else ""
            return lines[: n - 1] if before and not before.strip("_-") else lines[:n]
    return lines


def _begins_outlook_head(line: str, following: Sequence[str]) -> bool:
    after = [one.strip().strip("*").lower() for one in following]
    return any(line.startswith(first) and any(one.startswith(second) for one in after) for first, second in _OUTLOOK)


def _before_intro(lines: Sequence[str]) -> Sequence[str]:
    """The lines before the one that says who wrote what follows, if that is quoted up to the end."""
    quoted, plain = [0], [0]
    for line in reversed(lines):
        is_quoted = line.lstrip().startswith(">")
        quoted.append(quoted[-1] + is_quoted)
        plain.append(plain[-1] + (not is_quoted and bool(line.strip())))
    count, end = len(lines), next((n for n, line in enumerate(lines) if n and _is_signature_mark(line)), len(lines))
    for n in range(count):
        if not (length := _intro_length(lines, n)):
            continue
        after, stop = count - n - length, count - end if n + length <= end else 0
        is_marked = quoted[after] > quoted[stop]
        if plain[after] == plain[stop] if is_marked else "@" in "".join(lines[n : n + length]):
            return lines[:n]
    return lines


def _without_trailing_quotes(lines: Sequence[str]) -> Sequence[str]:
    last = len(lines)
    while last and (not lines[last - 1].strip() or lines[last - 1].startswith(">")):
        last -= 1
    return lines[:last]


def _intro_length(lines: Sequence[str], n: int) -> int:
    """How many lines from a line on are an intro such as `On 3 Nov 2026, Alice wrote:`; 0 where none begins."""
    start = lines[n].lstrip()[:8].lower()
    intros = [one for one in _INTROS if start.startswith(one[0])]
    if not intros:
        return 0
    joined = ""
    for length in range(1, _INTRO_LINES_MAX + 1):
        if n + length > len(lines):
            return 0
        joined = f"{joined} {lines[n + length - 1].strip()[:_INTRO_CHARS_MAX]}".strip().lower()
        if len(joined) > _INTRO_CHARS_MAX:
            return 0
        if any(joined.endswith(one[-1]) and one[1] in joined for one in intros):
            return length if _DIGIT.search(joined) or "@" in joined else 0
    return 0


def _without_signature(lines: Sequence[str]) -> Sequence[str]:
    """The lines before the mark of a signature, unless it is a long one: then more than that follows."""
    for n, line in enumerate(lines):
        if n and _is_signature_mark(line):
            words = [one for one in lines[n + 1 :] if one.strip() and not one.startswith(">")]
            return lines[:n] if len(words) <= _SIGNATURE_LINES_MAX else lines
    return lines


def _is_signature_mark(line: str) -> bool:
    """Whether a line is `-- `, the mark of a signature (RFC 3676); many programs cut its space."""
    return line in ("-- ", "--")
