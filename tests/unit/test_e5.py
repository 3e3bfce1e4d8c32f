"""The multilingual model: its file of four-bit weights, how texts are cut into pieces, and vectors that spread."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from keepsaid.adapters.embedders import e5
from keepsaid.adapters.embedders.bert import Bert
from keepsaid.adapters.embedders.e5 import E5File, Pieces

SIZE, WIDE, LAYERS, PLACES = 32, 64, 2, 16
PIECES = ("<s>", "</s>", "<pad>", "<unk>", "\u2581", "a", "b", "ab", "\u2581ab", "c")
SCORES = (0.0, 0.0, 0.0, 0.0, -3.0, -4.0, -4.0, -5.0, -2.0, -6.0)
INSTEAD = {ord("B"): "b", 0x200B: ""}


def packed(values: NDArray[Any]) -> bytes:
    """Weights in blocks of 32: a half float, then four bits each, low halves first."""
    blocks = values.reshape(-1, 32)
    scale = np.maximum(np.abs(blocks).max(axis=1, keepdims=True) / 7, 1e-4).astype("<f2")
    bits = np.clip(np.round(blocks / scale.astype(np.float32)) + 8, 0, 15).astype(np.uint8)
    rows = (
        np.concatenate([one.view(np.uint8), row[:16] | (row[16:] << 4)]) for one, row in zip(scale, bits, strict=True)
    )
    return b"".join(row.astype(np.uint8).tobytes() for row in rows)


def weights() -> dict[str, bytes]:
    """Random weights by the names of the file."""
    chance = np.random.default_rng(3)

    def some(*shape: int) -> NDArray[Any]:
        return chance.normal(0, 0.3, shape).astype("<f4")

    found = {"emb.pos": some(PLACES, SIZE).tobytes(), "emb.type": some(2, SIZE).tobytes()}
    found |= {"emb.ln.w": some(SIZE).tobytes(), "emb.ln.b": some(SIZE).tobytes()}
    found["emb.word"] = packed(some(len(PIECES), SIZE))
    shapes = {"q": (SIZE, SIZE), "k": (SIZE, SIZE), "v": (SIZE, SIZE), "ao": (SIZE, SIZE)}
    shapes |= {"fi": (WIDE, SIZE), "fo": (SIZE, WIDE)}
    for layer in range(LAYERS):
        for part, shape in shapes.items():
            found |= {f"l{layer}.{part}.w": packed(some(*shape)), f"l{layer}.{part}.b": some(shape[0]).tobytes()}
        for part in ("aln", "oln"):
            found |= {f"l{layer}.{part}.{end}": some(SIZE).tobytes() for end in "wb"}
    return found


def written(folder: Path) -> Path:
    """A file of the form that the real one has, with random weights and ten pieces."""
    letters = [piece.encode() for piece in PIECES]
    edges = np.concatenate([[0], np.cumsum(list(map(len, letters)))]).astype("<u4")
    changes = b"".join(
        struct.pack(f"<IB{len(text)}I", letter, len(text), *map(ord, text)) for letter, text in INSTEAD.items()
    )
    head = b"E5S1" + struct.pack("<I7i", 1, SIZE, LAYERS, SIZE // 32, WIDE, len(PIECES), PLACES, 2)
    head += struct.pack("<fi", 1e-12, 32) + struct.pack("<5iQ", len(PIECES), 0, 1, 2, 3, sum(map(len, letters)))
    head += edges.tobytes() + np.array(SCORES, "<f4").tobytes() + b"".join(letters)
    tensors = weights()
    head += struct.pack("<iI", len(INSTEAD), len(changes)) + changes + struct.pack("<i", len(tensors))
    at = len(head) + sum(2 + len(name) + 21 for name in tensors)
    body = b""
    for name, raw in tensors.items():
        head += struct.pack("<H", len(name)) + name.encode() + struct.pack("<BIQQ", 0, 0, at + len(body), len(raw))
        body += raw
    file = folder / e5.WEIGHTS
    file.write_bytes(head + body)
    return file


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Pieces:
    return E5File(written(tmp_path_factory.mktemp("model"))).pieces


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("ab", ["\u2581ab"]),
        ("aB\u200b", ["\u2581ab"]),
        ("  ab   ab ", ["\u2581ab", "\u2581ab"]),
        ("ba", ["\u2581", "b", "a"]),
        ("a猫", ["\u2581", "a", "<unk>"]),
        ("", ["\u2581"]),
    ],
)
def test_a_text_is_cut_into_its_likeliest_pieces(pieces: Pieces, text: str, cut: Sequence[str]) -> None:
    assert pieces.tokens(text) == [0, *map(PIECES.index, cut), 1]


@given(text=st.text(alphabet="abB c猫\u200b\n", max_size=30))
def test_no_other_way_to_cut_a_text_is_likelier(pieces: Pieces, text: str) -> None:
    whole = "\u2581" + "\u2581".join(text.translate(INSTEAD).split())
    unknown = min(SCORES) - 10
    best = [0.0] + [float("-inf")] * len(whole)
    for end in range(1, len(whole) + 1):
        for start in range(end):
            piece = whole[start:end]
            worth = SCORES[PIECES.index(piece)] if piece in PIECES else unknown if end == start + 1 else None
            if worth is not None:
                best[end] = max(best[end], best[start] + worth)
    found = pieces.tokens(text)[1:-1]
    assert sum(unknown if one == 3 else SCORES[one] for one in found) == pytest.approx(best[-1], abs=1e-4)


def test_weights_come_out_of_four_bits_as_they_went_in(tmp_path: Path) -> None:
    file = E5File(written(tmp_path))
    tensors, rows = file.tensors(), file.rows
    assert tensors["encoder.layer.1.intermediate.dense.weight"].shape == (WIDE, SIZE)
    assert rows.shape == (len(PIECES), SIZE)
    again = rows[np.arange(len(PIECES))]
    assert packed(again) == weights()["emb.word"]
    vectors = Bert(tensors, rows).vectors([[0, 8, 1], [0, 5, 6, 1]])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_queries_are_read_otherwise_than_texts_and_vectors_have_length_one(tmp_path: Path) -> None:
    file = E5File(written(tmp_path))
    encoder = e5.Encoding(Bert(file.tensors(), file.rows), file.pieces, np.full(SIZE, 0.01, np.float32))
    *steps, queries = encoder.encode(["ab", "c"], is_query=True)
    *_, passages = encoder.encode(["ab", "c"], is_query=False)
    assert len(steps) == LAYERS, "others come between two layers"
    assert queries.shape == passages.shape == (2, SIZE)
    assert np.allclose(np.linalg.norm(queries, axis=1), 1, atol=1e-5)
    assert not np.allclose(queries, passages, atol=1e-3)
