"""Every acceptance point of seed 004, and every check on memory that the origins of keepsaid hide, has its test.

The second list is that of origins.md M5, as far as it is about memory and what a prompt holds.
"""

from __future__ import annotations

import pytest
from tests.docs.test_guarantees import written

SEED_004 = {
    "sessions are marked when the agent sleeps": "test_sessions_are_marked_when_the_agent_sleeps",
    "sessions are marked after more than 5 unread records": (
        "test_sessions_are_marked_after_more_than_five_unread_records_and_not_before"
    ),
    "sessions are marked on compaction and reset": "test_sessions_are_marked_on_compaction_and_on_reset",
    "the worker polls marked sessions and clears the mark": "test_a_tick_reads_the_marked_and_clears_the_mark",
    "a compare-and-swap keeps the mark when messages came": (
        "test_a_message_that_comes_while_it_is_read_stays_marked_and_is_read_next"
    ),
    "the columns are there, fresh and migrated": "test_a_file_built_step_by_step_equals_one_built_at_once",
    "marking twice, and by a smaller record, changes nothing": (
        "test_the_larger_wins_and_saying_it_again_changes_nothing"
    ),
    "ten a tick, oldest first": "test_a_tick_reads_ten_the_oldest_first",
    "only marked sessions are found": "test_nothing_is_claimed_before_it_is_marked",
    "the mark is cleared only as far as was read": "test_a_message_that_came_meanwhile_stays_marked",
    "records are counted since the last that was read": "test_a_new_session_counts_its_own",
    "no tick after a stop": "test_nothing_is_read_after_a_stop",
}
ORIGINS = {
    "nothing is injected into turns about results": "test_nothing_is_recalled_for_results",
    "for messages of one batch it is injected once": "test_messages_of_one_batch_are_reminded_together_and_once",
    "what is injected is in no stored conversation and no summary": (
        "test_what_came_to_mind_is_stored_in_traces_alone"
    ),
    "not again within so many turns, and again after": (
        "test_for_some_turns_a_memory_is_not_given_again_also_after_a_restart"
    ),
    "what the budget left out does not count as injected": "test_what_the_budget_left_out_was_not_given",
    "pinned before the rest": "test_the_budget_is_kept_and_pinned_memories_come_first",
    "the emergency cut asks no model and leaves a marker": (
        "test_a_full_window_loses_the_older_half_at_once_until_it_fits"
    ),
    "the emergency cut keeps what was injected": "test_a_cut_of_the_context_forgets_nothing_of_what_was_given",
    "a summary that fails loses no span": "test_what_fails_changes_nothing_is_on_record_and_not_tried_at_once",
    "the hot path asks no model": "test_reminding_and_recording_ask_no_model",
    "the hot path is bounded in time": "test_late_recording_is_named_and_goes_on",
    "tools of the consolidator are not the agent's": "test_the_private_tools_are_never_offered_to_the_main_agent",
    "reading a session again changes nothing": "test_reading_again_what_was_read_changes_nothing",
    "a finding is applied once": "test_a_crash_anywhere_applies_what_was_found_once_without_a_second_call",
    "secrets are in no summary": "test_secrets_do_not_get_into_a_summary",
    "versions of a summary grow without a gap": "test_versions_follow_one_another_without_a_gap",
    "the 6th record marks, the 5th does not": "test_the_sixth_record_marks_and_the_fifth_does_not",
    "the larger mark wins": "test_the_larger_mark_wins",
    "memory's own turns mark nothing": "test_collecting_makes_no_turns_and_marks_nothing",
    "an idle instance asks no model": "test_an_idle_day_asks_no_model_and_leaves_the_logs_as_short",
    "nothing of another lane is in the window": "test_topics_that_share_words_are_kept_apart",
    "what is quoted is labelled": "test_a_reply_target_comes_first_and_is_quoted_by_whose_words_it_is",
    "a question of another lane, type or time takes no message": (
        "test_neither_another_person_nor_another_lane_nor_a_machine_touches_it"
    ),
}


@pytest.mark.parametrize("point", [*SEED_004.items(), *ORIGINS.items()], ids=lambda point: point[0])
def test_each_point_has_its_test(point: tuple[str, str]) -> None:
    assert point[1] in written(), f"nothing tests that {point[0]}"
