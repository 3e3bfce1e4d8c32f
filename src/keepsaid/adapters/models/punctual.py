"""Punctual: a model somebody brought along, whose calls end in time whether or not it looks at the limit."""

from __future__ import annotations

import asyncio

from keepsaid.domain.turn import Answer
from keepsaid.errors import ModelTimeout
from keepsaid.ports.model import Delta, Model, ModelRequest


class Punctual:
    """Passes calls on once they are on record, and breaks off those that take too long."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """The name of the model behind it."""
        return self._model.name

    async def answer(self, request: ModelRequest, delta: Delta) -> Answer:
        """One call; raises ModelTimeout after `limit_s`, and what the model raises."""
        await request.begun()
        try:
            async with asyncio.timeout(request.limit_s):
                return await self._model.answer(request, delta)
        except TimeoutError:
            raise ModelTimeout(f"{self.name} did not answer within {request.limit_s:g} s") from None
