"""Postings of each piece, for full text on PostgreSQL (short: FTS5 needs none, and no other database is served).

The commit that writes a piece writes them, with the tokens that FTS5 makes; statements rank by them as FTS5 does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from keepsaid.adapters.postgres.dialect import PACKAGE
from keepsaid.adapters.sql.query import JointStatement, Row, SqlSession, chunks, load
from keepsaid.adapters.sql.search.tokens import stems_of

SQL = load("postings", PACKAGE)

_TERM_CHARS = 250
"""The characters of a term that are kept, so that an entry of PostgreSQL's index holds it; statements cut alike."""


def post_pieces(db: SqlSession) -> None:
    """Write the postings of the pieces that came in this transaction, and count those that went."""
    changed, unposted = db.ask(JointStatement(SQL["any_changed"]), JointStatement(SQL["unposted"]))
    if not changed:
        return
    for pieces in chunks(unposted):
        if postings := [posting for piece in pieces for posting in _postings(piece)]:
            terms, *numbers = zip(*postings, strict=True)
            db.post(SQL["post"], (db.texts(terms), *map(db.numbers, numbers)))
    db.post(SQL["resize"])
    db.post(SQL["posted"])


def _postings(piece: Row) -> Iterator[tuple[str | int, ...]]:
    """Yield each term of a piece, the piece, its tokens, and how often the term stands in each column."""
    piece_id, *texts = piece
    counts = [Counter(stem[:_TERM_CHARS] for stem in stems_of(text)) for text in texts]
    tokens = sum(map(Counter.total, counts))
    for term in dict.fromkeys(term for count in counts for term in count):
        yield (term, piece_id, tokens, *(count[term] for count in counts))
