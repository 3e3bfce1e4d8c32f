"""The forward pass of a small BERT: mean of the last layer's tokens, of length 1; in numpy, or by onnxruntime."""

from __future__ import annotations

import json
import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from keepsaid.values import frozen

Floats = NDArray[np.float32]

HEAD_SIZE = 32
EPSILON = np.float32(1e-12)


@frozen
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


@frozen
class _Dense:
    weight: Floats
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        made: Floats = x @ self.weight
        made += self.bias
        return made


@frozen
class EncoderLayer:
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


class TokenRows(Protocol):
    """The vectors of all tokens: those of some by their numbers."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, numbers: NDArray[np.int64], /) -> Floats: ...


class Bert:
    """One model: token numbers in, a vector of length 1 a text out.

    `words` are the vectors of tokens, where they are not among the tensors. `runs` gives a layer another engine: by
    default onnxruntime where it is installed.
    """

    def __init__(
        self,
        tensors: dict[str, Floats],
        words: TokenRows | None = None,
        runs: Callable[[EncoderLayer], Runs] | None = None,
    ) -> None:
        runs = runs or (OnnxLayer if is_installed() else lambda layer: layer)
        self._words: TokenRows = tensors["embeddings.word_embeddings.weight"] if words is None else words
        places = tensors["embeddings.position_embeddings.weight"]
        self._places: Floats = places + tensors["embeddings.token_type_embeddings.weight"][0]
        self._norm = _numpy_norm(tensors, "embeddings.LayerNorm")
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


def tensors_of(file: Path) -> dict[str, Floats]:
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


def _numpy_norm(tensors: dict[str, Floats], name: str) -> _Norm:
    return _Norm(tensors[f"{name}.weight"].copy(), tensors[f"{name}.bias"].copy())


def _numpy_dense(tensors: dict[str, Floats], *names: str, scaled: bool = False) -> _Dense:
    """One matrix for all of `names`; `scaled` divides the first by the root of the head's size."""
    weights = [tensors[f"{name}.weight"].T for name in names]
    biases = [tensors[f"{name}.bias"] for name in names]
    if scaled:
        scale = np.float32(HEAD_SIZE**-0.5)
        weights[0], biases[0] = weights[0] * scale, biases[0] * scale
    return _Dense(np.ascontiguousarray(np.concatenate(weights, axis=1)), np.concatenate(biases))


def _layer(tensors: dict[str, Floats], name: str) -> EncoderLayer:
    own = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
    return EncoderLayer(
        attend=_numpy_dense(tensors, *own, scaled=True),
        attended=_numpy_dense(tensors, f"{name}.attention.output.dense"),
        attended_norm=_numpy_norm(tensors, f"{name}.attention.output.LayerNorm"),
        widen=_numpy_dense(tensors, f"{name}.intermediate.dense"),
        narrow=_numpy_dense(tensors, f"{name}.output.dense"),
        norm=_numpy_norm(tensors, f"{name}.output.LayerNorm"),
    )


_IR, _OPERATORS = 9, 20
_FLOAT, _INT64 = 1, 7
_AS_FLOAT, _AS_INT, _AS_INTS = 1, 2, 7
"""Kinds of an operator's attribute."""


def is_installed() -> bool:
    """Whether onnxruntime can be imported."""
    return find_spec("onnxruntime") is not None


class OnnxLayer:
    """One layer on one thread; each text is a run, so that none is padded."""

    def __init__(self, layer: EncoderLayer) -> None:
        runtime = import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session: Any = runtime.InferenceSession(graph(layer), options, providers=["CPUExecutionProvider"])

    def __call__(self, x: Floats, edges: Sequence[int]) -> Floats:
        made: list[Floats] = [self._session.run(None, {"x": x[start:end]})[0] for start, end in pairwise(edges)]
        return made[0] if len(made) == 1 else np.concatenate(made)


def graph(layer: EncoderLayer) -> bytes:
    """The layer as a model that onnxruntime reads: `x` in, `made` out, a row for each token."""
    size = layer.attended.weight.shape[0]
    weights: dict[str, NDArray[Any]] = {
        "heads": np.array([-1, size // HEAD_SIZE, HEAD_SIZE]),
        "whole": np.array([-1, size]),
    }
    for name in ("attend", "attended", "widen", "narrow", "attended_norm", "norm"):
        part = getattr(layer, name)
        weights |= {f"{name}.weight": part.weight, f"{name}.bias": part.bias}
    inside = b"".join(_bytes(1, node) for node in _nodes()) + _text(2, "layer")
    inside += b"".join(_bytes(5, _tensor(name, values)) for name, values in weights.items())
    inside += _bytes(11, _rows("x", size)) + _bytes(12, _rows("made", size))
    return _number(1, _IR) + _bytes(7, inside) + _bytes(8, _text(1, "") + _number(2, _OPERATORS))


def _nodes() -> Iterator[bytes]:
    yield _dense("x", "attend", "all")
    yield _node("Split", ["all"], ["q", "k", "v"], {"axis": 1, "num_outputs": 3})
    for name, order in (("q", [1, 0, 2]), ("k", [1, 2, 0]), ("v", [1, 0, 2])):
        yield _node("Reshape", [name, "heads"], [f"{name}h"])
        yield _node("Transpose", [f"{name}h"], [f"{name}t"], {"perm": order})
    yield _node("MatMul", ["qt", "kt"], ["seen"])
    yield _node("Softmax", ["seen"], ["weighed"], {"axis": -1})
    yield _node("MatMul", ["weighed", "vt"], ["found"])
    yield _node("Transpose", ["found"], ["turned"], {"perm": [1, 0, 2]})
    yield _node("Reshape", ["turned", "whole"], ["joined"])
    yield _dense("joined", "attended", "attending")
    yield _node("Add", ["x", "attending"], ["with_x"])
    yield _norm("with_x", "attended_norm", "first")
    yield _dense("first", "widen", "wide")
    yield _node("Gelu", ["wide"], ["bent"])
    yield _dense("bent", "narrow", "slim")
    yield _node("Add", ["first", "slim"], ["with_first"])
    yield _norm("with_first", "norm", "made")


def _dense(taken: str, name: str, made: str) -> bytes:
    return _node("Gemm", [taken, f"{name}.weight", f"{name}.bias"], [made])


def _norm(taken: str, name: str, made: str) -> bytes:
    parts = [taken, f"{name}.weight", f"{name}.bias"]
    return _node("LayerNormalization", parts, [made], {"axis": -1, "epsilon": float(EPSILON)})


def _node(
    operator: str, taken: Sequence[str], made: Sequence[str], with_: Mapping[str, int | float | list[int]] | None = None
) -> bytes:
    parts = [_text(1, name) for name in taken] + [_text(2, name) for name in made] + [_text(4, operator)]
    return b"".join(parts + [_bytes(5, _attribute(name, value)) for name, value in (with_ or {}).items()])


def _attribute(name: str, value: float | list[int]) -> bytes:
    if isinstance(value, list):
        return _text(1, name) + b"".join(_number(8, one) for one in value) + _number(20, _AS_INTS)
    if isinstance(value, int):
        return _text(1, name) + _number(3, value) + _number(20, _AS_INT)
    return _text(1, name) + _key(2, 5) + np.float32(value).tobytes() + _number(20, _AS_FLOAT)


def _tensor(name: str, values: NDArray[Any]) -> bytes:
    kind = _INT64 if values.dtype == np.int64 else _FLOAT
    dimensions = b"".join(_number(1, size) for size in values.shape)
    return dimensions + _number(2, kind) + _text(8, name) + _bytes(9, np.ascontiguousarray(values).tobytes())


def _rows(name: str, size: int) -> bytes:
    """A matrix with this number of columns, and any number of rows."""
    shape = _bytes(1, _text(2, "tokens")) + _bytes(1, _number(1, size))
    return _text(1, name) + _bytes(2, _bytes(1, _number(1, _FLOAT) + _bytes(2, shape)))


def _key(field: int, wire: int) -> bytes:
    return _varint(field << 3 | wire)


def _number(field: int, value: int) -> bytes:
    return _key(field, 0) + _varint(value % (1 << 64))


def _bytes(field: int, value: bytes) -> bytes:
    return _key(field, 2) + _varint(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)
