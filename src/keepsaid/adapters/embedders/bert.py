"""The forward pass of a small BERT in numpy: mean of the last layer's tokens, of length 1.

Texts stand one after another without padding: everything but attention is the same for every token, so a batch
of short and long texts costs what its tokens cost.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

HEAD_SIZE = 32
EPSILON = np.float32(1e-12)


@dataclass(frozen=True, slots=True)
class _Norm:
    weight: Floats
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        x = x - x.mean(axis=1, keepdims=True)
        scale: Floats = 1 / np.sqrt(np.einsum("ij,ij->i", x, x) / np.float32(x.shape[1]) + EPSILON)
        x *= scale[:, None]
        x *= self.weight
        x += self.bias
        return x


@dataclass(frozen=True, slots=True)
class _Dense:
    weight: Floats
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        made: Floats = x @ self.weight
        made += self.bias
        return made


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer's weights, and what it makes of texts that stand one after another, each from one edge to the next."""

    attend: _Dense
    attended: _Dense
    attended_norm: _Norm
    widen: _Dense
    narrow: _Dense
    norm: _Norm

    def __call__(self, x: Floats, edges: Sequence[int]) -> Floats:
        x = self.attended_norm(x + self.attended(self._attention(self.attend(x), edges)))
        return self.norm(x + self.narrow(_gelu(self.widen(x))))

    @staticmethod
    def _attention(attending: Floats, edges: Sequence[int]) -> Floats:
        """Every token looks at the tokens of its own text; queries come scaled."""
        size = attending.shape[1] // 3
        found = np.empty((len(attending), size), np.float32)
        parts = attending.reshape(len(attending), 3, size // HEAD_SIZE, HEAD_SIZE)
        for start, end in pairwise(edges):
            query, key, value = (parts[start:end, part].transpose(1, 0, 2) for part in range(3))
            seen = query @ key.transpose(0, 2, 1)
            seen -= seen.max(axis=2, keepdims=True)
            np.exp(seen, out=seen)
            seen /= seen.sum(axis=2, keepdims=True)
            found[start:end] = (seen @ value).transpose(1, 0, 2).reshape(end - start, size)
        return found


def _gelu(x: Floats) -> Floats:
    """x * P(X <= x) of the normal distribution, by formula 7.1.26 of Abramowitz and Stegun (error below 2e-7)."""
    far = np.abs(x)
    z = far * np.float32(0.7071067811865476)
    t = np.reciprocal(np.float32(0.3275911) * z + np.float32(1))
    tail = t * np.float32(1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail += np.float32(factor)
        tail *= t
    z *= z
    np.negative(z, out=z)
    tail *= np.exp(z, out=z)
    tail *= far
    tail *= np.float32(0.5)
    made: Floats = np.maximum(x, np.float32(0)) - tail
    return made


Runs = Callable[[Floats, Sequence[int]], Floats]


class Bert:
    """One model: token numbers in, a vector of length 1 a text out. `runs` may give a layer another engine."""

    def __init__(self, file: Path, runs: Callable[[Layer], Runs] = lambda layer: layer) -> None:
        tensors = _tensors(file)
        self._words = tensors["embeddings.word_embeddings.weight"]
        places = tensors["embeddings.position_embeddings.weight"]
        self._places: Floats = places + tensors["embeddings.token_type_embeddings.weight"][0]
        self._norm = _norm(tensors, "embeddings.LayerNorm")
        count = 1 + max(int(name.split(".")[2]) for name in tensors if name.startswith("encoder.layer."))
        self._layers = [runs(_layer(tensors, f"encoder.layer.{n}")) for n in range(count)]

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        return int(self._words.shape[1])

    def vectors(self, texts: Sequence[Sequence[int]]) -> Floats:
        """A row for each text, given as the numbers of its tokens, of which there must be one at least."""
        *_, made = self.steps(texts)
        return made

    def steps(self, texts: Sequence[Sequence[int]]) -> Iterator[Floats]:
        """What `vectors` gives, layer by layer: something else can be done in between. Only the last is the answer."""
        edges = np.concatenate(([0], np.cumsum([len(text) for text in texts])))
        places = np.concatenate([np.arange(len(text)) for text in texts])
        x: Floats = self._words[np.concatenate([np.asarray(text) for text in texts])] + self._places[places]
        x = self._norm(x)
        marks = edges.tolist()
        for layer in self._layers:
            x = layer(x, marks)
            yield x
        sums = np.add.reduceat(x, edges[:-1], axis=0)
        yield sums / np.linalg.norm(sums, axis=1, keepdims=True)


def _tensors(file: Path) -> dict[str, Floats]:
    """The float tensors of a safetensors file, mapped: what is not read takes no memory."""
    with file.open("rb") as opened:
        mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    length = int.from_bytes(mapped[:8], "little")
    found: dict[str, Floats] = {}
    for name, about in json.loads(mapped[8 : 8 + length]).items():
        if about.get("dtype") == "F32":
            start, end = about["data_offsets"]
            flat = np.frombuffer(mapped, np.float32, (end - start) // 4, 8 + length + start)
            found[name] = flat.reshape(about["shape"])
    return found


def _norm(tensors: dict[str, Floats], name: str) -> _Norm:
    return _Norm(tensors[f"{name}.weight"].copy(), tensors[f"{name}.bias"].copy())


def _dense(tensors: dict[str, Floats], *names: str, scaled: bool = False) -> _Dense:
    """One matrix for all of `names`; `scaled` divides the first by the root of the head's size."""
    weights = [tensors[f"{name}.weight"].T for name in names]
    biases = [tensors[f"{name}.bias"] for name in names]
    if scaled:
        scale = np.float32(HEAD_SIZE**-0.5)
        weights[0], biases[0] = weights[0] * scale, biases[0] * scale
    return _Dense(np.ascontiguousarray(np.concatenate(weights, axis=1)), np.concatenate(biases))


def _layer(tensors: dict[str, Floats], name: str) -> Layer:
    own = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
    return Layer(
        attend=_dense(tensors, *own, scaled=True),
        attended=_dense(tensors, f"{name}.attention.output.dense"),
        attended_norm=_norm(tensors, f"{name}.attention.output.LayerNorm"),
        widen=_dense(tensors, f"{name}.intermediate.dense"),
        narrow=_dense(tensors, f"{name}.output.dense"),
        norm=_norm(tensors, f"{name}.output.LayerNorm"),
    )
