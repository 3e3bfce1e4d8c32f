"""A layer of a small BERT run by onnxruntime, where that is installed: the same numbers in less time.

The graph is written here, in the wire form of protocol buffers (onnx.proto, IR 9, operators 20), so that nothing but
the runtime is needed. Weights are those of the numpy layer it stands for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keepsaid.adapters.embedders.bert import EPSILON, HEAD_SIZE, Floats, Layer

_IR, _OPERATORS = 9, 20
_FLOAT, _INT64 = 1, 7
_AS_FLOAT, _AS_INT, _AS_INTS = 1, 2, 7
"""Kinds of an operator's attribute."""


def is_installed() -> bool:
    """Whether onnxruntime can be imported."""
    return find_spec("onnxruntime") is not None


class OnnxLayer:
    """One layer on one thread; each text is a run, so that none is padded."""

    def __init__(self, layer: Layer) -> None:
        runtime = import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session: Any = runtime.InferenceSession(graph(layer), options, providers=["CPUExecutionProvider"])

    def __call__(self, x: Floats, edges: Sequence[int]) -> Floats:
        """What the layer makes of texts that stand one after another."""
        made: list[Floats] = [self._session.run(None, {"x": x[start:end]})[0] for start, end in pairwise(edges)]
        return made[0] if len(made) == 1 else np.concatenate(made)


def graph(layer: Layer) -> bytes:
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
    """A matrix of so many columns, and of any number of rows."""
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
