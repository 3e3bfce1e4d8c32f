"""Peers that are servers: each is started for the measurement, on a Unix socket, and ended after it."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from bench.contender import Absent, needed
from bench.intake import PRODUCERS, Put
from keepsaid.domain.message import Inbound

_READY_WITHIN_S = 15.0
_ASKED_EVERY_S = 0.02
_POOL = 16
"""Connections of procrastinate: with 64 of them it is slower."""


@asynccontextmanager
async def redis_streams(folder: Path) -> AsyncIterator[Put]:
    """XADD by as many connections as producers, to a server that syncs before it answers (`appendfsync always`)."""
    module = needed("redis.asyncio")
    socket = folder / "s"
    command = [_found("redis-server"), "--port", "0", "--unixsocket", str(socket), "--dir", str(folder), "--save", ""]
    with _running([*command, "--appendonly", "yes", "--appendfsync", "always"]):
        client = module.Redis(unix_socket_path=str(socket), max_connections=PRODUCERS)
        try:
            await _until(socket.exists, "redis-server")

            async def put(one: Inbound) -> object:
                return await client.xadd("messages", {"payload": one.content.payload})

            yield put
        finally:
            await client.aclose()


@asynccontextmanager
async def procrastinate(folder: Path) -> AsyncIterator[Put]:
    """A task deferred for each message, in PostgreSQL with its defaults (fsync, synchronous_commit)."""
    needed("procrastinate")
    async with postgres(folder) as address, deferring(address, _POOL, fresh=True) as put:
        yield put


@asynccontextmanager
async def deferring(address: str, pool: int, *, fresh: bool) -> AsyncIterator[Put]:
    """A task deferred for each message, by as many connections as `pool`; a `fresh` database has no tables yet."""
    module = needed("procrastinate")
    app = module.App(connector=module.PsycopgConnector(conninfo=address, min_size=pool, max_size=pool))

    @app.task(name="store")  # type: ignore[untyped-decorator]
    async def store(payload: str) -> str:
        return payload

    async def put(one: Inbound) -> object:
        return await store.defer_async(payload=one.content.payload.decode())

    async with app.open_async():
        if fresh:
            await app.schema_manager.apply_schema_async()
        yield put


@contextmanager
def keepsaid_serving(command: Sequence[str], home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A `keepsaid serve` of a home that answers; raises RuntimeError where it ends instead."""
    environment = {**os.environ, "KEEPSAID_HOME": str(home)}
    server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not (home / "run" / "runtime.json").exists():
            if server.poll() is not None:
                raise RuntimeError("serve ended")
            os.sched_yield()
        yield server
    finally:
        server.terminate()
        server.wait()


@contextmanager
def _running(command: Sequence[str | Path], user: str | None = None) -> Iterator[None]:
    """A server in the foreground, told to end when it is no longer needed."""
    server = subprocess.Popen(command, cwd="/", user=user, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()


async def _until(ready: Callable[[], bool], server: str) -> None:
    """Wait until a server is ready."""
    for _ in range(int(_READY_WITHIN_S / _ASKED_EVERY_S)):
        if ready():
            return
        await asyncio.sleep(_ASKED_EVERY_S)
    raise Absent(f"{server} did not start")


@asynccontextmanager
async def postgres(folder: Path) -> AsyncIterator[str]:
    """A new cluster that listens on a socket in the folder; its address."""
    initdb, user, data = _found("initdb"), _owner(), folder / "data"
    data.mkdir()
    if user is not None:
        shutil.chown(folder, user)
        shutil.chown(data, user)
    _made([initdb, "-D", data, "-U", "bench", "--auth", "trust", "--no-locale", "-E", "UTF8", "--no-sync"], user)
    command: list[str | Path] = [_beside(initdb, "postgres"), "-D", data, "-k", folder, "-c", "listen_addresses="]
    with _running(command, user):
        status = data / "postmaster.pid"
        await _until(lambda: status.exists() and "ready" in status.read_text("utf-8"), "PostgreSQL")
        yield f"host={folder} user=bench dbname=postgres"


def _owner() -> str | None:
    """Whom PostgreSQL runs as: never root, for which Debian has a user; None is whoever measures."""
    if os.geteuid():
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError as error:
        raise Absent("PostgreSQL does not run as root, and there is no user postgres") from error


def _made(command: Sequence[str | Path], user: str | None) -> None:
    """Run a command to its end; raises Absent with its last words."""
    done = subprocess.run(command, cwd="/", user=user, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode:
        raise Absent((done.stderr.decode().strip().split("\n") or [""])[-1])


def _beside(program: str, name: str) -> Path:
    """Another program of the same installation."""
    return Path(program).resolve().with_name(name)


def _found(program: str) -> str:
    """Where a program is: on the path, or where Debian puts PostgreSQL's."""
    debian = [str(folder) for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *debian])
    found = shutil.which(program, path=path)
    if found is None:
        raise Absent(f"{program} is not installed")
    return found
