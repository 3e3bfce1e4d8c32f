"""Files of a scripted provider: each under a name of its own, handed out whole, cut short, or late."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from keepsaid.testing.model_http import Connection, head

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360000002000100e221bc330000000049454e44ae426082"
)
"""A whole picture of one pixel."""

OGG = b"OggS\x00\x02" + bytes(58)
"""How a voice note begins."""


@dataclass(slots=True)
class KeptFiles:
    """What can be downloaded, by name. `gone` are the names that give 404, `moved` those that are redirected to an
    address; `cut` those whose connection ends in the midst. `asked` counts requests by name.
    """

    contents: dict[str, bytes] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    cut: set[str] = field(default_factory=set)
    moved: dict[str, str] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    headers: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def keep(self, content: bytes, suffix: str = "") -> str:
        """Keep a file; returns its name."""
        name = f"file-{len(self.contents) + 1}{suffix}"
        self.contents[name] = content
        return name

    async def send(self, connection: Connection, name: str, headers: Mapping[str, str]) -> bool:
        """Answer a request for a file; returns whether the connection goes on."""
        self.asked[name] = self.asked.get(name, 0) + 1
        self.headers[name] = dict(headers)
        if name in self.moved:
            await connection.send(302, b"", extra={"location": self.moved[name]})
        elif name in self.gone or name not in self.contents:
            await connection.send(404, b"{}")
        elif name in self.cut:
            content = self.contents[name]
            await connection.write(head(200, {"content-length": str(len(content))}), content[: len(content) // 2])
            await connection.reset()
            return False
        else:
            await connection.send(200, self.contents[name], "application/octet-stream")
        return True
