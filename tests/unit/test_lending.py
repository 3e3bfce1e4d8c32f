"""An extension lends its embedder and its extractor; while it is not up, or is wrong, nobody suffers from it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.unit.extension_cast import lifecycle, put
from tests.waits import HANG_S

from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.memory import Listener
from keepsaid.domain.message import Content, Inbound, Origin, ProviderMarks, Trust
from keepsaid.domain.prompt import Role
from keepsaid.domain.session import Passage, Utterance
from keepsaid.errors import EmbedderError, ModelMalformed, ModelUnavailable
from keepsaid.extensions.loaded import ExtensionEmbedder, ExtensionExtractor, extension_id_of
from keepsaid.testing.builders import lane_of
from keepsaid.testing.recording_runtime import RecordingRuntime

LENDER = """
from keepsaid.adapters.embedders.hashed import Hashed
from keepsaid.domain.learning import Statement
from keepsaid.domain.memory import Kind
from keepsaid.ports.model import Extracted

@extension(id="lender")
class Lender:
    name, thorough = "mine/1", True

    def embedder(self): return Hashed()
    def extractor(self): return self

    async def extract(self, passage):
        told = [one.position for one in passage.sources]
        invented = Statement(Kind.FACT, "the moon is cheese", records=(99,))
        return Extracted((Statement(Kind.FACT, "Ann lives in Porto", records=tuple(told)), invented))
"""
WRONG = """
from keepsaid.domain.memory import VectorSpace

@extension(id="wrong")
class Wrong:
    name, thorough = "mine/1", True

    def embedder(self): return self
    def extractor(self): return self
    async def space(self): return VectorSpace("m", "1", 4, b"")
    async def query(self, text): return b"1234567890123456"
    async def texts(self, texts): raise ValueError("no luck")
    async def extract(self, passage): raise ValueError("no luck")
"""


def passage(trust: Trust = Trust.OWNER) -> Passage:
    one = Utterance(1, Role.USER, "I live in Porto now", "message:1", "Ann", "ann", trust, direct=True)
    return Passage(lane_of(), 1, 1, (one,))


async def test_memory_and_collector_work_with_what_an_extension_lends(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    put(home.extensions, "lender", LENDER)
    config = Config.model_validate(
        {
            "memory": {"embedder": "ext/lender"},
            "collection": {"extractor": "ext/lender"},
            "models": {"chat": "none"},
            "bulletin": {"enabled": False},
            "buffer": {"window_ms": 0},
        }
    )
    async with opened(home, config) as instance:
        await instance.start()
        mine = Origin("http", "default", "home", "me", direct=True, trust=Trust.OWNER)
        received = await instance.receive(Inbound(mine, Content(b"x", "I live in Porto now"), ProviderMarks(), 10))
        with instance.hub.listening(received.id) as told:
            async with asyncio.timeout(HANG_S):
                while not (story := await instance.operations.story(received.id)) or not story.replies:
                    await told.get()
        while await instance.recorder.catch_up():
            pass
        await instance.collecting.mark()
        await instance.collecting.read_all()
        audit = Listener(None, everything=True)
        known = [one.new.text for one in await instance.memories.find(audit, (), 9)]
        assert "Ann lives in Porto" in known
        assert "the moon is cheese" not in known
        assert instance.embedding is not None
        await instance.embedding.finish()
        assert (await instance.embedding.space()).model == "ext/lender/hashed words"
        assert await instance.embedding.search(audit, "who lives in Porto?", 5) != ()


async def test_what_is_wrong_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "extensions", "wrong", WRONG)
    life = lifecycle(tmp_path / "extensions", RecordingRuntime())
    await life.begin()
    embedder, extractor = (
        ExtensionEmbedder("wrong", lambda: life.active),
        ExtensionExtractor("wrong", lambda: life.active),
    )
    with pytest.raises(EmbedderError, match="no vectors of 4 numbers and length 1"):
        await embedder.query("hello")
    with pytest.raises(EmbedderError, match=r"failed .ValueError."):
        await embedder.texts(["hello"])
    with pytest.raises(ModelMalformed, match=r"failed .ValueError."):
        await extractor.extract(passage())
    await life.end()


async def test_without_its_extension_there_is_none() -> None:
    assert [extension_id_of(one) for one in ("ext/lender", "minilm")] == ["lender", ""]
    with pytest.raises(EmbedderError, match="is not up"):
        await ExtensionEmbedder("lender", lambda: ()).query("hello")
    with pytest.raises(ModelUnavailable, match="is not up"):
        await ExtensionExtractor("lender", lambda: ()).extract(passage())
