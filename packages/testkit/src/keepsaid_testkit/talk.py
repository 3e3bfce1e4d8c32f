"""People's talk, made from a seed: several people in several conversations, with facts that can be looked for.

People, places and sentences are invented. The same seed gives the same messages.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from keepsaid.values import frozen

_ROOMS = {
    "talk:harbour": ("Mirelda", "Jun", "Tostig"),
    "talk:kitchen": ("Mirelda", "Oswin"),
    "talk:workshop": ("Jun", "Ysolde", "Tostig", "Pim"),
    "talk:attic": ("Ysolde", "Oswin", "Mirelda"),
    "talk:orchard": ("Pim", "Jun"),
}
_KINDS = ("brass", "walnut", "copper", "linen", "slate", "amber", "cedar", "pewter")
_THINGS = ("lantern", "ladder", "kettle", "barometer", "toolbox", "gramophone", "wheelbarrow", "spyglass")
_PLACES = ("the boathouse", "the left cellar", "Ysolde's shed", "the blue cupboard", "the tram depot", "the mill")
_FACTS = (
    ("The {thing} is kept in {place}, shelf {number}.", "Where is the {thing} kept?", "{place}, shelf {number}"),
    ("The padlock of the {thing} opens with {number}.", "What opens the padlock of the {thing}?", "{number}"),
    ("We paid {number} crowns for the {thing} at {place}.", "What did the {thing} cost?", "{number} crowns"),
    ("{name} will mend the {thing} on the {day} of May.", "When will the {thing} be mended?", "the {day} of May"),
    ("The {thing} has the serial mark {mark}.", "Which serial mark has the {thing}?", "{mark}"),
)
_CHATTER = (
    "Good morning, everyone!",
    "Ha, that made me laugh.",
    "I'll be ten minutes late, sorry.",
    "Did anybody feed the cat?",
    "Gern, bis später! 👋",
    "ok",
    "What a wind tonight…",
    "No idea, ask me tomorrow.",
)


@frozen
class TalkFact:
    """Something said that can be asked for: `answer` stands word for word in the message."""

    question: str
    answer: str


@frozen
class TalkMessage:
    """One message of a conversation; `external_id` is unique within a seed. `fact` is None for chatter."""

    external_id: str
    conversation: str
    sender: str
    name: str
    text: str
    fact: TalkFact | None = None


def conversations(seed: int, count: int) -> Iterator[TalkMessage]:
    """`count` messages, conversations mixed; about two in five state a fact, each about a thing of its own."""
    chance = random.Random(f"talk:{seed}")  # noqa: S311 - repeatable, not secret
    for index in range(count):
        room = chance.choice(tuple(_ROOMS))
        name = chance.choice(_ROOMS[room])
        text, fact = _fact(chance, index, name) if chance.random() < 0.4 else (chance.choice(_CHATTER), None)
        yield TalkMessage(f"said-{seed}-{index}", room, f"person-{name.lower()}", name, text, fact)


def _fact(chance: random.Random, index: int, name: str) -> tuple[str, TalkFact]:
    words = {
        # The index makes the thing one of a kind, so that one message answers one question.
        "thing": f"{chance.choice(_KINDS)} {chance.choice(_THINGS)} {_mark(index)}",
        "place": chance.choice(_PLACES),
        "number": str(chance.randrange(1_000, 9_999)),
        "day": f"{chance.randrange(4, 20)}th",
        "mark": f"{chance.choice('KLMNP')}{chance.getrandbits(24):06x}",
        "name": name,
    }
    said, question, answer = (template.format(**words) for template in chance.choice(_FACTS))
    return said, TalkFact(question, answer)


def _mark(index: int) -> str:
    letters = ""
    while True:
        index, digit = divmod(index, 26)
        letters = chr(ord("A") + digit) + letters
        if not index:
            return f"Q{letters}X"
