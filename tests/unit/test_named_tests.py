"""The tests that seed 001 names for injection stand in this suite, each under a name of ours."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "tests"
NAMED = {
    "cosine of identical, orthogonal and opposite vectors": ("unit/test_alike.py", "test_cosines"),
    "no memory twice by its id": ("unit/test_inject.py", "test_duplicates_and_what_is_no_longer_valid_are_left_out"),
    "no two that say the same, above .85 and below": ("unit/test_alike.py", "test_cosines"),
    "nothing shown is alike": ("property/test_selection.py", "test_nothing_is_shown_twice_or_against_a_word"),
    "not again for a similar message": (
        "unit/test_history_blocks.py",
        "test_a_message_like_the_last_one_is_not_reminded_again",
    ),
    "the budget": ("unit/test_inject.py", "test_items_and_tokens_are_limited_best_first"),
    "what the budget left out is not recorded": (
        "property/test_selection.py",
        "test_what_the_budget_left_out_was_not_given",
    ),
    "nothing pinned by default": ("unit/test_history_blocks.py", "test_nothing_is_pinned_unless_that_is_set"),
    "pinned before the rest": ("property/test_selection.py", "test_the_budget_is_kept_and_pinned_memories_come_first"),
    "four blocks become three, and fewer stay": (
        "unit/test_history_blocks.py",
        "test_so_many_blocks_stand_in_the_history_the_newest",
    ),
    "ephemeral": ("unit/test_reminding.py", "test_a_block_is_seen_in_its_own_turn_and_its_memories_come_again"),
    "no block where lanes are summarised": (
        "unit/test_reminding.py",
        "test_what_came_to_mind_is_stored_in_traces_alone",
    ),
    "again after so many turns, and not before": (
        "unit/test_reminding.py",
        "test_for_some_turns_a_memory_is_not_given_again_also_after_a_restart",
    ),
    "blocks outlive cancelled turns": (
        "unit/test_cut_off_blocks.py",
        "test_a_turn_that_a_newer_message_took_the_place_of_costs_no_block",
    ),
    "not into turns about results": ("unit/test_inject.py", "test_nothing_is_recalled_for_results"),
}


@pytest.mark.parametrize("named", NAMED)
def test_what_the_seed_names_is_tested(named: str) -> None:
    file, name = NAMED[named]
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
