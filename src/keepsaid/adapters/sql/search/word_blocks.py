"""Words in blocks: the pieces that contain a word, each with its weight, read at once (docs/use/concepts/recall.md).

A stretch is all pieces whose ids lie in one range. Its blocks are made from the terms of its pieces and worth nothing
without: with a piece that goes, they go in the same transaction, and the next upkeep rebuilds them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from keepsaid.adapters.sql.query import MemorySession, column, every, load, only, post_each
from keepsaid.ports.runtime import point

if TYPE_CHECKING:
    from numpy.typing import NDArray


_SQL = load("memory_words")
STRETCHES = _SQL["stretches"]
"""The statement that `stretches` runs."""

STRETCH = 16_384
"""Ids that one stretch spans; a place in it takes 16 bits. The triggers of memory_piece count by the same number."""

_READ_EACH = 512
"""The pieces read at a time: some 4 ms, during which other writers wait."""

_PARTS, _WRITTEN_EACH = 256, 32
"""The blocks of a stretch, chosen by the lowest bits of a word's number, and the blocks written at a time."""

_ADDED_AT_ONCE = 65_536
"""Ids of pieces that are added up at a time: their sums stay in the cache."""

_WORTH = 255
"""The score of a word in a piece is quantised in this number of steps, up to its maximum."""


@dataclass(slots=True)
class _Making:
    """A stretch in the making: up to which piece it was read, pieces and words so far, and blocks written."""

    number: int
    upto: int
    pieces: int = 0
    words: list[tuple[NDArray[Any], NDArray[Any]]] = field(default_factory=list)
    written: int = 0


_making: WeakKeyDictionary[MemorySession, _Making] = WeakKeyDictionary()
"""The progress of each writer; if it is lost, the stretch starts again."""


def pack_words(db: MemorySession, finish: bool) -> bool:
    """Upkeep: a step towards the blocks of a full stretch that has none, or all of them; waits for the archive."""
    while finish or not every(db, _SQL["archiving"]):
        full, there = only(db, _SQL["full"], (STRETCH,))
        if full <= there:
            return False
        if (making := _making.pop(db, None)) is None:
            number = min(set(range(full)).difference(stretches(db)))
            making = _Making(number, number * STRETCH)
        if making.upto < (making.number + 1) * STRETCH:
            if rows := every(db, _SQL["pieces"], (making.upto, making.upto + _READ_EACH)):
                making.pieces += len(rows)
                making.words.append(_words_of(rows, making.number * STRETCH))
            making.upto += _READ_EACH
            more = True
        else:
            point("block.before")
            with db:
                more = _write_on(db, making)
            point("block.after")
        if more:
            _making[db] = making
        if not finish:
            return more
    return False


def forget_progress() -> None:
    """Forget what was read so far: its transaction was undone, or another process may have gone on from there."""
    _making.clear()


def _write_on(db: MemorySession, making: _Making) -> bool:
    """Write some blocks; returns whether there are more. None is, once a piece that was read went: none ever comes."""
    number, first = making.number, making.number * STRETCH
    if not making.written:
        if only(db, _SQL["pieces_in"], (first, first + STRETCH))[0] != making.pieces:
            return False
        # another writer may have ended in the middle of it
        db.post(_SQL["drop_stretch"], (number,))
        db.post(_SQL["begin_stretch"], (number, making.pieces))
    elif not every(db, _SQL["begun"], (number,)):
        return False
    upto = making.written + _WRITTEN_EACH
    made = ((number * _PARTS + part, words) for part, words in _blocks_of(making.words, making.written, upto))
    post_each(db, _SQL["keep_words"], made)
    making.written = upto
    if upto < _PARTS:
        return True
    db.post(_SQL["whole"], (number,))
    return False


def stretches(db: MemorySession) -> list[int]:
    """The stretches that have their blocks, in order."""
    return column(db, STRETCHES)


def outside(there: Sequence[int], newest: int) -> Iterator[tuple[int, int]]:
    """What no stretch of these spans up to the newest piece: from each piece, and until which."""
    begin = 0
    for number in there:
        if number * STRETCH > begin:
            yield begin, number * STRETCH
        begin = (number + 1) * STRETCH
    if begin <= newest:
        yield begin, newest + 1


def best(db: MemorySession, there: Sequence[int], worth: Mapping[int, float], depth: int) -> list[int]:
    """The pieces of these stretches that match best, by what each word is worth; of equal ones the larger id first."""
    import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

    from keepsaid.adapters.sql.search.vector_codes import least  # noqa: PLC0415 - imports numpy

    pieces, far, bound = np.zeros(0, np.int64), np.zeros(0), np.nextafter(0.0, 1.0)
    for first, scores in _scored(db, there, worth):
        near = np.flatnonzero(scores >= bound)
        pieces, far = np.concatenate((pieces, near + first)), np.concatenate((far, -scores[near]))
        if len(near) and len(far) > depth:
            kept = least(far, depth)
            pieces, far = pieces[kept], far[kept]
            bound = -far.max()
    found: list[int] = pieces[np.lexsort((-pieces, far))][:depth].tolist()
    return found


def _scored(db: MemorySession, there: Sequence[int], worth: Mapping[int, float]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Some stretches at a time: the first of their ids, and what each id from there on comes to."""
    import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

    for first, blocks in groupby(_blocks(db, there, worth), key=lambda block: block[0] - block[0] % _ADDED_AT_ONCE):
        stands = [one for base, words, asked in blocks for one in _stands(words, asked, base - first)]
        if not stands:
            continue
        places, worths, bases, terms, counts = zip(*stands, strict=True)
        pieces = np.frombuffer(b"".join(places), np.uint16) + np.repeat(np.array(bases), counts)
        weights = np.array([worth[term] for term in terms], np.float32)
        each = np.frombuffer(b"".join(worths), np.uint8) * np.repeat(weights, counts)
        yield first, np.bincount(pieces, each)


def _stands(words: bytes, asked: Sequence[int], base: int) -> Iterator[tuple[bytes, bytes, int, int, int]]:
    """Where these words stand in a stretch, what each comes to there, where it begins, the word, and how often."""
    head = memoryview(words).cast("I")
    size = head[0]
    places = 4 + 8 * size
    worths = places + 2 * head[2 * size]
    for term in asked:
        at = bisect_left(head, term, 1, size + 1)
        if at <= size and head[at] == term:
            start, end = head[at + size - 1] if at > 1 else 0, head[at + size]
            stands, each = words[places + 2 * start : places + 2 * end], words[worths + start : worths + end]
            yield stands, each, base, term, end - start


def _blocks(
    db: MemorySession, there: Sequence[int], worth: Mapping[int, float]
) -> Iterator[tuple[int, bytes, list[int]]]:
    """Where a stretch begins, one of its blocks, and the words that may stand in it."""
    parts: dict[int, list[int]] = {}
    for term in worth:
        parts.setdefault(term % _PARTS, []).append(term)
    wanted = db.numbers([number * _PARTS + part for number in there for part in parts])
    for id_, words in every(db, _SQL["words"], (wanted,)):
        yield id_ // _PARTS * STRETCH, words, parts[id_ % _PARTS]


def _words_of(rows: Sequence[tuple[Any, ...]], first: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Every word in every one of some pieces, in order of block, word and place, and what it comes to there."""
    import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

    from keepsaid.adapters.sql.search.piece_index import inside, share  # noqa: PLC0415 - beside numpy

    ids, own, marks, packed = zip(*rows, strict=True)
    owns, lengths = np.array(own), np.array(own) + np.array(marks)
    row = np.repeat(np.arange(len(rows)), lengths)
    within = np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    weight = np.where(within < owns[row], inside(owns)[row], 1.0)
    terms = np.frombuffer(b"".join(packed), np.uint32).astype(np.int64)
    key = (terms % _PARTS << 48) | (terms << 16) | (np.array(ids)[row] - first)
    order = np.argsort(key)
    key, starts = _runs(key[order])
    return key, np.ceil(share(np.add.reduceat(weight[order], starts)) * _WORTH).astype(np.uint8)


def _blocks_of(read: Sequence[tuple[NDArray[Any], NDArray[Any]]], first: int, upto: int) -> Iterator[tuple[int, bytes]]:
    """Some blocks of what was read: how many words, the words, where the places of each end, the places, the worths."""
    import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

    cuts = [slice(*np.searchsorted(keys, (first << 48, upto << 48))) for keys, _ in read]
    keys = np.concatenate([np.zeros(0, np.int64), *(one[cut] for (one, _), cut in zip(read, cuts, strict=True))])
    worths = np.concatenate([np.zeros(0, np.uint8), *(one[cut] for (_, one), cut in zip(read, cuts, strict=True))])
    if not len(keys):
        return
    order = np.argsort(keys, kind="stable")
    keys, worths = keys[order], worths[order]
    words, starts = _runs(keys >> 16)
    ends = np.append(starts[1:], len(keys))
    parts, firsts = _runs(words >> 32)
    for part, start, end in zip(parts.tolist(), firsts.tolist(), [*firsts[1:].tolist(), len(words)], strict=True):
        begin, until = starts[start], ends[end - 1]
        head = np.concatenate(([end - start], words[start:end] & 0xFFFF_FFFF, ends[start:end] - begin))
        places = (keys[begin:until] & 0xFFFF).astype(np.uint16)
        made = head.astype(np.uint32).tobytes() + places.tobytes() + worths[begin:until].tobytes()
        yield part, made + bytes(-len(made) % 4)


def _runs(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Of sorted values each once, and where each begins."""
    import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

    starts = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
    return values[starts], starts
