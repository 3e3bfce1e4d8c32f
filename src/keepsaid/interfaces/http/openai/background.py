"""Background calls to the agent: its model alone answers them, and only the journal has them (A6)."""

from __future__ import annotations

import re

from keepsaid.domain.background_calls import task_of
from keepsaid.domain.client_history import Side
from keepsaid.domain.prompt import Prompt, Record, Role
from keepsaid.domain.turn import ModelAnswer
from keepsaid.interfaces.http.openai.chat_requests import ChatBody
from keepsaid.interfaces.http.openai.chats import ChatSite
from keepsaid.interfaces.http.openai.conversation import named_task
from keepsaid.ports.model import ModelRequest

_TASK = re.compile(r"[a-z][a-z_ -]{0,39}")
_ROLES = {Side.USER: Role.USER, Side.ASSISTANT: Role.ASSISTANT}


def background_task(site: ChatSite, wanted: ChatBody) -> str:
    """What a call is for that is about the talk and not part of it; "" for any other.

    A header says so, or its messages have a known shape. The results of a client's tools belong to a turn that waits.
    """
    if wanted.results:
        return ""
    said = [("system", wanted.instructions), *((str(line.side), line.text) for line in wanted.lines)]
    return named_task(site.request, site.instance.config.openai) or task_of(said)


async def complete_in_background(site: ChatSite, wanted: ChatBody, task: str) -> ModelAnswer:
    """What the model alone says to a call: nothing is remembered or recalled, and the journal says what it cost.

    Raises ModelError and StoreError.
    """
    instance = site.instance
    history = tuple(Record(_ROLES[line.side], line.text) for line in wanted.lines[:-1])
    prompt = Prompt(wanted.instructions, history, "", wanted.lines[-1].text)
    models = instance.config.models
    tokens_max = min(models.tokens_max, wanted.tokens_max or models.tokens_max)
    request = ModelRequest(prompt, tokens_max=tokens_max, limit_s=models.timeout_s)
    answer = await instance.model.answer(request, lambda _piece: None)
    # the header of a client may hold any text, and the journal holds none
    await instance.services.chats.note_background(site.who, task if _TASK.fullmatch(task) else "other", answer.usage)
    return answer
