"""The authorities by which channels check servers, loaded once (short: `websockets` needs them too, without a client).

A context takes 20 ms or more of processor time to load, and 0.8 MB.
"""

from __future__ import annotations

import asyncio
from functools import cache
from ssl import SSLContext
from threading import Lock
from typing import Any

import httpx2

_LOADING = Lock()
_SECURE = ("wss://", "https://")


def authorities() -> SSLContext:
    """The context of every TLS connection of channels; the first call takes 30 ms, so make it in a thread.

    `SSL_CERT_FILE` and `SSL_CERT_DIR` of the environment replace the authorities of the system.
    """
    with _LOADING:  # channels connect at the same time, each in a thread
        return _loaded()


@cache
def _loaded() -> SSLContext:
    return httpx2.create_ssl_context()


async def socket_options(url: str) -> dict[str, Any]:
    """What a connection of `websockets` to `url` takes besides: the shared context, if it is encrypted."""
    if not url.startswith(_SECURE):
        return {}
    return {"ssl": await asyncio.to_thread(authorities)}
