"""No list forgets a kind of memory that can be learned: each fades but one, has a section, and can be pinned."""

from __future__ import annotations

from typing import get_args

from keepsaid.config.settings import MemoryConfig
from keepsaid.domain.bulletin import SECTIONS
from keepsaid.domain.maintenance import FADING
from keepsaid.domain.memory import IMPORTANCE, Kind


def test_every_kind_that_can_be_learned_can_be_pinned() -> None:
    [kinds, _] = get_args(MemoryConfig.model_fields["pinned_kinds"].annotation)
    assert set(get_args(kinds)) == set(IMPORTANCE)


def test_every_kind_that_can_be_learned_fades_but_who_somebody_is() -> None:
    assert set(IMPORTANCE) - set(FADING) == {Kind.IDENTITY}


def test_every_kind_that_can_be_learned_has_a_section_beside_the_recent() -> None:
    named = {kind for section in SECTIONS if section.heading != "Recent" for kind in section.kinds}
    assert named == set(IMPORTANCE)
