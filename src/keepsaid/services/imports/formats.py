"""The formats that can be imported, by name, and which of them some files have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from keepsaid.services.bundles import KIND
from keepsaid.services.imports.basic_memory import BasicMemoryReader
from keepsaid.services.imports.chatgpt import ChatGptReader
from keepsaid.services.imports.claude import ClaudeReader
from keepsaid.services.imports.drafts import Reader
from keepsaid.services.imports.files import ImportFiles, open_files, refused
from keepsaid.services.imports.hermes import HermesReader
from keepsaid.services.imports.letta import LettaReader
from keepsaid.services.imports.mem0 import Mem0Reader
from keepsaid.services.imports.openclaw import OpenClawReader

KEEPSAID = "keepsaid"
"""The name of our own format, a bundle."""

_ALL: tuple[Reader, ...] = (
    ChatGptReader(),
    ClaudeReader(),
    OpenClawReader(),
    HermesReader(),
    Mem0Reader(),
    LettaReader(),
    BasicMemoryReader(),
)
READERS: Mapping[str, Reader] = {one.product: one for one in _ALL}
"""The readers of other programs by their products, in the order in which they are tried."""

NAMES = (KEEPSAID, *READERS)
"""All formats by name."""


def format_of(path: Path) -> str:
    """The format of a file, an archive or a folder, by its content. Raises InputError if it is none of them."""
    files = open_files(path)
    if _is_bundle(files):
        return KEEPSAID
    for name, reader in READERS.items():
        if reader.recognises(files):
            return name
    raise refused(f"{path} has none of the formats that can be imported: {', '.join(NAMES)}; name one with --format")


def _is_bundle(files: ImportFiles) -> bool:
    """Whether it is one file whose first line names a bundle."""
    if len(files.names) > 1:
        return False
    head = files.head(files.names[0]).lstrip()[:200].decode("utf-8", "replace")
    return head.startswith("{") and f'"{KIND}"' in head
