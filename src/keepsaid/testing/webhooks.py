"""What the world sends, made from a seed: GitHub webhooks in their documented shapes, and people's talk.

People, repositories and sentences are invented. The same seed gives the same bytes.
"""

from __future__ import annotations

import hmac
import json
import random
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b

from keepsaid.values import frozen

_PEOPLE = (("mirelda-h", 7_100_417), ("jun-okavar", 7_100_980), ("tostig9", 7_101_336), ("quill-robot[bot]", 7_101_871))
_REPOSITORIES = (("brindlewick/lantern", 810_045), ("brindlewick/tideclock", 810_046), ("ostravane/pebble", 822_310))
_BRANCHES = ("main", "main", "fix/late-tide", "docs")
_TITLES = (
    "The lantern flickers after midnight",
    "Tide table is off by one hour in spring",
    "Polish the pebble loader",
    "Läuft nicht auf dem alten Gerät",
    "灯台が回らない",
    "Refuse wicks that are too short",
)
_BODIES = (
    "It began on Tuesday, right after the brass fitting was changed.\r\n\r\nSteps: light it, wait, count to nine.",
    "Seen with wick 4.2 only. The older ones keep still. 🕯️",
    "I can look into this next week if nobody minds.",
    "",
    None,
)
_REMARKS = (
    "Confirmed on my side.",
    "Could it be the oil?",
    "Fixed by the last commit, thank you!",
    "+1 🙂",
    "`wick --trim` helps.",
)


@frozen
class Delivery:
    """One HTTP request of a webhook; header names are in lower case.

    `forged` ones must be refused. `repeat_of` is the index, among those yielded, of the true delivery that
    this one repeats byte for byte under the same delivery id.
    """

    headers: Mapping[str, str]
    body: bytes
    forged: bool = False
    repeat_of: int | None = None

    @property
    def event(self) -> str:
        """GitHub's name of the event."""
        return self.headers["x-github-event"]

    @property
    def id(self) -> str:
        """The delivery's GUID."""
        return self.headers["x-github-delivery"]


def sign(secret: str, body: bytes) -> str:
    """The value of `x-hub-signature-256`."""
    return f"sha256={hmac.digest(secret.encode(), body, 'sha256').hex()}"


def deliveries(seed: int, count: int, secret: str) -> Iterator[Delivery]:
    """`count` deliveries: about one in eight a repeat of an earlier one, one in eight forged; no two others alike."""
    chance = _chance("webhooks", seed)
    bodies = set[bytes]()
    true: list[tuple[int, Delivery]] = []
    for index in range(count):
        fate = chance.random()
        if true and fate < 0.125:
            first, delivery = chance.choice(true)
            yield Delivery(delivery.headers, delivery.body, repeat_of=first)
            continue
        while (digest := blake2b((delivery := _delivery(chance, secret)).body, digest_size=16).digest()) in bodies:
            pass
        bodies.add(digest)
        if fate >= 0.875:
            yield _forge(chance, delivery, secret)
            continue
        true.append((index, delivery))
        yield delivery


def payload(event: str, seed: int) -> dict[str, object]:
    """One payload of an event in EVENTS."""
    return _payload(_chance("payload", seed), event)


def _chance(purpose: str, seed: int) -> random.Random:
    return random.Random(f"{purpose}:{seed}")  # noqa: S311 - repeatable, not secret


def _delivery(chance: random.Random, secret: str) -> Delivery:
    event = chance.choice(EVENTS)
    body = json.dumps(_payload(chance, event), ensure_ascii=False).encode()
    number = f"{chance.getrandbits(128):032x}"
    guid = "-".join((number[:8], number[8:12], number[12:16], number[16:20], number[20:]))
    headers = {
        "content-type": "application/json",
        "user-agent": "GitHub-Hookshot/0000000",
        "x-github-event": event,
        "x-github-delivery": guid,
        "x-github-hook-id": "40110",
        "x-hub-signature": f"sha1={hmac.digest(secret.encode(), body, 'sha1').hex()}",
        "x-hub-signature-256": sign(secret, body),
    }
    return Delivery(headers, body)


def _forge(chance: random.Random, delivery: Delivery, secret: str) -> Delivery:
    headers, body = dict(delivery.headers), delivery.body
    match chance.randrange(5):
        case 0:
            del headers["x-hub-signature-256"]
        case 1:
            headers["x-hub-signature-256"] = sign(f"not {secret}", body)
        case 2:
            headers["x-hub-signature-256"] = headers["x-hub-signature"]
        case 3:
            headers["x-hub-signature-256"] = headers["x-hub-signature-256"][:-1]
        case _:
            body += b" "
    return Delivery(headers, body, forged=True)


def _payload(chance: random.Random, event: str) -> dict[str, object]:
    name, number = chance.choice(_REPOSITORIES)
    owner, _, short = name.partition("/")
    return _SHAPES[event](chance) | {
        "repository": {
            "id": number,
            "node_id": f"R_{number}",
            "name": short,
            "full_name": name,
            "private": False,
            "owner": {"login": owner, "id": number + 5, "type": "Organization"},
            "html_url": f"https://github.com/{name}",
            "fork": False,
            "default_branch": "main",
        },
        "organization": {"login": owner, "id": number + 5},
        "sender": _person(chance),
    }


def _person(chance: random.Random) -> dict[str, object]:
    login, number = chance.choice(_PEOPLE)
    kind = "Bot" if login.endswith("[bot]") else "User"
    return {"login": login, "id": number, "node_id": f"U_{number}", "type": kind, "site_admin": False}


def _sha(chance: random.Random) -> str:
    return f"{chance.getrandbits(160):040x}"


def _about(chance: random.Random, first_id: int) -> dict[str, object]:
    number = chance.randrange(1, 9)
    return {
        "id": first_id + number,
        "number": number,
        "title": chance.choice(_TITLES),
        "user": _person(chance),
        "state": chance.choice(("open", "closed")),
        "locked": False,
        "labels": [],
        "created_at": "2031-03-04T05:06:07Z",
        "body": chance.choice(_BODIES),
    }


def _remark(chance: random.Random) -> dict[str, object]:
    return {"id": chance.randrange(55_000, 56_000), "user": _person(chance), "body": chance.choice(_REMARKS)}


def _issues(chance: random.Random) -> dict[str, object]:
    action = chance.choice(("opened", "edited", "closed", "labeled", "assigned"))
    shape: dict[str, object] = {"action": action, "issue": _about(chance, 31_000)}
    if action == "labeled":
        shape["label"] = {"id": 5, "name": "tide", "color": "00aabb"}
    if action == "assigned":
        shape["assignee"] = _person(chance)
    return shape


def _issue_comment(chance: random.Random) -> dict[str, object]:
    action = chance.choice(("created", "created", "edited", "deleted"))
    return {"action": action, "issue": _about(chance, 31_000), "comment": _remark(chance)}


def _pull(chance: random.Random) -> dict[str, object]:
    head = {"ref": chance.choice(_BRANCHES), "sha": _sha(chance)}
    return _about(chance, 32_000) | {"draft": False, "head": head, "base": {"ref": "main", "sha": _sha(chance)}}


def _pull_request(chance: random.Random) -> dict[str, object]:
    action = chance.choice(("opened", "synchronize", "closed", "labeled", "review_requested"))
    pull = _pull(chance)
    return {"action": action, "number": pull["number"], "pull_request": pull}


def _review(chance: random.Random) -> dict[str, object]:
    state = chance.choice(("approved", "changes_requested", "commented"))
    return {
        "action": "submitted",
        "review": _remark(chance) | {"state": state, "commit_id": _sha(chance)},
        "pull_request": _pull(chance),
    }


def _push(chance: random.Random) -> dict[str, object]:
    author = {"name": "Mirelda H", "email": "mirelda@example.invalid", "username": "mirelda-h"}
    commits = [
        {"id": _sha(chance), "message": chance.choice(_TITLES), "distinct": True, "author": author, "added": []}
        for _ in range(chance.randrange(3))
    ]
    deleted = not commits
    return {
        "ref": "refs/tags/v0.9" if deleted else f"refs/heads/{chance.choice(_BRANCHES)}",
        "before": _sha(chance),
        "after": "0" * 40 if deleted else commits[-1]["id"],
        "created": False,
        "deleted": deleted,
        "forced": chance.random() < 0.1,
        "base_ref": None,
        "commits": commits,
        "head_commit": None if deleted else commits[-1],
        "pusher": {"name": "mirelda-h"},
    }


def _release(chance: random.Random) -> dict[str, object]:
    minor = chance.randrange(4)
    number = 61_000 + chance.getrandbits(40)
    release = {"id": number, "tag_name": f"v1.{minor}", "name": None, "draft": False, "author": _person(chance)}
    return {
        "action": chance.choice(("created", "published", "released")),
        "release": release | {"body": chance.choice(_BODIES)},
    }


def _discussion(chance: random.Random) -> dict[str, object]:
    category = {"id": 3, "name": "Ideas", "is_answerable": True}
    action = chance.choice(("created", "edited", "answered", "locked"))
    shape: dict[str, object] = {"action": action, "discussion": _about(chance, 41_000) | {"category": category}}
    if action == "answered":
        shape["answer"] = _remark(chance)
    return shape


def _run(chance: random.Random, branch: str | None) -> dict[str, object]:
    status = chance.choice(("queued", "completed"))
    pulls = [{"id": 32_002, "number": 2, "head": {"ref": "docs"}}] if chance.random() < 0.5 else []
    return {
        "id": chance.randrange(71_000, 72_000),
        "name": chance.choice(("wick test", "lint")),
        "head_branch": branch,
        "head_sha": _sha(chance),
        "status": status,
        "conclusion": chance.choice(("success", "failure", "timed_out")) if status == "completed" else None,
        "pull_requests": pulls,
    }


def _check_run(chance: random.Random) -> dict[str, object]:
    check = _run(chance, None)
    branch = chance.choice((*_BRANCHES, None))
    suite = {"id": 73_000, "head_branch": branch} | {name: check[name] for name in ("head_sha", "pull_requests")}
    output = {"title": None, "summary": "Nine wicks, one too short." if check["conclusion"] == "failure" else None}
    del check["head_branch"]
    action = "completed" if check["conclusion"] else "created"
    return {"action": action, "check_run": check | {"check_suite": suite, "output": output}}


def _workflow_run(chance: random.Random) -> dict[str, object]:
    run = _run(chance, chance.choice(_BRANCHES))
    action = "completed" if run["conclusion"] else "requested"
    return {"action": action, "workflow_run": run, "workflow": {"id": 9, "name": run["name"], "state": "active"}}


_SHAPES: Mapping[str, Callable[[random.Random], dict[str, object]]] = {
    "issues": _issues,
    "issue_comment": _issue_comment,
    "pull_request": _pull_request,
    "pull_request_review": _review,
    "push": _push,
    "release": _release,
    "discussion": _discussion,
    "check_run": _check_run,
    "workflow_run": _workflow_run,
}

EVENTS = tuple(_SHAPES)
"""The events the generator makes."""
