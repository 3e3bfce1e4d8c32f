"""Places in the bytes of a call, and the keys by which it is recorded once."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from keepsaid.domain.background_calls import SHAPES, task_of
from keepsaid.domain.chat_call import ChatTurn, read_call
from keepsaid.text.json_spans import items, members

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
FORMS = st.sampled_from([(None, (",", ":")), (None, (" ,\n", "\t: ")), (2, (",", ": "))])


@given(st.dictionaries(st.text(), VALUES, max_size=6), FORMS, st.booleans())
def test_spans_of_members_and_items_hold_their_values(document: dict[str, Any], form: Any, ascii_only: bool) -> None:
    indent, separators = form
    text = json.dumps(document, indent=indent, separators=separators, ensure_ascii=ascii_only)
    for bom in (b"", b"\xef\xbb\xbf"):
        raw = bom + text.encode("utf-8", "surrogatepass")
        found = members(raw)
        assert list(found) == list(document)
        for name, span in found.items():
            assert json.loads(raw[span.start : span.end]) == document[name]
            if isinstance(document[name], list):
                places = items(raw, span.start)
                assert [json.loads(raw[one.start : one.end]) for one in places] == document[name]


def turn_of(*messages: dict[str, Any]) -> ChatTurn:
    fields = {"model": "m", "messages": list(messages)}
    turn = read_call(json.dumps(fields).encode(), fields).turn
    assert turn is not None
    return turn


def said(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def test_keys_follow_what_was_said_and_not_how_it_was_written() -> None:
    plain = turn_of(said("user", "a"), said("assistant", "b"), said("user", "c"))
    parted = [{"type": "text", "text": "c", "cache_control": {"type": "ephemeral"}}]
    again = turn_of(
        said("system", "now it is noon"), said("user", "a"), said("assistant", " b\n"), said("user", parted)
    )
    assert (again.user_key, again.answer_key, again.opening) == (plain.user_key, plain.answer_key, plain.opening)
    other = turn_of(said("user", "a"), said("assistant", "B"), said("user", "c"))
    assert other.user_key != plain.user_key
    assert other.opening == plain.opening == turn_of(said("user", "a")).user_key


def test_tool_results_change_the_key_of_the_answer_alone() -> None:
    asked = turn_of(said("user", "time?"))
    called = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
    results = [turn_of(said("user", "time?"), called, {**said("tool", text), "tool_call_id": "1"}) for text in "ab"]
    assert {one.user_key for one in results} == {asked.user_key}
    assert len({one.answer_key for one in (asked, *results)}) == 3


def test_pictures_tell_the_same_words_apart() -> None:
    shown = [
        turn_of(said("user", [{"type": "text", "text": "this?"}, {"type": "image_url", "image_url": {"url": url}}]))
        for url in ("data:a", "data:b")
    ]
    assert shown[0].text == shown[1].text == "this?"
    assert shown[0].user_key != shown[1].user_key


def test_every_shape_is_found_and_talk_about_titles_is_not() -> None:
    for shape in SHAPES:
        role = "user" if shape.role == "user" else "system"
        messages = [(role, shape.begins.upper().replace(" ", "\n ") + f" and more {shape.holds}"), ("user", "hello")]
        assert task_of(messages if role == "system" else messages[:1]) == shape.task
    for talk in ("Can you generate a concise, 3-5 word title for my essay?", "### Task: respond to the user query", ""):
        assert task_of([("user", talk)]) == ""


def test_a_task_with_the_history_of_a_chat_is_none_of_the_talk_however_it_is_worded() -> None:
    asked = "### Task:\nName the mood of the chat.\n### Chat History:\n<chat_history>\nUSER: hi\n</chat_history>"
    assert task_of([("user", asked)]) == "other"
    assert task_of([("user", f"What does this prompt do? {asked}")]) == ""
