"""Embeddings: the vectors that memory's own embedder gives texts, in OpenAI's form."""

from __future__ import annotations

import base64
import sys
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from keepsaid.app.instance import Instance
from keepsaid.interfaces.http.openai.models import AGENT, no_model
from keepsaid.interfaces.http.openai.problems import BadParameter, NoSuchModel
from keepsaid.interfaces.http.responses import render_in_thread
from keepsaid.ports.memory_store import Embedder
from keepsaid.text.normal import normalise
from keepsaid.text.tokens import estimate_tokens

BODY_MAX = 4_000_000
"""Bytes of a body."""

TEXTS_MAX, CHARS_MAX = 512, 100_000
"""Texts of one call, and characters of one text."""


async def embed(instance: Instance, fields: Mapping[str, object]) -> Response:
    """The vectors of `input`, in its order. Texts of calls wait behind queries of recall.

    Raises NoSuchModel, BadParameter and EmbedderError.
    """
    embedder = instance.embedding.embedder if instance.embedding is not None else None
    if embedder is None:
        raise NoSuchModel("this instance has no embedder (memory.embedder)")
    name, texts = await _named(embedder, fields), _texts(fields)
    encoding = fields.get("encoding_format") or "float"
    if encoding not in ("float", "base64"):
        raise BadParameter("encoding_format must be float or base64", "encoding_format")
    vectors = await embedder.texts(texts)
    tokens = sum(map(estimate_tokens, texts))

    def shape() -> dict[str, Any]:
        data = [
            {"object": "embedding", "index": index, "embedding": _shown(vector, encoding == "base64")}
            for index, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return {"object": "list", "data": data, "model": name, "usage": usage}

    return await render_in_thread(shape)


async def _named(embedder: Embedder, fields: Mapping[str, object]) -> str:
    """The embedder's model. Raises NoSuchModel for another one, BadParameter for vectors of another length."""
    space, model, dimensions = await embedder.space(), fields.get("model"), fields.get("dimensions")
    if not isinstance(model, str):
        raise BadParameter("model is missing: the name of a model", "model")
    if model not in (AGENT, space.model):
        raise no_model(model)
    if dimensions not in (None, space.dimension) or isinstance(dimensions, bool):
        raise BadParameter(f"dimensions must be {space.dimension}, or left out", "dimensions")
    return space.model


def _texts(fields: Mapping[str, object]) -> Sequence[str]:
    given = fields.get("input")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts:
        raise BadParameter("input must be a text, or a list of texts", "input")
    if not all(isinstance(one, str) for one in texts):
        raise BadParameter("input must be text: token ids are those of another model's tokenizer", "input")
    if len(texts) > TEXTS_MAX:
        raise BadParameter(f"input has {len(texts):,} texts; {TEXTS_MAX:,} are allowed", "input")
    if not all(0 < len(one) <= CHARS_MAX for one in texts):
        raise BadParameter(f"each text of input must have 1 to {CHARS_MAX:,} characters", "input")
    return [normalise(one) or " " for one in texts]


def _shown(vector: bytes, as_base64: bool) -> str | list[float]:
    numbers = array("f", vector)
    if not as_base64:
        return numbers.tolist()
    if sys.byteorder == "big":
        numbers.byteswap()
    return base64.b64encode(numbers.tobytes()).decode("ascii")
