"""The offline responder: an honest answer when no model is set."""

from __future__ import annotations

from keepsaid.domain.turn import Answer
from keepsaid.ports.model import Delta, ModelRequest

NAME = "none"
_QUOTED_MAX = 5
_HEADERS = ("[Context from memory]", "[Pinned context]", "[Relevant to this message]")


class OfflineResponder:
    """Says that no model is set, quotes what memory holds about the message, names the next command."""

    @property
    def name(self) -> str:
        """`none`."""
        return NAME

    async def answer(self, request: ModelRequest, delta: Delta) -> Answer:
        """Answer from the prompt alone."""
        text = self._text(request.prompt.recalled)
        delta(text)
        return Answer(text, model=NAME)

    def _text(self, recalled: str) -> str:
        lines = [line for line in recalled.splitlines() if line.strip() and not line.startswith(_HEADERS)]
        parts = ["No model is set, so I cannot answer; your message is stored."]
        if lines:
            parts.append("What I remember about it:")
            parts += [f"  - {line}" for line in lines[:_QUOTED_MAX]]
            if len(lines) > _QUOTED_MAX:
                parts.append(f"  - and {len(lines) - _QUOTED_MAX} more: keepsaid memory search WORDS")
        else:
            parts.append("I remember nothing about it yet.")
        parts.append("To set a model: keepsaid init")
        return "\n".join(parts)
