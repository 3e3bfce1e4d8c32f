"""The tool `attach_file`: sends a file with the reply, one that the agent writes or one that is kept here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from keepsaid.domain.files import FILES_MAX
from keepsaid.domain.making import MADE_BYTES_MAX
from keepsaid.domain.message import Trust
from keepsaid.domain.prompt import Json, Record, answered_calls, object_schema
from keepsaid.domain.turn import ClaimedBatch
from keepsaid.domain.turn_files import MadeFile, WithFiles
from keepsaid.errors import ToolError
from keepsaid.pipeline.tools.files import kept_in
from keepsaid.ports.model import Tool
from keepsaid.ports.store_views import FileView

ATTACH = "attach_file"
_DONE = "The file goes with your answer."
_SCHEMA = object_schema({
    "file": {"type": "string", "description": "kept: msg_.../1"},
    "name": {"type": "string", "description": "or new: notes.md"},
    "text": {"type": "string"},
})  # fmt: skip


def attach_file(claimed: ClaimedBatch, files: FileView, bytes_max: int) -> Tool:
    """Make the tool for a turn, where the medium takes files of `bytes_max` bytes.

    It sends what is kept in this conversation, or what the model itself writes, to this conversation alone.
    """
    place, attached = claimed.batch.lane[:3], list[MadeFile]()

    async def run(arguments: dict[str, Json]) -> str:
        given = arguments.get("file")
        if given:
            kept = await kept_in(files, given, place)
            made = MadeFile(kept.name, kept.kind, source=kept.handle, size=kept.size, attached=True)
        else:
            made = _read_text(arguments)
        if not 0 < len(made) <= min(bytes_max, MADE_BYTES_MAX):
            raise ToolError(f"a file of {len(made):,} bytes cannot be sent here: at most {bytes_max:,}, and not empty")
        if len(attached) >= FILES_MAX:
            raise ToolError(f"at most {FILES_MAX} files go with one answer")
        attached.append(made)
        return WithFiles(_DONE, Trust.OWNER, (made,))

    says = "Send a file with your answer."
    return Tool(ATTACH, says, _SCHEMA, run, serves=Trust.EXTERNAL, output=Trust.OWNER)


def is_attached_in(records: Sequence[Record]) -> bool:
    """Whether files go with the answer of a turn, so that there is one even without words."""
    return any(call.text.startswith(_DONE) for call in answered_calls(records, ATTACH))


def _read_text(arguments: Mapping[str, Json]) -> MadeFile:
    name, text = arguments.get("name"), arguments.get("text")
    if not isinstance(name, str) or not name.strip() or not isinstance(text, str):
        raise ToolError("give `file`, or `name` and `text`, which are texts")
    return MadeFile(name, "text/plain", text.encode("utf-8", "replace"), attached=True)
