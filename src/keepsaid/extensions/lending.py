"""Lending: the embedder or the extractor of an extension, for memory and its collector, while the extension is up.

What it gives is looked at before it is used: an extension can be wrong, and nobody else suffers from it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from keepsaid.domain.collection import Passage
from keepsaid.domain.space import VectorSpace
from keepsaid.domain.text import normalise
from keepsaid.errors import EmbedderError, ModelError, ModelMalformed, ModelUnavailable
from keepsaid.extensions.guest import Guest
from keepsaid.ports.model import Extracted, Extractor
from keepsaid.ports.recall import Embedder

T = TypeVar("T")

LENT = "ext/"
"""How a setting begins that names an extension."""

_EMBED_S = 60.0
_NUMBER_BYTES = 4
_LEAST, _MOST = 0.98, 1.02
"""A vector of length 1, as far as numbers of 32 bits can be."""

Active = Callable[[], Sequence[Guest]]


def lent_by(setting: str) -> str:
    """The extension that a setting names; "" for none."""
    return setting.removeprefix(LENT) if setting.startswith(LENT) else ""


class LentEmbedder:
    """The embedder of an extension. Its vectors are of a space of its own, whatever it calls that."""

    def __init__(self, id_: str, active: Active) -> None:
        self._id = id_
        self._active = active
        self._space: VectorSpace | None = None

    async def space(self) -> VectorSpace:
        """The space its vectors are of. Raises EmbedderError while the extension is not up."""
        if self._space is None:
            theirs = await self._asked(lambda one: one.space())
            if not isinstance(theirs, VectorSpace) or theirs.dimension < 1:
                raise EmbedderError(f"the extension {self._id} does not say what vectors it makes")
            self._space = replace(theirs, model=normalise(f"{LENT}{self._id}/{theirs.model}"))
        return self._space

    async def query(self, text: str) -> bytes:
        """The vector of a query. Raises EmbedderError."""
        return self._checked([await self._asked(lambda one: one.query(text))], 1, await self.space())[0]

    async def texts(self, texts: Sequence[str]) -> Sequence[bytes]:
        """The vectors of texts, in order. Raises EmbedderError."""
        return self._checked(await self._asked(lambda one: one.texts(texts)), len(texts), await self.space())

    async def _asked(self, work: Callable[[Embedder], Awaitable[T]]) -> T:
        provider = next((one.provided.embedder for one in self._active() if one.id == self._id), None)
        if provider is None:
            raise EmbedderError(f"the extension {self._id} is not up, or has no embedder", hint="keepsaid ext ls")
        try:
            async with asyncio.timeout(_EMBED_S):
                return await work(provider.embedder())
        except EmbedderError:
            raise
        except Exception as error:  # guard: extension - memory is searched by its words meanwhile
            raise EmbedderError(f"the embedder of {self._id} failed ({type(error).__name__})") from error

    def _checked(self, vectors: Sequence[bytes], many: int, space: VectorSpace) -> Sequence[bytes]:
        if len(vectors) == many and all(_fits(one, space.dimension) for one in vectors):
            return vectors
        raise EmbedderError(f"the embedder of {self._id} made no vectors of {space.dimension} numbers and length 1")


def _fits(vector: bytes, dimension: int) -> bool:
    if not isinstance(vector, bytes) or len(vector) != dimension * _NUMBER_BYTES:
        return False
    return _LEAST < sum(number * number for number in memoryview(vector).cast("f")) < _MOST


class LentExtractor:
    """The extractor of an extension; while it is not up, nothing is read and nobody is charged for it."""

    thorough = True

    def __init__(self, id_: str, active: Active) -> None:
        self._id = id_
        self._active = active
        self.name = f"{LENT}{id_}"

    async def extract(self, passage: Passage) -> Extracted:
        """The statements in a passage; those that name no record of a person are left out. Raises a ModelError."""
        provider = next((one.provided.extractor for one in self._active() if one.id == self._id), None)
        if provider is None:
            raise ModelUnavailable(f"the extension {self._id} is not up, or has no extractor")
        found = await self._asked(provider.extractor(), passage)
        told = {one.position for one in passage.told}
        kept = tuple(one for one in found.statements if one.records and told.issuperset(one.records))
        return replace(found, statements=kept)

    async def _asked(self, extractor: Extractor, passage: Passage) -> Extracted:
        try:
            return await extractor.extract(passage)
        except ModelError:
            raise
        except Exception as error:  # guard: extension - the session is read again, and parked in the end
            raise ModelMalformed(f"the extractor of {self._id} failed ({type(error).__name__})") from error
