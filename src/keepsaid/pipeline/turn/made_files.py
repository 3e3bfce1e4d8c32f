"""Files that the tools of a turn return: kept before their step is on record, and named below what the tool says."""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.domain.making import KeepTurnFile, KeepTurnPiece, numbered, pieces_of
from keepsaid.domain.turn import ResumableTurn
from keepsaid.domain.turn_files import MadeFile, TurnFile, WithFiles
from keepsaid.errors import LeaseLost
from keepsaid.ports import runtime
from keepsaid.ports.store_views import Operations
from keepsaid.text.normal import named_short


class FileKeeper:
    """Keeps the files that steps of one turn make.

    The numbers of a step's files are always the same: a step that is made again after a crash replaces what it left.
    """

    def __init__(self, operations: Operations, held: ResumableTurn) -> None:
        self._operations = operations
        self._held = held

    async def keep(self, step: int, made: Sequence[MadeFile]) -> list[TurnFile]:
        """Keep what a step made; returns what is kept. Raises LeaseLost when others have the turn."""
        kept = []
        for file, content in numbered(self._held.turn_id, step, made):
            pieces = 0
            for pieces, piece in enumerate(pieces_of(content), 1):
                at = (file.turn_id, self._held.fence, file.number, pieces - 1)
                await self._apply(KeepTurnPiece(*at, piece))
                runtime.point("made.piece")
            await self._apply(KeepTurnFile(self._held.fence, file, pieces))
            kept.append(file)
        return kept

    async def _apply(self, commit: KeepTurnPiece | KeepTurnFile) -> None:
        if not await self._operations.apply(commit):
            raise LeaseLost("a file of the turn was refused")


async def files_in(keeper: FileKeeper | None, step: int, returned: str) -> str:
    """What a model reads of the files that a tool returned, a line each: as what they are kept; "" for none.

    Without a keeper they are not kept: side work has no reply that could bring them.
    """
    if not isinstance(returned, WithFiles) or not returned.files:
        return ""
    kept = await keeper.keep(step, returned.files) if keeper is not None else []
    lines = [f"[{one.source or one.described}, goes with your answer]" for one in kept if one.attached]
    lines += [f"[{one.described}, kept as {one.handle}]" for one in kept if not one.attached]
    if left := len(returned.files) - len(kept):
        sizes = ", ".join(f"{named_short(one.name)} of {len(one):,} bytes" for one in returned.files[:left])
        lines.append(f"[not kept: {sizes}]" if not kept else f"[{left} of the files are not kept]")
    return "\n".join(("", *lines))
