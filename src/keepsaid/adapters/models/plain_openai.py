"""An OpenAI client that sends the messages and tools of a request as they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from openai import AsyncOpenAI
from openai.resources.chat import AsyncChat
from openai.resources.chat.completions import AsyncCompletions
from openai.types.chat import ChatCompletionMessageParam


class PlainOpenAI(AsyncOpenAI):
    """The library walks every message once for each type one could have, a quarter of a millisecond a message on the
    event loop, and every tool's schema, to rename keys that have no other name. Sent as `extra_body` they are only
    written as JSON."""

    @cached_property
    def chat(self) -> AsyncChat:
        """The chat resource, with completions that skip the walk."""
        return _Chat(self)


class _Chat(AsyncChat):
    @cached_property
    def completions(self) -> AsyncCompletions:
        return _Completions(self._client)


class _Completions(AsyncCompletions):
    async def create(
        self,
        *,
        messages: Iterable[ChatCompletionMessageParam],
        extra_body: object = None,
        **rest: Any,
    ) -> Any:
        body = {"messages": list(messages), **(extra_body if isinstance(extra_body, Mapping) else {})}
        if isinstance(rest.get("tools"), list):
            body["tools"] = rest.pop("tools")
        return await super().create(messages=[], extra_body=body, **rest)
