"""`keepsaid serve`: runs the runtime until it receives a signal to stop."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from keepsaid.domain.process import ProcessRole
from keepsaid.errors import KeepsaidError, StoreBroken
from keepsaid.interfaces.cli.console import check_choice, refused, say, session, show
from keepsaid.text.normal import counted

if TYPE_CHECKING:
    from keepsaid.app.instance import Instance
    from keepsaid.config import Config
    from keepsaid.interfaces.http.server import Address

_LOCAL = "127.0.0.1"
_SAID = ("server.host", "server.port")
"""Settings that may be said on the command line instead."""


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on, instead of server.host.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Port, instead of server.port; 0 takes a free one.")
    ] = None,
    role: Annotated[
        str, typer.Option(help="Part of the work, where processes share a database: all, worker (no outside), door.")
    ] = "all",
) -> None:
    """Run the server until it is stopped."""
    check_choice("--role", role, ProcessRole)
    config = session().config()
    if role != ProcessRole.ALL and config.store.url is None:
        raise refused("only processes that share a database have roles", "keepsaid config set store.url --prompt")
    host = _LOCAL if role == ProcessRole.WORKER else host
    asyncio.run(_serve(config if host is None else bound_to(config, host), port, ProcessRole(role)))


def bound_to(config: Config, host: str) -> Config:
    """The settings with another address to listen on."""
    return config.model_copy(update={"server": config.server.model_copy(update={"host": host})})


async def _serve(config: Config, port: int | None, role: ProcessRole) -> None:
    from keepsaid.app.instance import Outside  # noqa: PLC0415
    from keepsaid.app.opening import opened  # noqa: PLC0415
    from keepsaid.app.serving import started, watched  # noqa: PLC0415
    from keepsaid.interfaces.cli.logs import keep_log  # noqa: PLC0415
    from keepsaid.interfaces.http.server import listening  # noqa: PLC0415
    from keepsaid.pipeline.leasing import LifeTerms  # noqa: PLC0415

    home = session().home
    async with AsyncExitStack() as closing:
        systemd = closing.enter_context(watched(config))
        outside = None if role is ProcessRole.ALL else Outside(life=LifeTerms(role=role))
        instance = await closing.enter_async_context(opened(home, config, outside=outside))
        stop = install_stop_handlers()
        keep_log(home.log_file, config.log.level, instance.redactor, text=config.log.text)
        for line in await recovered(instance):
            say(line)
        instance.reloading.given = _SAID
        install_reload_handler(instance, stop)
        async with listening(instance, port) as address:
            started(systemd)
            await _tell(instance, address)
            async with unbroken(instance):
                await stop.wait()
            systemd.stopping()
            say("stopping: running turns end or return to the queue")
            await instance.stop()
    say("stopped; what waits is on disk")


def install_stop_handlers() -> asyncio.Event:
    """Handle SIGTERM and SIGINT; returns the event that the first signal sets.

    A second signal ends the process at once, which loses nothing that is stored.
    """
    asked, loop = asyncio.Event(), asyncio.get_running_loop()

    def ask(number: int) -> None:
        if asked.is_set():
            os._exit(128 + number)
        asked.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ask, number)
    return asked


def install_reload_handler(instance: Instance, stop: asyncio.Event) -> None:
    """Reload the settings on SIGHUP; if they are invalid, the error is printed and nothing changes.

    When the signal comes because the terminal was closed, `stop` is set.
    """
    going: set[asyncio.Task[None]] = set()
    terminal = sys.stdin.fileno() if sys.stdin.isatty() else None

    async def reload() -> None:
        try:
            done = await instance.reloading.reload()
        except KeepsaidError as error:
            say(f"not reloaded: {error.what}")
            return
        say(f"reloaded    {', '.join(done.changed) or 'nothing changed'}")
        for line in (*(f"needs a restart: {key}" for key in done.restart), *done.warnings):
            say(line)

    def ask() -> None:
        if terminal is not None and _is_closed(terminal):
            silent = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(silent, stream)  # to print to a terminal that is gone raises an error
            stop.set()
            return
        task = asyncio.ensure_future(reload())
        going.add(task)
        task.add_done_callback(going.discard)

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, ask)


def _is_closed(terminal: int) -> bool:
    try:
        os.tcgetpgrp(terminal)
    except OSError:
        return True
    return False


@asynccontextmanager
async def unbroken(instance: Instance) -> AsyncIterator[None]:
    """The block, ended with StoreBroken as soon as the disk fails."""
    work, failures = asyncio.current_task(), list[StoreBroken]()
    assert work is not None, "a coroutine runs in a task"

    async def watch() -> None:
        failures.append(await instance.until_broken())
        work.cancel()

    watching = asyncio.create_task(watch())
    try:
        yield
    except asyncio.CancelledError:
        if not failures:
            raise
        work.uncancel()
        raise failures[0] from None
    finally:
        watching.cancel()


async def recovered(instance: Instance) -> list[str]:
    """Start the instance; returns what a former process had left, in sentences."""
    before = await instance.operations.overview()
    unsent = await instance.operations.next_send(tuple(instance.channels)) is not None
    found = await instance.start()
    unrouted = sum(depth.unrouted for depth in before.channels)
    waiting = before.batches.get("queued", 0) + before.batches.get("leased", 0) - len(found.dead)
    left = [
        (unrouted, f"{counted(unrouted, 'message')} not routed yet"),
        (waiting, f"{counted(waiting, 'batch', 'batches')} not answered yet"),
        (unsent, "replies not sent yet"),
        (found.doubted, f"{counted(found.doubted, 'reply', 'replies')} that may have arrived, marked if sent again"),
        (len(found.dead), f"{counted(len(found.dead), 'batch', 'batches')} given up: keepsaid inbox ls --state dead"),
    ]
    return [f"recovered   {said}" for count, said in left if count]


async def _tell(instance: Instance, address: Address) -> None:
    memories = sum((await instance.memories.counts()).values())
    takes_in = instance.life.terms.role is not ProcessRole.WORKER
    hooks = ", ".join(
        f"{address.url}/hooks/{name}" + ("" if instance.config.channels[name].secret else " (closed: no secret is set)")
        for name in instance.hooks
        if takes_in
    )
    for name, reason in (await instance.services.status.read()).host.quarantined.items():
        say(f"quarantined {name}: {reason}   keepsaid ext show {name}")
    channels = ", ".join(sorted(instance.channels)) if takes_in else "none: a worker takes no messages"
    say(f"channels    {channels}")
    say(f"model       {instance.model.name}" + (": answers quote memory" if instance.model.name == "none" else ""))
    say(f"memory      {counted(memories, 'memory', 'memories')}")
    shape = {"url": address.url, "pid": os.getpid(), "home": str(instance.home.data), "model": instance.model.name}
    show(shape, f"listening   {address.url}   pid {os.getpid()}", *([f"webhooks    {hooks}"] if hooks else []))
    say("Ctrl-C stops it; what is not answered then stays on disk.")
