"""The tool that reads files: texts that came with messages of the conversation, or that tools made in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import field
from functools import partial

from keepsaid.domain.files import FileState, read_handle
from keepsaid.domain.media_types import is_text
from keepsaid.domain.prompt import Json, object_schema
from keepsaid.domain.turn import ClaimedBatch
from keepsaid.domain.turn_files import read_turn_handle
from keepsaid.errors import ToolError
from keepsaid.ports.model import Tool
from keepsaid.ports.store_views import FileView
from keepsaid.values import frozen

NAME = "read_file"
_CHARS_MAX = 20_000
_BYTES_READ = 4 * (_CHARS_MAX + 1)
"""More than the longest text that is shown, whatever letters it has: what is longer is cut, and says so."""
_SCHEMA = object_schema(
    {"file": {"type": "string", "description": "what it is kept as, such as msg_01k2.../1"}}, "file"
)
_NONE = "there is no such file in this conversation; name it as it is kept, such as msg_01k2.../1"
_GONE = "the file is not kept any more"


@frozen
class KeptFile:
    """A file that is kept in a conversation: `handle` is that of its bytes; `content` reads them, None if they went."""

    name: str
    kind: str
    size: int
    handle: str
    content: Callable[[], Awaitable[bytes | None]] = field(repr=False, compare=False)


async def kept_in(files: FileView, handle: Json, place: tuple[str, ...]) -> KeptFile:
    """The file of a handle, in the conversation `place` alone. Raises ToolError in words for the model."""
    text = handle if isinstance(handle, str) else ""
    if (made := read_turn_handle(text)) is not None:
        return await _made_in(files, made, place)
    came = read_handle(text)
    found = await files.placed(*came) if came is not None else None
    if found is None or found.lane[:3] != place:
        raise ToolError(_NONE)
    file = found.file
    if file.state is not FileState.KEPT:
        raise ToolError(f"the file is not kept: {file.reason or 'it is not there yet'}")
    read = partial(files.content, file.message_id, file.number)
    return KeptFile(file.name, file.kind, file.size, file.handle, read)


async def _made_in(files: FileView, made: tuple[int, int], place: tuple[str, ...]) -> KeptFile:
    found = await files.turn_file(*made)
    if found is None or found.lane[:3] != place:
        raise ToolError(_NONE)
    file = found.file
    read = partial(files.turn_content, *made)
    return KeptFile(file.name, file.kind, file.size, file.source or file.handle, read)


def read_file(claimed: ClaimedBatch, files: FileView) -> Tool:
    """A tool that returns the text of a file of this conversation; of no other, whatever handle it is given."""
    place = claimed.batch.lane[:3]

    async def run(arguments: dict[str, Json]) -> str:
        file = await kept_in(files, arguments.get("file"), place)
        if not is_text(file.kind):
            raise ToolError(f"it cannot be read as text: it is {file.kind}")
        if (content := await file.content()) is None:
            raise ToolError(_GONE)
        return content[:_BYTES_READ].decode("utf-8", "replace")

    told = "Read a text file that came with a message of this conversation."
    return Tool(NAME, told, _SCHEMA, run, chars_max=_CHARS_MAX)
