"""Notes: a memory the owner adds by hand."""

from __future__ import annotations

from keepsaid.domain.memory import IMPORTANCE, OWNER, Kind, NewMemory, Source, person_scope
from keepsaid.domain.message import Trust
from keepsaid.errors import InputError
from keepsaid.text.normal import digest, normalise

_CHARS_MAX = 50_000


def note(text: str, kind: str, now_ms: int) -> NewMemory:
    """The owner's own memory: heard in the owner's direct chats. The same text twice is one memory.

    Raises InputError when the text is empty or too long, or the kind is none a person can add.
    """
    said = normalise(text).strip()
    if not said:
        raise InputError("a memory needs a text", hint='keepsaid memory add "TEXT"')
    if len(said) > _CHARS_MAX:
        raise InputError(
            f"a memory may have {_CHARS_MAX:,} characters; this has {len(said):,}", hint="keepsaid memory add --help"
        )
    allowed = [str(one) for one in IMPORTANCE]
    if kind not in allowed:
        raise InputError(f"there is no kind {kind!r}; one of: {', '.join(allowed)}", hint="keepsaid memory add --help")
    key = f"note:{digest(kind, said).hex()}"
    return NewMemory(
        key,
        Kind(kind),
        said,
        person_scope(OWNER),
        Trust.OWNER,
        speaker=OWNER,
        said_at=now_ms,
        importance=IMPORTANCE[Kind(kind)],
        sources=(Source("note", key),),
        speaker_id=OWNER,
        asked=True,
    )
