"""Keys of encrypted rooms of Matrix move with the stores into a database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.acceptance.program import WITHIN_S, Program
from tests.crash.test_kill_messengers import serving, until_up
from tests.postgres.server import empty
from tests.unit.matrix_cast import ANN, MEGOLM, ROOM

from keepsaid.adapters.postgres.connection import PostgresPlace
from keepsaid.testing.model_script import ChatRequest, Say
from keepsaid.testing.model_server import ModelServer
from keepsaid.testing.providers.matrix import TOKEN, MatrixServer
from keepsaid.testing.providers.matrix_peer import MatrixPeer


@pytest.fixture
def home(place: PostgresPlace, tmp_path: Path) -> Iterator[Path]:
    """A home whose stores are files; the database is empty."""
    empty(place)
    yield tmp_path / "home"
    empty(place)


@asynccontextmanager
async def answering(program: Program, matrix: MatrixServer) -> AsyncIterator[None]:
    """A runtime, killed after the block; its device is known when the block begins."""
    async with serving(program) as process:
        polls = len(matrix.polls)
        await until_up(process, program.home)
        await matrix.wait_for(lambda: len(matrix.polls) > polls + 1, WITHIN_S)
        yield


async def test_keys_move_with_the_stores(home: Path, place: PostgresPlace) -> None:
    """The same device goes on in the same session, and reads what it could read."""

    def count(request: ChatRequest) -> Say:
        return Say(f"answer to {request.last('user')[-5:]}")

    async with MatrixServer() as matrix, ModelServer(count) as model:
        matrix.room(ROOM, ANN, encryption=MEGOLM)
        ann = MatrixPeer(matrix)
        variables = {"KEEPSAID_MATRIX__TOKEN": TOKEN, "KEEPSAID_MATRIX__HOMESERVER": matrix.url, "OPENAI_API_KEY": "k"}
        program = Program(home, variables)
        program.configure(
            f"models: {{chat: openai/scripted, base_url: {model.url}}}\n"
            "buffer: {window_ms: 0}\nchannels: {matrix: {access: anyone, answer: always}}\n"
        )
        for number, target in enumerate((place.url, "")):
            async with answering(program, matrix):
                ann.say(f"this is message{number}")
                await matrix.wait_for(lambda n=number: len(matrix.sent) == n + 1, WITHIN_S)  # type: ignore[misc]
            if target:
                await asyncio.to_thread(program.run, "data", "move", "--to", target)
        assert len(ann.texts()) == 2
        assert len({one.content["session_id"] for one in matrix.sent}) == 1
        assert matrix.calls["device_signing/upload"] == 1
