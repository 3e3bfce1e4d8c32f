"""Channels share the authorities by which they check servers, and refuse a server that none of them vouches for."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import httpx2
import pytest
from tests.unit.test_files_nostr import certificate

from keepsaid.adapters.channels.certificates import authorities, socket_options
from keepsaid.adapters.channels.discord_line import DiscordDown
from keepsaid.adapters.channels.discord_socket import open_gateway
from keepsaid.adapters.channels.http_client import plain_client
from keepsaid.adapters.channels.nostr.keys import NostrKeys
from keepsaid.adapters.channels.nostr.socket import NostrDown, open_relay
from keepsaid.testing.clock import FastClock

_CALLERS = 8


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[int]:
    """The port of a TLS server that no authority vouches for."""

    async def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    context, _ = certificate(tmp_path, "localhost")
    async with await asyncio.start_server(take, "127.0.0.1", 0, ssl=context) as server:
        yield int(server.sockets[0].getsockname()[1])


async def test_all_channels_share_one_context() -> None:
    together = Barrier(_CALLERS)

    def ask(_: int) -> ssl.SSLContext:
        together.wait()
        return authorities()

    with ThreadPoolExecutor(_CALLERS) as threads:
        made = list(threads.map(ask, range(_CALLERS)))
    assert len({id(one) for one in made}) == 1
    assert await socket_options("wss://relay.example") == {"ssl": made[0]}
    assert await socket_options("ws://127.0.0.1:7777") == {}
    assert made[0].check_hostname
    assert made[0].verify_mode is ssl.CERT_REQUIRED


async def test_server_with_unknown_certificate_is_refused(port: int) -> None:
    address, clock = f"localhost:{port}", FastClock()
    async with plain_client() as http:
        with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await http.get(f"https://{address}/")
    with pytest.raises(NostrDown, match="cannot be reached: SSLCertVerificationError"):
        await open_relay(f"wss://{address}", NostrKeys("01" * 32), clock)
    with pytest.raises(DiscordDown, match="cannot be reached: SSLCertVerificationError"):
        await open_gateway(f"wss://{address}", clock)
