"""A server of tools that may say anything of them, with the acceptance of texts as a home has it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.poisoning.directives import Directive

from keepsaid.adapters.tools.mcp import ToolPins
from keepsaid.domain.prompt import Json
from keepsaid.domain.turn import ToolClass
from keepsaid.ports.model import Served, Tool


class DescribedServer:
    """Offers what it serves once its texts are accepted; its tools do nothing."""

    name = "notes"
    trouble = ""

    def __init__(self, folder: Path) -> None:
        self.pins = ToolPins(folder / "accepted.json", folder / "waiting.json")
        self.served_now: Sequence[Served] = ()

    def tools(self) -> Sequence[Tool]:
        """The tools whose texts were accepted."""

        async def run(_: dict[str, Json]) -> str:
            return "nothing"

        offered = self.pins.offered(self.name, self.served_now)
        return [Tool(f"{self.name}__{one.name}", one.description, one.schema, run, one.kind) for one in offered]

    async def served(self) -> Sequence[Served]:
        """All it has."""
        return self.served_now

    async def keep(self) -> int | None:
        """It is always there."""
        return None


def described(one: Directive | None) -> Served:
    """A tool that carries a directive in its description, or in that of its argument; without one it is harmless."""
    in_schema = one is not None and int(one.mark[2:5]) % 2 == 1
    about = one.text if one is not None and not in_schema else "Look something up."
    of_argument: Json = one.text if one is not None and in_schema else "A word."
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {"word": {"type": "string", "description": of_argument}},
    }
    return Served("look", about, schema, ToolClass.PURE, True)
