"""Vectors from an endpoint that speaks the OpenAI protocol."""

from __future__ import annotations

import asyncio
import math
from array import array
from collections.abc import Sequence
from typing import Any

from keepsaid.domain.memory import VectorSpace
from keepsaid.errors import EmbedderError
from keepsaid.text.normal import digest, without_logins, without_passwords

_AT_ONCE = 32
_CHARS_MAX = 8_000
_LIMIT_S = 30.0


def revision_of(base_url: str) -> str:
    """The revision that names an endpoint in the store: its address without the user name and password."""
    return without_logins(base_url.rstrip("/"))


class Endpoint:
    """One model behind `base_url`; its weights are known by its address, without a login in it, and name alone."""

    def __init__(self, base_url: str, model: str, key: str | None = None) -> None:
        self._base_url = base_url.rstrip("/")
        self._shown = without_passwords(self._base_url)
        self._model = model
        self._key = key
        self._client: Any = None
        self._opening = asyncio.Lock()
        self._dimension = 0

    async def space(self) -> VectorSpace:
        """The space of the model; the first time it is asked for a vector, to count its numbers."""
        if not self._dimension:
            await self._ask(["dimension"])
        address = revision_of(self._base_url)
        return VectorSpace(self._model, address, self._dimension, digest(address, self._model))

    async def query(self, text: str) -> bytes:
        return (await self._ask([text]))[0]

    async def texts(self, texts: Sequence[str]) -> Sequence[bytes]:
        made: list[bytes] = []
        for start in range(0, len(texts), _AT_ONCE):
            made += await self._ask(texts[start : start + _AT_ONCE])
        return made

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def _ask(self, texts: Sequence[str]) -> list[bytes]:
        import httpx2  # noqa: PLC0415 - a program that embeds nothing starts without

        async with self._opening:
            if self._client is None:
                headers = {"authorization": f"Bearer {self._key}"} if self._key else {}
                # Loading the certificates of the system takes 30 ms, too long for the loop.
                self._client = await asyncio.to_thread(httpx2.AsyncClient, headers=headers, timeout=_LIMIT_S)
        asked = {"model": self._model, "input": [text[:_CHARS_MAX] or " " for text in texts]}
        try:
            answer = await self._client.post(f"{self._base_url}/embeddings", json=asked)
            answer.raise_for_status()
            data = sorted(answer.json()["data"], key=lambda one: one["index"])
            made = [_unit(one["embedding"]) for one in data]
        except (httpx2.HTTPError, ValueError, KeyError, TypeError) as error:
            what = f"{self._shown} gave no vectors ({type(error).__name__})"
            raise EmbedderError(what, hint="keepsaid config show") from error
        if len(made) != len(texts) or len({len(one) for one in made}) != 1:
            raise EmbedderError(f"{self._shown} gave {len(made)} vectors for {len(texts)} texts")
        self._dimension = self._dimension or len(made[0]) // 4
        if len(made[0]) // 4 != self._dimension:
            raise EmbedderError(f"{self._shown} gave vectors of another size than before")
        return made


def _unit(numbers: Sequence[float]) -> bytes:
    length = math.sqrt(sum(number * number for number in numbers))
    if not length or not math.isfinite(length):
        raise ValueError("no direction")
    return array("f", [number / length for number in numbers]).tobytes()
