"""Load or create `fence.key`, which numbers outside text in prompts (short: it does this alone)."""

from __future__ import annotations

import secrets

from keepsaid.config import Home
from keepsaid.config.durable import write_file
from keepsaid.domain.fence import Fence
from keepsaid.errors import HomeError

FENCE_FILE = "fence.key"
_KEY_BYTES = 32


def fence_of(home: Home) -> Fence:
    """The fence of a home, with the key in its data directory, which is made (mode 0600) if there is none.

    A file of another size is replaced: only the numbers in later prompts change. Raises HomeError.
    """
    file = home.data / FENCE_FILE
    try:
        key = file.read_bytes() if file.exists() else b""
        if len(key) != _KEY_BYTES:
            key = secrets.token_bytes(_KEY_BYTES)
            write_file(file, key)
    except OSError as error:
        what = f"{file} cannot be read or written ({error.strerror})"
        raise HomeError(
            what, safe="What is stored is untouched.", hint="make its directory yours and writable"
        ) from error
    return Fence(key)
