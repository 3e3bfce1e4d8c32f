"""Allocation: threads share one arena where the C library is glibc, and garbage is not looked for in what stays."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

_PLAYED = """
import asyncio, ctypes, threading
from keepsaid.app.serving import watched
from keepsaid.config import Config
async def serve():
    with watched(Config()):
        pass
if {shared}:
    asyncio.run(serve())
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
begin = threading.Barrier(4)
def work():
    begin.wait()
    assert libc.malloc(5_000)
    begin.wait()
threads = [threading.Thread(target=work) for _ in range(4)]
for one in threads: one.start()
for one in threads: one.join()
libc.malloc_info(0, ctypes.c_void_p.in_dll(libc, "stdout"))
libc.fflush(None)
"""


_SPARED = """
import gc
from keepsaid.adapters.system.machine import Systemd
from keepsaid.app.serving import started
stays = [[n] for n in range(1_000)]
started(Systemd({}))
print(gc.get_freeze_count(), sum(one in stays for one in gc.get_objects()))
"""


def printed(code: str) -> str:
    """What a process of its own prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=120, text=True).stdout


def arenas(*, shared: bool) -> int:
    """How many arenas a process with four busy threads has."""
    return printed(_PLAYED.format(shared=shared)).count("<heap nr=")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has an arena for each thread")
def test_threads_share_one_arena() -> None:
    assert arenas(shared=True) == 1
    assert arenas(shared=False) > 1


def test_garbage_is_not_looked_for_in_what_stays() -> None:
    frozen, looked_at = map(int, printed(_SPARED).split())
    assert frozen > 1_000
    assert looked_at == 0
