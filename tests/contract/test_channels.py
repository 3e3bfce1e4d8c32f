"""Every channel keeps the contract of channels, beside its scripted provider."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.contract.channel_casts import LISTENING, SENDING

from keepsaid.testing.abilities_contract import AbilitiesContract, ConversationContract
from keepsaid.testing.listening_contract import ListeningContract
from keepsaid.testing.reading_contract import ReadingContract
from keepsaid.testing.sending_contract import SendingContract
from keepsaid.testing.uploads_contract import UploadsContract


class TestSending(SendingContract):
    """Replies, by each channel."""

    @pytest.fixture(params=SENDING)
    async def sending(self, request: pytest.FixtureRequest) -> AsyncIterator[Any]:
        async with SENDING[request.param]() as cast:
            yield cast


class TestListening(ListeningContract):
    """Messages, by each channel that listens."""

    @pytest.fixture(params=LISTENING)
    async def listening(self, request: pytest.FixtureRequest) -> AsyncIterator[Any]:
        async with LISTENING[request.param]() as cast:
            yield cast


class TestReading(ReadingContract):
    """Whatever people write, to each channel that listens."""

    @pytest.fixture(params=LISTENING)
    async def listening(self, request: pytest.FixtureRequest) -> AsyncIterator[Any]:
        async with LISTENING[request.param]() as cast:
            yield cast


class TestAbilities(AbilitiesContract):
    """What each channel declares of replies."""

    @pytest.fixture(params=SENDING)
    async def sending(self, request: pytest.FixtureRequest) -> AsyncIterator[Any]:
        async with SENDING[request.param]() as cast:
            yield cast


class TestUploads(UploadsContract):
    """Files that go with replies, by each channel."""

    @pytest.fixture(params=SENDING)
    async def sending(self, request: pytest.FixtureRequest) -> AsyncIterator[Any]:
        async with SENDING[request.param]() as cast:
            yield cast


class TestConversations(ConversationContract):
    """What each channel that listens declares of people."""

    @pytest.fixture(params=LISTENING)
    async def listening(self, request: pytest.FixtureRequest) -> AsyncIterator[Any]:
        async with LISTENING[request.param]() as cast:
            yield cast
