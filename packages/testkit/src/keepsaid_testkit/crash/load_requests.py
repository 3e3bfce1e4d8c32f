"""What the load sends: people's talk, trouble of every kind, GitHub's deliveries, and real ones where there are any."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import Any

from keepsaid.testing.webhooks import Delivery, sign
from keepsaid.values import frozen
from keepsaid_testkit.talk import conversations

SECRET = "no secret at all"  # noqa: S105 - of a play  # gitleaks:allow
MANY = 1_000_000
_LOCOMO_CONVERSATIONS = 1
_TROUBLES = (
    "[once:{key}]",
    "[gone]",
    "[same:{key}]",
    "[refuse]",
    "[search]",
    "[slow]",
    "[pull]",
    "[flaky:{key}]",
    "[mine:{key}]",
)
_ROOMS = 4
_CHATS = 7
CHAT = "chat:"
"""How conversations begin in which people are asked something."""

_COMMANDS = ("/context", "/reset", "/help", "/compact", "/personality")


@frozen
class RetriedCall:
    """A request that is made until it is answered; `told` is what the ledger is to say of it."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    told: Mapping[str, Any]


@frozen
class ReplyUrls:
    """The URLs to push replies to: `url` accepts most of them, `closed` accepts none."""

    url: str
    closed: str


def talk(seed: int, doors: ReplyUrls) -> Iterator[RetriedCall]:
    """What people say: several rooms, some with a topic beside the root lane; most want the reply pushed."""
    chance = random.Random(f"talk:{seed}")  # noqa: S311 - repeatable, not secret
    for said in conversations(seed, MANY):
        fields = {"sender": said.sender, "name": said.name, "conversation": said.conversation}
        fields["text"] = f"{said.text} ({said.external_id})"
        if chance.random() < 0.25:
            fields["topic"] = chance.choice(("plans", "gossip"))
        if chance.random() < 0.8:
            fields["reply_url"] = doors.url
        yield message(said.external_id, fields)


def troubles(seed: int, doors: ReplyUrls) -> Iterator[RetriedCall]:
    """One kind after another; kinds never share a lane, so that what is refused takes no innocent with it."""
    for number in count():
        kind = _TROUBLES[number % len(_TROUBLES)]
        key = f"trouble-{seed}-{number}"
        room = f"{kind.partition(':')[0].strip('[]')}:{number // len(_TROUBLES) % _ROOMS}"
        fields = {"sender": "person-tostig", "conversation": f"trouble:{room}"}
        fields["text"] = f"Would you {kind.format(key=key)} please? ({key})"
        if kind != "[pull]":
            fields["reply_url"] = doors.closed if kind == "[gone]" else doors.url
        yield message(key, fields)


def chats(seed: int, doors: ReplyUrls) -> Iterator[RetriedCall]:
    """In each of some rooms, one person has a question asked, answers it, and tells the program something."""
    for number in count():
        room, spoken = number % _CHATS, number // _CHATS
        key = f"chat-{seed}-{number}"
        said = (f"Would you [ask:{key}] please?", str(number), _COMMANDS[spoken // 3 % len(_COMMANDS)])[spoken % 3]
        fields = {"sender": f"person-{room}", "conversation": f"{CHAT}{room}", "text": said}
        yield message(key, fields | {"reply_url": doors.url})


def message(key: str, fields: Mapping[str, str]) -> RetriedCall:
    """A message under its key."""
    headers = {"content-type": "application/json", "idempotency-key": key}
    told = {"kind": "talk", "key": key, "text": fields["text"]}
    return RetriedCall("/v1/messages", headers, json.dumps(fields).encode(), told)


def hooks(given: Iterable[Delivery]) -> Iterator[RetriedCall]:
    """GitHub's deliveries, the forged ones too."""
    for delivery in given:
        told = {"kind": "hook", "key": delivery.id, "event": delivery.event, "forged": delivery.forged}
        yield RetriedCall("/hooks/github", delivery.headers, delivery.body, told)


def locomo(file: Path, doors: ReplyUrls) -> Iterator[RetriedCall]:
    """The first conversations of LoCoMo, one message for each time somebody speaks."""
    for sample in json.loads(file.read_text("utf-8"))[:_LOCOMO_CONVERSATIONS]:
        talked, name = sample["conversation"], sample["sample_id"]
        sessions = (talked.get(f"session_{number}", ()) for number in range(1, 100))
        for turn in (turn for session in sessions for turn in session if turn["text"].strip()):
            fields = {"sender": turn["speaker"], "conversation": f"locomo:{name}", "text": turn["text"]}
            yield message(f"{name}/{turn['dia_id']}", fields | {"reply_url": doors.url})


def payloads(folder: Path) -> Iterator[Delivery]:
    """Every real payload, signed; the folder's name is the event."""
    for file in sorted(folder.glob("*/*.json")):
        body = file.read_bytes()
        name = blake2b(str(file.relative_to(folder)).encode(), digest_size=16).hexdigest()
        headers = {"content-type": "application/json", "x-github-event": file.parent.name, "x-github-delivery": name}
        yield Delivery(headers | {"x-hub-signature-256": sign(SECRET, body)}, body)
