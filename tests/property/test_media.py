"""Media, given anything: a message, a reason, or an error that names a field; and the same again for the same."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from keepsaid.app.channels import MEDIA
from keepsaid.domain.message import IgnoredUpdate, MediaMessage
from keepsaid.errors import InputError

_KEYS = """
update_id message edited_message chat id from is_bot message_id text caption photo file_id reply_to_message sender_chat
is_topic_message message_thread_id forward_origin t d type author bot channel_id content message_reference mentions
channel parent_id attachments event subtype user ts thread_ts edited files kind pubkey tags
"""
KEYS = _KEYS.split()
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-9, 2_000),
    st.floats(allow_nan=False),
    st.sampled_from(
        ["message", "MESSAGE_CREATE", "event_callback", "message_changed", "private", "a" * 64, "", " ", "\0"]
    ),
    st.text(max_size=5),
    st.just([["e", "b", "", "root"], ["p"], []]),
)
OBJECTS = st.recursive(
    st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=9),
    lambda inner: st.dictionaries(
        st.sampled_from(KEYS), st.one_of(VALUES, inner, st.lists(st.one_of(inner, VALUES), max_size=2)), max_size=9
    ),
    max_leaves=12,
)


@given(st.sampled_from(sorted(MEDIA)), OBJECTS)
def test_whatever_comes_is_read_or_refused(medium: str, source: dict[str, object]) -> None:
    def told() -> MediaMessage | IgnoredUpdate | str:
        try:
            return MEDIA[medium](source)
        except InputError as error:
            return error.what

    before = json.dumps(source)
    found = told()
    assert told() == found
    assert json.dumps(source) == before
    assert not isinstance(found, str) or "the field '" in found
    if isinstance(found, MediaMessage):
        assert found.text.strip()
        assert found.sender
        assert found.provider_id
        assert found.conversation.startswith(f"{medium}:")
        assert found.delivery.startswith(f"{medium}:")
