"""`keepsaid data`: backup beside a running instance, restore, and what to do after a file of the stores was lost."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer
import yaml

from keepsaid.config import Config, Home
from keepsaid.config.home import sync, sync_tree
from keepsaid.domain.retention import Prunable
from keepsaid.errors import HomeBusy, HomeError, StoreError, StoreFull
from keepsaid.interfaces.cli import bundle, move, remote
from keepsaid.interfaces.cli.console import SCHEMA_VERSION, is_text, now_ms, say, session, show
from keepsaid.services.bundles import clear, held, partial_of
from keepsaid.text.normal import counted

_FULL = (errno.ENOSPC, errno.EDQUOT)


def _no_space(made: Path) -> StoreFull:
    safe = "The source was not touched, and nothing incomplete was left behind."
    hint = "free some space, or choose a directory on another disk"
    return StoreFull(f"the disk is full: no space left for {made}", safe=safe, hint=hint)


@contextmanager
def whole(made: Path) -> Iterator[Path]:
    """A new folder that takes the place of `made`, on the disk, when the block ends well, and is gone when it does not.

    An empty folder that is there stays the one it is: it may be a mount, or the one a shell stands in.
    Raises HomeError.
    """
    if not is_text(made):
        raise HomeError("the path is not UTF-8", safe="Nothing was written.", hint="choose another name")
    clear(made, made.parent, made)
    inside, partial = made.is_dir(), None
    try:
        made.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = partial_of(made, made if inside else made.parent)
        partial.mkdir(mode=0o700)
        with held(partial):
            yield partial
            sync_tree(partial)
            if inside:
                for child in list(partial.iterdir()):
                    child.rename(made / child.name)
                sync(made)
            else:
                partial.rename(made)
                sync(made.parent)
    except StoreFull as error:
        raise _no_space(made) from error
    except OSError as error:
        if error.errno in _FULL:
            raise _no_space(made) from error
        what, hint = f"{made} cannot be written ({error.strerror})", "choose a directory that you may write"
        raise HomeError(what, safe="The source was not touched.", hint=hint) from error
    finally:
        if partial is not None:
            shutil.rmtree(partial, ignore_errors=True)


def accept_loss(
    yes: Annotated[bool, typer.Option("--yes", help="Accept the loss; without it, only show what is lost.")] = False,
) -> None:
    """Accept that a database or its log was lost, and go on with what is left.

    Names what is lost and, with --yes, accepts the files as they are. A missing file is created
    empty; nothing is deleted. If you have the lost file or a backup, use that instead.
    """
    from keepsaid.app.stores import accept_stores, pair_trouble, try_lock_home  # noqa: PLC0415

    home, config = session().home, session().config()
    if (trouble := pair_trouble(home, config)) is None:
        show({"accepted": False, "lost": None}, "nothing is lost: the stores are as keepsaid left them")
        return
    if "accept-loss" not in trouble.hint:
        raise trouble
    if not yes:
        show({"accepted": False, "lost": trouble.what}, f"{trouble.what}.", trouble.safe)
        say("to go on with what is left: keepsaid data accept-loss --yes")
        return
    home.make()
    with try_lock_home(home, config) as is_alone:
        if not is_alone:
            raise HomeBusy("another process is running this home")
        accept_stores(home, config)
    show({"accepted": True, "lost": trouble.what}, f"accepted: {trouble.what}")
    say("try: keepsaid status")


app = typer.Typer(help="Back up, restore, export, import, prune and move; show the log.", rich_markup_mode=None)
app.command("export")(bundle.export)
app.command("import")(bundle.import_)
app.command("move")(move.move)
app.command("accept-loss")(accept_loss)
_MANIFEST = "manifest.json"
_STORES = {"buffer": "buffer.db", "memory": "memory.db"}
_COUNTS = ("messages", "batches", "keys")


@app.command("backup")
def backup(
    target: Annotated[
        Path | None, typer.Argument(help="Directory to create; by default keepsaid-TIME in the current one.")
    ] = None,
) -> None:
    """Copy both stores, the config and small files of the data directory, also beside a running instance.

    The copies are opened and checked before the backup takes its name.
    """
    home, config = session().home, session().config()
    made = (target or Path(time.strftime("keepsaid-%Y-%m-%dT%H%M%SZ", time.gmtime()))).absolute()
    if made.exists():
        raise HomeError(f"{made} exists already", safe="It was not touched.", hint="keepsaid data backup NEW_DIRECTORY")
    manifest = _back_up(home, config, made, home)
    kept = manifest["counts"]
    counts = f"{counted(kept['buffer'], 'message')}, {counted(kept['memory'], 'memory', 'memories')}"
    size = sum(file["bytes"] for file in manifest["files"])
    show({"backup": str(made), "bytes": size, **manifest}, f"backup  {made}   {size / 1e6:.1f} MB   {counts}")
    say("verified: both copies were opened and are whole. The config is in it, with any secrets it holds.")
    say(f"try: keepsaid data restore {quote(str(made))} --to DIR")


def _back_up(home: Home, config: Config, made: Path, noted_in: Home) -> dict[str, Any]:
    """Copy a home into a backup, which another home notes; returns the manifest."""
    from keepsaid.app import backups, stores  # noqa: PLC0415 - `--help` needs none of it

    begun = now_ms()
    with whole(made) as partial:
        backups.note_backup(noted_in, partial, begun)  # killed now, it is still a copy that receipts have to name
        copied = asyncio.run(stores.copy_stores(home, config, partial))
        _copy_config(home.config, partial / "config")
        for file in stores.extra_backup_files(home):
            shutil.copy(file, partial / file.name)  # with its mode
        manifest = _manifest(partial)
        manifest["stores"] = {part: one.path.name for one in copied for part in one.schemas}
        manifest["schemas"] = {part: version for one in copied for part, version in one.schemas.items()}
        manifest["counts"] = {part: count for one in copied for part, count in one.counts.items()}
        (partial / _MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", "utf-8")
    backups.note_backup(noted_in, made, begun)
    return manifest


@app.command("restore")
def restore(
    source: Annotated[Path, typer.Argument(metavar="BACKUP", help="A directory that `data backup` made.")],
    to: Annotated[Path, typer.Option("--to", help="New or empty directory for the restored home.")],
) -> None:
    """Restore a backup into a new home, after every file of it was checked."""
    to = to.absolute()
    manifest, forgotten = _restored(source, to)
    show({"home": str(to), "counts": manifest["counts"]}, f"restored into {to}; what runs elsewhere was not touched")
    if forgotten:
        say("the restored home first forgets what this home has forgotten since the backup")
    say(f"try: keepsaid --home {quote(str(to))} status")


def _restored(source: Path, to: Path) -> tuple[dict[str, Any], int]:
    """Restore a backup into a new home with the tombstones of this one; returns its manifest and their number."""
    from keepsaid.app import backups, stores  # noqa: PLC0415 - `--help` needs none of it

    manifest = _read(source)
    clear(to, to.parent, to)
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise HomeError(f"{to} is not an empty directory", safe="It was not touched.", hint="choose a new directory")
    with whole(to) as partial:
        home = Home.at(partial)
        home.make()
        for file in manifest["files"]:
            _place(source, file["path"], home)
        _settle(home.config_file, manifest["stores"])
        for name in sorted(set(manifest["stores"].values())):
            parts = [part for part, file in manifest["stores"].items() if file == name]
            asyncio.run(stores.examined(home.data / name, parts))
        current, buffer = session(), home.data / manifest["stores"]["buffer"]
        return manifest, backups.copy_tombstones(current.home, current.config(), buffer)


_REWRITING, _FORMER = ".keepsaid-rewriting-", ".former"
"""The beginning of the names of what a rewriting makes beside a backup, and the end of that of the former one."""


def rewrite(source: Path) -> None:
    """Rewrite a backup without what was forgotten in this home since; until that is done it is the former one.

    It is restored beside itself, forgets there, and is backed up again. Raises StoreError and HomeError; nothing is
    lost then, and the next rewriting goes on.
    """
    from keepsaid.app import backups, stores  # noqa: PLC0415 - `--help` needs none of it

    if source.name.startswith(_REWRITING) and source.name.endswith(_FORMER):
        source = source.with_name(source.name.removeprefix(_REWRITING).removesuffix(_FORMER))
    beside, new, former = (
        source.with_name(f"{_REWRITING}{source.name}{step}") for step in (".restored", ".rewritten", _FORMER)
    )
    if former.exists() and not source.exists():
        former.rename(source)
    for left in (beside, new, former):
        shutil.rmtree(left, ignore_errors=True)  # of a rewriting that was killed
    at, here = now_ms(), session().home
    try:
        _restored(source, beside)
        home = Home.at(beside)
        config = Config.model_validate(_paths_in(home.config_file))
        asyncio.run(stores.reapply_forgetting(home, config))
        backups.note_backup(here, former, 0)
        _back_up(home, config, new, here)
        source.rename(former)
        new.rename(source)
        sync(source.parent)
        backups.note_backup(here, source, at)
        shutil.rmtree(former)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _paths_in(file: Path) -> dict[str, Any]:
    """Where a restored config says that the stores are."""
    keys = yaml.safe_load(file.read_text("utf-8")) if file.exists() else None
    sections = {part: keys.get(part) for part in _STORES} if isinstance(keys, dict) else {}
    return {
        part: {"path": section["path"]}
        for part, section in sections.items()
        if isinstance(section, dict) and "path" in section
    }


@app.command("prune")
def prune(
    now: Annotated[bool, typer.Option("--now", help="Delete; without it, only show what would be deleted.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be deleted, whatever else is given.")
    ] = False,
) -> None:
    """Delete old, settled messages, or show what would be deleted; a running instance does so daily.

    Messages that are done or dropped go after `buffer.retention_days`, their turns and traces after
    `buffer.trace_days`. What waits, is dead or is not delivered never goes.
    """
    if dry_run or not now:
        terms, at = session().config().buffer.terms(), now_ms()
        before = at - terms.messages_ms, at - terms.records_ms
        found = session().read(lambda stores: stores.views.prunable(*before)) or Prunable(0, 0)
        said = f"would prune  {counted(found.messages, 'message')}, {counted(found.batches, 'batch', 'batches')}"
        show({"messages": found.messages, "batches": found.batches, "dry_run": True}, said)
        say("try: keepsaid data prune --now")
        return
    told: dict[str, Any] = {"messages": 0, "batches": 0, "keys": 0, "over": False, "refused": None, "stopping": False}
    while not (told["over"] or told["stopping"]):
        piece, _ = remote.post("/v1/prune")
        told = {name: value + told[name] if name in _COUNTS else value for name, value in piece.items()}
    refused = told["refused"]
    gone = f"pruned  {counted(told['messages'], 'message')}, {counted(told['batches'], 'batch', 'batches')}"
    show(told, gone if refused is None else f"nothing was pruned: {refused}")
    if told["stopping"]:
        say("the runtime is stopping; the rest goes after its next start, or by: keepsaid data prune --now")
    if refused is not None:
        say("if the clock is right, run it again; beside a runtime whose clock was set, start that again first")


def _copy_config(folder: Path, target: Path) -> None:
    """Copy the config as it reads: what a link leads to is copied, one that leads nowhere is named and left out."""
    if not folder.is_dir():
        return
    for file in sorted(folder.rglob("*")):
        if file.is_symlink() and not file.exists():
            say(f"left out: {file} leads to nothing")
    ignored = shutil.ignore_patterns("*.partial")
    try:
        shutil.copytree(folder, target, ignore=ignored, ignore_dangling_symlinks=True)
    except shutil.Error as error:
        source, _, why = error.args[0][0]
        raise HomeError(f"{source} cannot be backed up: {why}", safe="Nothing was changed.") from error


def _manifest(folder: Path) -> dict[str, Any]:
    from keepsaid import __version__  # noqa: PLC0415

    made_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    files = [
        {"path": file.relative_to(folder).as_posix(), "bytes": file.stat().st_size, "sha256": _sha256(file)}
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    ]
    return {"schema_version": SCHEMA_VERSION, "keepsaid": __version__, "made_at": made_at, "files": files}


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


_ANOTHER = "restore another backup"
_BACKUPS = "give a directory that `keepsaid data backup` printed"


def _read(source: Path) -> dict[str, Any]:
    """The manifest, once every file it lists is proven whole; raises StoreError naming the first that is not."""
    safe = "Nothing was restored."
    try:
        manifest: dict[str, Any] = json.loads((source / _MANIFEST).read_text("utf-8"))
        files = [(str(file["path"]), str(file["sha256"])) for file in manifest["files"]]
        whole = set(manifest["stores"]) == set(_STORES) and isinstance(manifest["counts"], dict)
        whole = whole and set(manifest["stores"].values()) <= {path for path, _ in files}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        whole, files = False, []
    if not whole:
        raise StoreError(f"{source} is not a keepsaid backup: its {_MANIFEST} cannot be read", safe=safe, hint=_BACKUPS)
    for path, digest in files:
        inside = not Path(path).is_absolute() and ".." not in Path(path).parts
        if not inside or not (source / path).is_file() or _sha256(source / path) != digest:
            raise StoreError(f"{source / path} is not the file that was backed up", safe=safe, hint=_ANOTHER)
    return manifest


def _place(source: Path, path: str, home: Home) -> None:
    """Put one file of the backup where a home has it."""
    inside_config = path.startswith("config/")
    target = home.config / path.removeprefix("config/") if inside_config else home.data / path
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copyfile(source / path, target)
    target.chmod(0o600)


def _settle(file: Path, stores: dict[str, str]) -> None:
    """Let a restored config name the restored stores: a path of its old home would open the old home's files."""
    keys = yaml.safe_load(file.read_text("utf-8")) if file.exists() else None
    keys = keys if isinstance(keys, dict) else {}
    before = json.dumps(keys, default=str)
    for part, name in stores.items():
        section = keys.get(part)
        path = section.pop("path", None) if isinstance(section, dict) else None
        if name != _STORES[part]:
            keys[part] = {**(section or {}), "path": name}
        elif path is not None and not section:
            keys.pop(part)
    if json.dumps(keys, default=str) != before:
        file.write_text(yaml.safe_dump(keys, sort_keys=False, allow_unicode=True), "utf-8")
        file.chmod(0o600)
