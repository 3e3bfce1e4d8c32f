"""A question is answered by nobody but its person, in time, and by nothing a machine sent."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from keepsaid.domain.effects import FillSlot
from keepsaid.domain.message import Content, Inbound, Origin, StoredMessage
from keepsaid.domain.slot import Expected, OnMismatch, Question, Slot, SlotTerms
from keepsaid.domain.turn import TurnInputs
from keepsaid.pipeline.prompt.attention import SlotMatcher
from keepsaid.testing.builders import lane_of

PEOPLE = st.sampled_from(["ann", "bob", "eve"])
TEXTS = st.sampled_from(["yes", "no", "42", "tomorrow", "in Berlin", "red", "what?", "/reset", "hm, let me see"])


@st.composite
def slots(draw: st.DrawFn) -> tuple[Slot, ...]:
    """At most one question for each person."""
    people = draw(st.lists(PEOPLE, unique=True))
    made = []
    for n, person in enumerate(people, 1):
        question = Question("?", draw(st.sampled_from(Expected)), ("red", "green"))
        opened = draw(st.integers(0, 50))
        made.append(Slot(n, person, question, f"reply:{n}", opened, opened + draw(st.integers(1, 50))))
    return tuple(made)


@st.composite
def messages(draw: st.DrawFn) -> tuple[StoredMessage, ...]:
    """What several people, and a webhook in their names, said at any time."""
    made = []
    for n in range(draw(st.integers(0, 8))):
        origin, text = Origin("test", "me", "room", draw(PEOPLE)), draw(TEXTS)
        content = Content(text.encode(), text, draw(st.sampled_from(["", "", "issues.opened"])))
        made.append(StoredMessage(n + 100, lane_of(), n + 1, Inbound(origin, content), draw(st.integers(0, 110))))
    return tuple(made)


@given(open_slots=slots(), said=messages(), mode=st.sampled_from(OnMismatch))
def test_no_answer_crosses_persons_time_or_machines(
    open_slots: tuple[Slot, ...], said: tuple[StoredMessage, ...], mode: OnMismatch
) -> None:
    asked = SlotMatcher(TurnInputs(open_slots), SlotTerms(on_mismatch=mode))
    asked.hear_all(said)
    by_id = {message.id: message for message in said}
    assert len({one.slot.id for one in asked.settled}) == len(asked.settled)
    for one in asked.settled:
        message = by_id[one.message_id]
        assert message.inbound.origin.sender == one.slot.person
        assert message.inbound.content.event == ""
        assert message.received_at >= one.slot.opened_at
        if isinstance(one.effect, FillSlot):
            assert message.received_at < one.slot.expires_at
        elif mode is OnMismatch.KEEP:
            assert one.effect.verb == "expire"
