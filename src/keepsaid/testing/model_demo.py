"""A scripted model to try keepsaid with: it answers turns from a script, and what keepsaid asks for itself by rules."""

from __future__ import annotations

import re
from collections.abc import Iterator

from keepsaid.adapters.models.extractor import MARK_DONE, SAVE_FACTS
from keepsaid.adapters.models.memory_calls import RULE_PAIRS, SUMMARY_TOOL
from keepsaid.app.models import TRIAL
from keepsaid.domain.context import HEADINGS
from keepsaid.domain.statements import extract_statements
from keepsaid.testing.model_script import Call, Calls, ChatRequest, Json, Reaction, Say, Script, text_of
from keepsaid.text.normal import counted, cut

_SOURCE = re.compile(r"#([0-9]+) (?:[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2})? ?([^:]+): (.*)")
"""A numbered message in a request to extract facts: number, time, speaker, text."""

_PAIR = re.compile(r"^Pair ([0-9]+)$", re.MULTILINE)
_MEMORY, _NOTES = "[Context from memory", "[Notes]\n"
_LINES_MAX, _CHARS_MAX = 20, 200


def converse(request: ChatRequest) -> Reaction:
    """Repeat what the user said last, and list the memories that the prompt contains."""
    recalled = list(_recalled(request))
    said = f"You said: {request.last('user')}"
    if not recalled:
        return Say(f"{said}\nThe prompt contains no memory.")
    lines = (f"- {cut(line, _CHARS_MAX)}" for line in recalled[:_LINES_MAX])
    return Say("\n".join((said, f"The prompt contains {counted(len(recalled), 'memory', 'memories')}:", *lines)))


class DemoScript(Script):
    """A script whose steps are for turns of conversations alone: other requests of keepsaid take none of them."""

    def react(self, request: ChatRequest) -> Reaction:
        """Answer a request of keepsaid itself by rules, and a turn by the next step."""
        return _own_answer(request) or super().react(request)


def _own_answer(request: ChatRequest) -> Reaction | None:
    """Return the answer to a test, or to a request for facts, rulings, a summary or a bulletin; None for a turn."""
    tools, asked = request.tool_names, request.last("user")
    if SAVE_FACTS in tools:
        return _facts(asked)
    if RULE_PAIRS in tools:
        rulings = [{"pair": int(number), "ruling": "different"} for number in _PAIR.findall(asked)]
        return Call(RULE_PAIRS, {"rulings": rulings})
    if SUMMARY_TOOL in tools:
        return _summary(asked)
    if not tools and asked.startswith(_NOTES):
        return Say(f"The scripted model repeats the notes. {' '.join(asked.removeprefix(_NOTES).split())}")
    return Say("ready") if asked == TRIAL else None


def _facts(asked: str) -> Reaction:
    """Return what people stated outright as facts, each with its source, and the end of the session."""
    facts: list[Json] = []
    for number, speaker, text in _SOURCE.findall(asked):
        for one in extract_statements(text):
            made = one.by(speaker.strip(), int(number))
            slot = {"subject": made.subject, "attribute": made.attribute, "value": made.value}
            facts.append({"kind": str(made.kind), "text": made.text, "sources": [int(number)], **slot})
    saved = (Call(SAVE_FACTS, {"facts": facts}),) if facts else ()
    return Calls((*saved, Call(MARK_DONE)))


def _summary(asked: str) -> Reaction:
    lines = [cut(line.strip(), _CHARS_MAX) for line in asked.splitlines() if line.strip() and line[0] != "["]
    kept: Json = {name: [] for name in HEADINGS}
    kept["facts"] = lines[-_LINES_MAX:]
    kept["outcomes"] = ["The scripted model repeated the newest lines of the conversation as its summary."]
    return Call(SUMMARY_TOOL, kept)


def _recalled(request: ChatRequest) -> Iterator[str]:
    for message in request.messages:
        text = text_of(message)
        if message.get("role") == "user" and text.startswith(_MEMORY):
            headers = ("[Pinned context]", "[Relevant to", "[End of data", _MEMORY, "[Data ")
            yield from (line for line in text.splitlines() if line.strip() and not line.startswith(headers))
