"""Files for people and programs: the bytes of what came with messages, and of what turns made, by their handles."""

from __future__ import annotations

from keepsaid.domain.files import FileState, read_handle
from keepsaid.domain.turn_files import read_turn_handle
from keepsaid.errors import InputError
from keepsaid.ports.store_views import FileView
from keepsaid.values import frozen

_HINT = "keepsaid inbox show msg_..."


@frozen
class OpenedFile:
    """A kept file: the channel of its conversation, its name, its media type as its bytes show it, and its bytes."""

    channel: str
    handle: str
    name: str
    kind: str
    content: bytes


async def open_file(files: FileView, handle: str) -> OpenedFile | None:
    """A file that is kept, None if there is none. Raises InputError for what is not a handle, or not kept."""
    if (made := read_turn_handle(handle)) is not None:
        if (found := await files.turn_file(*made)) is None:
            return None
        if (content := await files.turn_content(*made)) is None:
            raise InputError(f"{handle} is not kept any more", hint=_HINT)
        return OpenedFile(found.lane.channel, found.file.handle, found.file.name, found.file.kind, content)
    if (came := read_handle(handle)) is None:
        raise InputError(f"{handle} is not the name of a file, such as msg_0k3v9q2m5x8tw/1", hint=_HINT)
    if (placed := await files.placed(*came)) is None:
        return None
    file = placed.file
    if file.state is not FileState.KEPT:
        raise InputError(f"{handle} is not kept: {file.reason or 'it is not there yet'}", hint=_HINT)
    return OpenedFile(placed.lane.channel, file.handle, file.name, file.kind, await files.content(*came))
