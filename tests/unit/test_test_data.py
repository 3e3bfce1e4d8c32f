"""Generated test data: the same from the same seed, and true to what it says of itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

import keepsaid.testing
from keepsaid.testing.webhooks import EVENTS, deliveries, payload, sign
from keepsaid_testkit.talk import conversations

SECRET = "a fine secret"  # gitleaks:allow


def test_the_same_seed_gives_the_same_bytes() -> None:
    assert list(deliveries(7, 200, SECRET)) == list(deliveries(7, 200, SECRET))
    assert list(conversations(7, 200)) == list(conversations(7, 200))
    assert list(deliveries(7, 200, SECRET)) != list(deliveries(8, 200, SECRET))
    assert [said.text for said in conversations(7, 200)] != [said.text for said in conversations(8, 200)]


def test_more_of_the_same_seed_goes_on_where_less_ended() -> None:
    assert list(islice(deliveries(7, 500, SECRET), 50)) == list(deliveries(7, 50, SECRET))
    assert list(islice(conversations(7, 500), 50)) == list(conversations(7, 50))


def test_another_process_makes_the_same() -> None:
    # Hash randomisation differs between processes, and must not show.
    program = (
        "from hashlib import sha256\n"
        "from keepsaid_testkit.talk import conversations\n"
        "from keepsaid.testing.webhooks import deliveries\n"
        "print(sha256(repr((list(deliveries(7, 99, 's')), list(conversations(7, 99)))).encode()).hexdigest())\n"
    )
    source = str(Path(keepsaid.testing.__file__).parents[2])
    made = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": source, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(made) == 1


def test_true_deliveries_are_signed_and_forged_ones_are_not() -> None:
    made = list(deliveries(1, 600, SECRET))
    for delivery in made:
        assert (delivery.headers.get("x-hub-signature-256") == sign(SECRET, delivery.body)) is not delivery.forged
        assert isinstance(json.loads(delivery.body), dict)
    assert 40 < sum(delivery.forged for delivery in made) < 120


def test_only_a_repeat_has_the_body_of_another_delivery() -> None:
    """As at GitHub: the runtime takes the same body under another id for a replay."""
    true = [one for one in deliveries(1, 5_000, SECRET) if not one.forged]
    ids_of: dict[bytes, set[str]] = {}
    for one in true:
        ids_of.setdefault(one.body, set()).add(one.id)
    assert {len(ids) for ids in ids_of.values()} == {1}


def test_repeats_repeat_a_true_delivery() -> None:
    made = list(deliveries(1, 600, SECRET))
    repeats = [delivery for delivery in made if delivery.repeat_of is not None]
    assert 40 < len(repeats) < 120
    for repeat in repeats:
        first = made[repeat.repeat_of or 0]
        assert (first.headers, first.body, first.forged, first.repeat_of) == (repeat.headers, repeat.body, False, None)
    fresh = [delivery.id for delivery in made if delivery.repeat_of is None]
    assert len(set(fresh)) == len(fresh)


@pytest.mark.parametrize("event", EVENTS)
def test_every_event_comes_with_who_and_where(event: str) -> None:
    assert event in {delivery.event for delivery in deliveries(1, 200, SECRET)}
    fields = payload(event, 3)
    assert fields == payload(event, 3)
    assert {"repository", "sender", "organization"} < set(fields)
    assert ("action" in fields) is (event != "push")


def test_facts_stand_in_their_message_and_are_one_of_a_kind() -> None:
    made = list(conversations(4, 1_000))
    facts = [(said, said.fact) for said in made if said.fact is not None]
    assert 300 < len(facts) < 500
    assert all(fact.answer in said.text for said, fact in facts)
    assert len({fact.question for _, fact in facts}) == len(facts)
    assert len({said.external_id for said in made}) == len(made)
    assert len({said.conversation for said in made}) == 5
    assert len({said.sender for said in made}) >= 6
    assert all(said.text and said.name.lower() in said.sender for said in made)
