"""The tool that reads files: texts that came with messages of the conversation."""

from __future__ import annotations

from keepsaid.domain.files import FileState, read_handle
from keepsaid.domain.media_types import is_text
from keepsaid.domain.prompt import Json, object_schema
from keepsaid.domain.turn import ClaimedBatch
from keepsaid.errors import ToolError
from keepsaid.ports.model import Tool
from keepsaid.ports.store_views import FileView

NAME = "read_file"
_CHARS_MAX = 20_000
_BYTES_READ = 4 * (_CHARS_MAX + 1)
"""More than the longest text that is shown, whatever letters it has: what is longer is cut, and says so."""
_SCHEMA = object_schema(
    {"file": {"type": "string", "description": "what it is kept as, such as msg_01k2.../1"}}, "file"
)


def read_file(claimed: ClaimedBatch, files: FileView) -> Tool:
    """A tool that returns the text of a file of this conversation; of no other, whatever handle it is given."""
    place = claimed.batch.lane[:3]

    async def run(arguments: dict[str, Json]) -> str:
        given = arguments.get("file")
        handle = read_handle(given) if isinstance(given, str) else None
        found = await files.placed(*handle) if handle is not None else None
        if found is None or found.lane[:3] != place:
            raise ToolError("there is no such file in this conversation; name it as it is kept, such as msg_01k2.../1")
        file = found.file
        if file.state is not FileState.KEPT:
            raise ToolError(f"the file is not kept: {file.reason or 'it is not there yet'}")
        if not is_text(file.kind):
            raise ToolError(f"it cannot be read as text: it is {file.kind}")
        content = await files.content(file.message_id, file.number)
        return content[:_BYTES_READ].decode("utf-8", "replace")

    told = "Read a text file that came with a message of this conversation."
    return Tool(NAME, told, _SCHEMA, run, chars_max=_CHARS_MAX)
