"""Background calls to the agent: its model alone answers them, and they leave no trace (short: one model call; A6)."""

from __future__ import annotations

import logging

from keepsaid.app.instance import Instance
from keepsaid.domain.background_calls import task_of
from keepsaid.domain.client_history import Side
from keepsaid.domain.prompt import Prompt, Record, Role
from keepsaid.domain.turn import ModelAnswer
from keepsaid.interfaces.http.openai.chat_requests import ChatBody
from keepsaid.interfaces.http.openai.chats import ChatSite
from keepsaid.interfaces.http.openai.conversation import is_named_background
from keepsaid.ports.model import ModelRequest

_log = logging.getLogger("keepsaid.http")
_ROLES = {Side.USER: Role.USER, Side.ASSISTANT: Role.ASSISTANT}


def is_background(site: ChatSite, wanted: ChatBody) -> bool:
    """Whether a call is about the talk and not part of it: a header says so, or its messages have a known shape."""
    said = [("system", wanted.instructions), *((str(line.side), line.text) for line in wanted.lines)]
    return is_named_background(site.request, site.instance.config.openai) or bool(task_of(said))


async def complete_in_background(instance: Instance, wanted: ChatBody) -> ModelAnswer:
    """What the model alone says to a call: nothing is stored, remembered or recalled. Raises ModelError."""
    history = tuple(Record(_ROLES[line.side], line.text) for line in wanted.lines[:-1])
    prompt = Prompt(wanted.instructions, history, "", wanted.lines[-1].text)
    models = instance.config.models
    tokens_max = min(models.tokens_max, wanted.tokens_max or models.tokens_max)
    request = ModelRequest(prompt, tokens_max=tokens_max, limit_s=models.timeout_s)
    answer = await instance.model.answer(request, lambda _piece: None)
    tokens = answer.usage.tokens_in, answer.usage.tokens_out
    _log.info("a background call took %d tokens and made %d", *tokens)
    return answer
