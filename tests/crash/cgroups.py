"""Control groups: limit the memory of a process, so that the kernel kills it when it takes more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

_ROOT = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


@contextmanager
def memory_limited(limit_bytes: int) -> Iterator[Path | None]:
    """Yield the directory of a new control group with a limit of memory; None where none can be made.

    A process joins it by writing its process id to `cgroup.procs`. The group is removed at the end.
    """
    for parent, files in _parents():
        group = parent / f"keepsaid-{uuid4().hex[:12]}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            if _limit(group, files, limit_bytes):
                yield group
                return
        finally:
            group.rmdir()
    yield None


def _parents() -> Iterator[tuple[Path, tuple[str, str]]]:
    """Yield groups that may have children, and the files that limit memory, and memory with swap or swap alone."""
    yield _ROOT / "memory", ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
    own = [line.removeprefix("0::/") for line in _OWN.read_text("utf-8").splitlines() if line.startswith("0::/")]
    for parent in (_ROOT, *(_ROOT / name for name in own if name)):
        if (parent / "cgroup.controllers").exists():
            with suppress(OSError):
                (parent / "cgroup.subtree_control").write_text("+memory", "utf-8")
            yield parent, ("memory.max", "memory.swap.max")


def _limit(group: Path, files: tuple[str, str], limit_bytes: int) -> bool:
    """Write the limits; returns whether that of memory is in force. A kernel without swap has no file for it."""
    memory, swap = files
    with suppress(OSError):
        (group / memory).write_text(str(limit_bytes), "utf-8")
    with suppress(OSError):
        (group / swap).write_text("0" if swap == "memory.swap.max" else str(limit_bytes), "utf-8")
    try:
        return (group / memory).read_text("utf-8").strip() == str(limit_bytes)
    except OSError:
        return False
