"""The files of a home, as a place that rows are moved from or to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from keepsaid.adapters.sql.marks import move_mark, set_move_mark
from keepsaid.adapters.sql.moving import DRIVEN, SQL
from keepsaid.adapters.sql.query import every, only
from keepsaid.adapters.sqlite import integrity, sealing
from keepsaid.adapters.sqlite.connection import SqliteSession, open_reader, open_writer, translated
from keepsaid.adapters.sqlite.stores import PAIR, join
from keepsaid.values import frozen


@frozen
class MovableFiles:
    """Two files, or one that holds both stores. The home's lock keeps other processes from writing."""

    buffer: Path
    memory: Path

    def __str__(self) -> str:
        return " and ".join(map(str, self._files))

    @property
    def _files(self) -> tuple[Path, ...]:
        is_one = self.buffer.resolve() == self.memory.resolve()
        return (self.buffer,) if is_one else (self.buffer, self.memory)

    def mark(self) -> str:
        if not self.buffer.exists() or not self.buffer.stat().st_size:
            return ""
        with closing(open_reader(self.buffer)) as db, translated(self.buffer):
            return move_mark(db)

    def set_mark(self, mark: str, at: int) -> None:
        """The buffer's file has the mark; it is opened before the other."""
        with closing(open_writer(self.buffer)) as db, translated(self.buffer), db.transaction():
            set_move_mark(db, mark, at)

    def is_empty(self) -> bool:
        for path, part in ((self.buffer, "buffer"), (self.memory, "memory")):
            if path.exists() and path.stat().st_size:
                with closing(open_reader(path)) as db, translated(path):
                    if integrity.version(db, part) and only(db, PAIR[f"stored_{part}"])[0]:
                        return False
        return True

    def prepare(self) -> None:
        if not self.mark():
            for path in self._files:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            join(self.buffer, self.memory)

    def working(self) -> Sequence[str]:
        return ()

    @contextmanager
    def held(self) -> Iterator[None]:
        yield

    @contextmanager
    def sources(self) -> Iterator[Sequence[SqliteSession]]:
        with ExitStack() as opened:
            sessions = []
            for path in self._files:
                session = open_reader(path)
                opened.callback(session.close)
                opened.enter_context(translated(path))
                session.execute("BEGIN")
                session.pragma("schema_version")
                sessions.append(session)
            yield sessions

    @contextmanager
    def targets(self) -> Iterator[Sequence[SqliteSession]]:
        with ExitStack() as opened:
            sessions = []
            for path in self._files:
                session = open_writer(path)
                opened.callback(session.close)
                opened.enter_context(translated(path))
                sealing.keep_sealed(session)
                opened.enter_context(session.transaction())
                opened.enter_context(_without_triggers(session))
                sessions.append(session)
            yield sessions


@contextmanager
def _without_triggers(db: SqliteSession) -> Iterator[None]:
    resting = [(name, text) for name, table, text in every(db, SQL["triggers"]) if table not in DRIVEN]
    for name, _ in resting:
        db.execute(SQL["drop_trigger"].replace("/*name*/", name))
    yield
    for _, text in resting:
        db.execute(text)
