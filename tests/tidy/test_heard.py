"""Every SQL statement that reads what is remembered is restricted to who listens, or stands here with its reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

import pytest

from keepsaid.adapters.sql import query
from keepsaid.adapters.sql.query import load

PAGES = tuple(sorted(file.stem for file in (Path(query.__file__).parent / "statements").glob("*.sql")))
RULE = ("/*heard*/", "/*audiences*/", "IN (SELECT value FROM json_each/*numbers*/(:audiences))")
"""A statement holds one of them: then nothing of it is read but what its listener hears."""

PARTS = {"memory": {"columns", "same_lane", "audiences", "scopes", "heard"}, "memory_graph": {"heard"}}
"""What stands in other statements; those are looked at."""

HELD = re.compile(
    r"\b(?:FROM|JOIN)\s+(?:memory|memory_text|memory_piece|memory_term|memory_aside|mention)(?=[\s,;)]|$)",
    re.IGNORECASE,
)
TELLS = re.compile(r"\A(?:SELECT|WITH|VALUES)\b|\bRETURNING\b", re.IGNORECASE)
"""Where words of people stand, and what returns rows; a write that returns none tells nobody."""

UNHEARD: Mapping[str, Mapping[str, str]] = {
    "care": {"how many there are": "memory"},
    "deep": {"how many pieces and vectors are astray": "spaces_astray stretches_astray text_missing"},
    "memory": {
        "row numbers, which pieces_heard reads": "matches",
        "from what was heard to what the same people hear": "pieces_beside",
        "numbers, or whether there is any": "any_known counts pieces",
        "in how many pieces the words stand that the asker wrote": "frequencies_now",
        "ids of what was just written": "kept",
    },
    "memory_alike": {"vectors of ids that the asker was given": "vectors_of"},
    "memory_audit": {"the owner's audit, out of which come ids": "entries learned texts"},
    "memory_bulletins": {
        "of one scope, which a listener was found to hear": "standing newest weightiest",
        "a number": "revision told",
    },
    "memory_bundle": {
        "of the ids that `told` gives, which is restricted": "entries edges",
        "what an import of the owner's meets; inside the write": (
            "beside by_key ends id_taken leads_to like said_in standing"
        ),
    },
    "memory_entities": {
        "keys and numbers, inside the write": "both called called_first speakers",
        "whose names are read; inside the write": "to_name",
    },
    "memory_forget": {
        "what forgetting reaches; who may ask for it is decided before": (
            "alike all_named bulletins by_key earliest everything known made mentioned merged_into merged_texts"
            " of_conversation said state totals traced"
        ),
        "what an undo puts back; inside the write": "aside",
    },
    "memory_graph": {
        "whether anything was written": "associate mention",
        "whether there is any": "related",
    },
    "memory_hearing": {"what the owner widens; inside the write": "whole"},
    "memory_index": {
        "what is made searchable; inside the write": "next_former pieces_of stale",
        "words that the same audience said beside it; inside the write": "after before",
        "how far terms are counted; inside the write": "counted_next",
    },
    "memory_loose": {
        "ids and numbers of what leads to nothing": (
            "chains chains_loose edges_loose ended entities_loose mentions mentions_loose pieces pieces_loose"
            " sources_loose statements_loose vectors_loose withdrawn"
        )
    },
    "memory_news": {"ids and kinds for the journal": "waiting"},
    "memory_pairs": {
        "close pairs that the same people hear, for the judge": "undecided",
        "inside the write": "keep_ruling standing",
    },
    "memory_people": {"who spoke, for the owner's command": "seen"},
    "memory_relating": {"ids and vectors, for the caretaker that relates": "among_learned unrelated"},
    "memory_truth": {
        "inside the write, which returns no words": (
            "corrected held known newest same_words slotted standing successor told"
        )
    },
    "memory_undo": {
        "what the person said in this conversation; inside the write": "stored_here",
        "ids and slots": "replaced slot undone_slots",
        "inside the write, which returns no words": "undone_of",
    },
    "memory_upkeep": {"numbers and ids": "counts kinds memories scopes states"},
    "memory_vectors": {"what has no vector yet, for the embedder alone": "unembedded"},
    "memory_words": {"what is packed into blocks, inside the write": "pieces pieces_in"},
    "pair": {"whether there is any": "stored_memory"},
}
"""Statements by page that read what is remembered and hear nobody, by the reason why they need not."""


def deaf(statements: Mapping[str, str], parts: frozenset[str] = frozenset()) -> Iterator[str]:
    """Names of statements that read what is remembered, whoever listens."""
    for name, sql in statements.items():
        if name not in parts and HELD.search(sql) and TELLS.search(sql) and not any(rule in sql for rule in RULE):
            yield name


@pytest.mark.parametrize("page", PAGES)
def test_every_statement_that_reads_memory_hears_somebody(page: str) -> None:
    listed = list(chain.from_iterable(names.split() for names in UNHEARD.get(page, {}).values()))
    assert sorted(deaf(load(page), frozenset(PARTS.get(page, ())))) == sorted(listed)


def test_every_listed_page_is_there() -> None:
    assert set(UNHEARD) | set(PARTS) <= set(PAGES)


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT text FROM memory WHERE id = ?", True),
        ("SELECT text FROM memory WHERE id = ? AND /*heard*/", False),
        ("WITH x AS (SELECT 1) SELECT body FROM x JOIN memory_piece", True),
        ("UPDATE memory SET pinned = 1 FROM mention WHERE mention.memory_id = memory.id RETURNING text", True),
        ("DELETE FROM memory WHERE id = ?", False),
        ("SELECT name\nFROM mention\nWHERE entity_id = ?", True),
        ("SELECT count(*) FROM memory_tombstone", False),
    ],
)
def test_what_is_deaf_is_found(sql: str, found: bool) -> None:
    assert list(deaf({"one": sql})) == ["one"] * found
