"""Background calls: what clients ask a model beside the talk, such as a title of it, by the shape of the prompt.

They come with the identifiers of the conversation that they are about, and must reach neither its record nor memory
(spec: doors, A6).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from keepsaid.values import frozen

_READ_CHARS = 600
_SPACES = re.compile(r"\s+")


@frozen
class PromptShape:
    """How the prompts of one kind of background call begin, in small letters with single spaces.

    `role` is that of the message: the last one of the user, or the first system message. `holds` stands in it.
    """

    client: str
    task: str
    begins: str
    role: Literal["user", "system"] = "user"
    holds: str = ""


SHAPES = (
    PromptShape("Open WebUI", "title", "### task: generate a concise title summarizing the chat history"),
    PromptShape("Open WebUI", "title", "### task: generate a concise, 3-5 word title"),
    PromptShape("Open WebUI", "title", "### task: create a concise, 3-5 word title"),
    PromptShape(
        "Open WebUI", "title", "create a concise, 3-5 word title with an emoji as a title for the chat history"
    ),
    PromptShape("Open WebUI", "tags", "### task: generate 1-3 broad tags categorizing"),
    PromptShape("Open WebUI", "follow-ups", "### task: predict 3-5 useful messages this user might"),
    PromptShape("Open WebUI", "follow-ups", "### task: suggest 3-5 relevant follow-up questions"),
    PromptShape("Open WebUI", "queries", "### task: analyze the chat history to determine the necessity of generating"),
    PromptShape("Open WebUI", "queries", "based on the chat history, determine whether a search is necessary"),
    PromptShape("Open WebUI", "image prompt", "### task: generate a detailed prompt for a"),
    PromptShape("Open WebUI", "autocompletion", "### task: you are an autocompletion system."),
    PromptShape("Open WebUI", "summary", "### task: summarize the conversation history that will be compacted"),
    PromptShape("Open WebUI", "summary", "### task:", holds="### messages being compacted:"),
    PromptShape("Open WebUI", "other", "### task:", holds="<chat_history>"),
    PromptShape("Open WebUI", "emoji", "your task is to reflect the speaker's likely facial expression"),
    PromptShape("LibreChat", "title", "analyze this conversation and provide: 1. the detected language"),
    PromptShape("LibreChat", "title", "provide a concise, 5-word-or-less title for the conversation"),
    PromptShape("LibreChat", "title", "please generate a concise title (max 40 characters) for a conversation"),
    PromptShape("OpenCode", "title", "you are a title generator. you output only a", "system"),
    PromptShape("Crush", "title", "you will generate a short title based on the first message", "system"),
)
"""The shipped table, from the defaults of the clients; whoever changes a prompt there sends a header instead."""


def task_of(messages: Sequence[tuple[str, str]]) -> str:
    """What a background call is for, by its messages as role and text; "" for all others."""
    last = next((text for role, text in reversed(messages) if role == "user"), "")
    first = next((text for role, text in messages if role in ("system", "developer")), "")
    texts = {"user": last, "system": first}
    read = {role: _SPACES.sub(" ", text.lstrip()[:_READ_CHARS]).casefold() for role, text in texts.items()}
    fits = (
        shape.task
        for shape in SHAPES
        if read[shape.role].startswith(shape.begins) and shape.holds in texts[shape.role].casefold()
    )
    return next(fits, "")
