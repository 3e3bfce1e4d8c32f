"""`keepsaid inbox file`: writes a file to the disk that came or was sent; and how files are listed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from keepsaid.domain.files import StoredFile
from keepsaid.domain.reply import StoredReply
from keepsaid.errors import InputError
from keepsaid.interfaces.cli import console
from keepsaid.interfaces.shapes import Shape
from keepsaid.services.files import OpenedFile, open_file

_HINT = "keepsaid inbox show msg_..."


def save_file(
    handle: Annotated[
        str, typer.Argument(metavar="FILE", help="A kept file: msg_.../1 or trn_.../17, as `inbox show` lists it.")
    ],
    out: Annotated[Path, typer.Option(help="Where to write it; never over what is there.")],
) -> None:
    """Write a file to the disk that came with a message or an answer. See its type before you open it."""

    async def read(stores: console.Stores) -> OpenedFile | None:
        return await open_file(stores.views.files, handle)

    file = console.session().need(read, f"there is no file {handle}", _HINT)
    _write(out, file.content)
    shape = {"file": file.handle, "name": file.name, "type": file.kind, "bytes": len(file.content), "path": str(out)}
    console.show(shape, f"{out}  {file.kind}, {len(file.content):,} bytes")


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


def sent_lines(reply: StoredReply) -> list[tuple[str, str]]:
    """The files that go with a reply, a line each."""
    return [("file", f"{one.handle} goes with it: {console.one_line(one.described)}") for one in reply.files]


def _line(file: StoredFile) -> str:
    size = f", {file.size:,} bytes" if file.size else ""
    about = f"{file.handle} is {file.state}: {console.one_line(file.name)} ({console.one_line(file.kind)}{size})"
    return f"{about}: {console.one_line(file.reason)}" if file.reason else about
