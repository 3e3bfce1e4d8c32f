"""`keepsaid inbox file`: writes a file that came with a message to the disk; and how files are listed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from keepsaid.domain.files import FileState, StoredFile, read_handle
from keepsaid.errors import InputError
from keepsaid.interfaces.cli import console
from keepsaid.interfaces.shapes import Shape

_HINT = "keepsaid inbox show msg_..."


def save_file(
    handle: Annotated[str, typer.Argument(metavar="FILE", help="A kept file: msg_.../1, as `inbox show` lists it.")],
    out: Annotated[Path, typer.Option(help="Where to write it; never over what is there.")],
) -> None:
    """Write a file that came with a message to the disk. Look at its type before you open it: anybody can send one."""
    if (place := read_handle(handle)) is None:
        raise console.refused(f"{handle} is not the name of a file, such as msg_0k3v9q2m5x8tw/1", _HINT)

    async def read(stores: console.Stores) -> tuple[StoredFile, bytes] | None:
        found = await stores.views.files.placed(*place)
        return None if found is None else (found.file, await stores.views.files.content(*place))

    file, content = console.session().need(read, f"there is no file {handle}", _HINT)
    if file.state is not FileState.KEPT:
        raise console.refused(f"{handle} is not kept: {file.reason or 'it is not there yet'}", _HINT)
    _write(out, content)
    shape = {**file_shape(file), "path": str(out)}
    console.show(shape, f"{out}  {file.kind}, {len(content):,} bytes")


def _write(out: Path, content: bytes) -> None:
    """Write a new file, for its owner alone; a part of it is not left. Raises InputError."""
    try:
        made = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InputError(f"{out} is there already", hint="--out with another name") from None
    except OSError as error:
        raise InputError(f"{out} cannot be written ({error.strerror})", hint="--out with another name") from None
    try:
        with os.fdopen(made, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        with suppress(OSError):
            out.unlink()
        raise InputError(f"{out} cannot be written ({error.strerror})", hint="--out on another disk") from None


def file_shape(file: StoredFile) -> Shape:
    """A file as programs read it."""
    told = {"file": file.handle, "name": file.name, "type": file.kind, "bytes": file.size, "state": str(file.state)}
    return {**told, "reason": file.reason, "words": file.words}


def file_lines(files: Sequence[StoredFile]) -> list[tuple[str, str]]:
    """The files of a message, a line each."""
    return [("file", _line(one)) for one in files]


def _line(file: StoredFile) -> str:
    size = f", {file.size:,} bytes" if file.size else ""
    about = f"{file.handle} is {file.state}: {console.one_line(file.name)} ({console.one_line(file.kind)}{size})"
    return f"{about}: {console.one_line(file.reason)}" if file.reason else about
