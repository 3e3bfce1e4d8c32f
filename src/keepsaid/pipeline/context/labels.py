"""Labels: the headings the program writes into a prompt, which nobody else can write."""

from __future__ import annotations

from keepsaid.domain.lookalike import heading, opens

MEMORY = "[Context from memory"
BULLETIN = "[Bulletin]"
SUMMARY = "[Summary of earlier messages]"
SESSION_SUMMARY = "[Summary of other threads of this conversation]"
STATUS = "[Status]"
QUOTED = "[Quoted"
ANSWERED = "[Question answered"
TOGETHER = "[Messages together"
RECEIVED = "[received"
SENT = "[sent"
ATTACHED = "[attached"
FROM = "[From"
POSTED = "[Posted here"
_LEFT_OUT = "[System:"

_OURS = tuple(
    label.rstrip("]").casefold()
    for label in (
        MEMORY,
        BULLETIN,
        SUMMARY,
        SESSION_SUMMARY,
        STATUS,
        QUOTED,
        ANSWERED,
        TOGETHER,
        RECEIVED,
        SENT,
        ATTACHED,
        FROM,
        POSTED,
        _LEFT_OUT,
        "[Pinned context]",
        "[Relevant to",
    )
)
_FOLD = "  "


def unforged(text: str) -> str:
    """A text of which no line passes for a label of ours: such lines are folded, as another speaker's would be.

    A line counts by how it looks: hidden characters, quoting, emphasis, case and other brackets make no difference.
    """
    if not opens(text):
        return text
    lines = text.splitlines(keepends=True)
    return "".join(_FOLD + line if opens(line) and heading(line).startswith(_OURS) else line for line in lines)
