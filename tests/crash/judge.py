"""The judge: says what of the promises was broken, from evidence alone; it shares no code with the program.

`python -m tests.crash.judge --load LEDGER --replies LEDGER --home DIR` prints `{"violations": [...], "counts": {...}}`
and exits 1 when there is a violation. Each begins with the promise it breaks.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from unicodedata import normalize

from tests.crash.evidence import Batch, Episode, Evidence, Post, gather

Check = Callable[[Evidence], Iterator[str]]
_SHOWN_MAX = 200


def sound(seen: Evidence) -> Iterator[str]:
    """SQLite finds nothing wrong with its files."""
    for line in seen.broken:
        yield f"sound: {line}"


def kept(seen: Evidence) -> Iterator[str]:
    """Every acknowledged message is stored once: under the id, at the place and with the text acknowledged."""
    lanes = {lane.id: lane for lane in seen.lanes}
    stored = {message.id: message for message in seen.messages}
    for answer in seen.taken:
        message, told = stored.get(answer.id), answer.told
        if message is None:
            yield f"kept: {answer.key} was acknowledged as {answer.id} and is not stored"
            continue
        if message.external_id != answer.key:
            yield f"kept: {answer.key} was acknowledged with the id of {message.external_id}"
        if told["kind"] != "talk":
            continue
        lane = lanes[message.lane]
        if (told["conversation"], told["lane"], told["number"]) != (lane.conversation, lane.key, message.number):
            place = f"{told['conversation']} {told['lane']} {told['number']}"
            yield f"kept: {answer.key} was acknowledged at {place}, stored at {lane.key} {message.number}"
        if normalize("NFC", told["text"]) != message.text:
            yield f"kept: {answer.key} is stored with another text"


def nothing_else(seen: Evidence) -> Iterator[str]:
    """What is stored was acknowledged, once: no duplicate, nothing forged, nothing that was refused."""
    acknowledged = {answer.key for answer in seen.taken if not answer.told.get("forged")}
    stored = Counter(message.external_id for message in seen.messages)
    for key, times in stored.items():
        if times > 1:
            yield f"once: {key} is stored {times} times"
        if key not in acknowledged:
            yield f"once: {key} is stored and was never acknowledged as true"
    for answer in seen.answers:
        forged = answer.told.get("forged", False)
        if answer.what == "strange":
            yield f"once: {answer.key} was answered with {answer.told['status']}: {answer.told['answer']}"
        elif forged and answer.what == "taken":
            yield f"forged: {answer.key} was taken"
        elif not forged and answer.what == "refused":
            yield f"forged: {answer.key} is true and was refused"


def numbered(seen: Evidence) -> Iterator[str]:
    """The numbers of a lane are 1..n, and its head says n."""
    numbers = defaultdict(list)
    for message in seen.messages:
        numbers[message.lane].append(message.number)
    for lane in seen.lanes:
        found = sorted(numbers[lane.id])
        if found != list(range(1, lane.head + 1)):
            yield f"order: {lane.conversation} {lane.key} has a gap: {len(found)} messages, head {lane.head}"


def after_one_another(seen: Evidence) -> Iterator[str]:
    """A message sent after another of its lane was acknowledged has a larger number."""
    best: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    told = set()
    for place, answer in enumerate(seen.taken):
        if answer.told["kind"] != "talk" or answer.key in told:
            continue
        told.add(answer.key)
        before = best[answer.told["conversation"], answer.told["lane"]]
        known = [number for at, number in before if at < answer.told["after"]]
        number = answer.told["number"]
        if known and number <= known[-1]:
            yield f"order: {answer.key} has number {number} and was sent after number {known[-1]} was acknowledged"
        if not before or number > before[-1][1]:
            before.append((place, number))


def batched(seen: Evidence) -> Iterator[str]:
    """Every message belongs to exactly one batch, and every batch is settled by no one's death."""
    held: Counter[tuple[int, int]] = Counter()
    for batch in seen.batches:
        held.update((batch.lane, number) for number in range(batch.first, batch.last + 1))
        if batch.state not in ("done", "dropped"):
            yield f"once: batch {batch.id} ends {batch.state}"
    for message in seen.messages:
        times = held.pop((message.lane, message.number), 0)
        if times != 1:
            yield f"once: message {message.id} belongs to {times} batches"
    for lane_id, number in held:
        yield f"once: a batch holds number {number} of lane {lane_id}, which is not stored"
    for lane in seen.lanes:
        if lane.batched != lane.head:
            yield f"once: {lane.conversation} {lane.key} is batched up to {lane.batched} of {lane.head}"


def settled(seen: Evidence) -> Iterator[str]:
    """A done batch has one committed turn or one task, a dropped one a reason and neither."""
    committed = Counter(turn.batch for turn in seen.turns if turn.state == "committed")
    batches = {batch.id: batch for batch in seen.batches}
    for batch in seen.batches:
        turns, task = committed[batch.id], batch.task is not None
        wanted = {"forward": (1, False), "spawn": (0, True), "drop": (0, False)}[batch.action]
        if batch.state in ("done", "dropped") and (turns, task) != wanted:
            yield f"once: batch {batch.id} ({batch.action}) has {turns} committed turns, task {batch.task}"
        if batch.task is not None and batch.task not in seen.tasks:
            yield f"once: task {batch.task} of batch {batch.id} does not exist"
        if batch.state == "dropped" and not batch.reason:
            yield f"once: batch {batch.id} is dropped without a reason"
    for turn in seen.turns:
        if turn.batch not in batches:
            yield f"once: turn {turn.id} has no batch"
        if turn.state != "committed":
            yield f"once: turn {turn.id} of batch {turn.batch} ends {turn.state}"
        elif turn.seq is None:
            yield f"once: turn {turn.id} is committed without a word in the journal"


def ruled(seen: Evidence) -> Iterator[str]:
    """Every message got the verdict that its event deserves (the rules of the stage)."""
    numbers = {(message.lane, message.number): message for message in seen.messages}
    for batch in seen.batches:
        for number in range(batch.first, batch.last + 1):
            message = numbers.get((batch.lane, number))
            if message is not None and batch.action != _deserved(message.event):
                yield f"once: message {message.id} ({message.event or 'talk'}) got the verdict {batch.action}"


def _deserved(event: str) -> str:
    if not event or event == "pull_request.opened":
        return "forward"
    return "spawn" if event.startswith("issue_comment.") else "drop"


def turned_in_order(seen: Evidence) -> Iterator[str]:
    """The turns of a lane are committed in the order of its messages."""
    batches = {batch.id: batch for batch in seen.batches}
    lanes = defaultdict(list)
    for turn in seen.turns:
        batch = batches.get(turn.batch)
        if turn.seq is not None and batch is not None:
            lanes[batch.lane].append((turn.seq, batch))
    for commits in lanes.values():
        ordered = [batch for _, batch in sorted(commits, key=lambda commit: commit[0])]
        for one, next_one in pairwise(ordered):
            if next_one.first <= one.last:
                yield f"order: batch {next_one.id} was answered after {one.id}, which holds later messages"


def heard_once(seen: Evidence) -> Iterator[str]:
    """Every forwarded message is one user record of its lane's transcript, in order, in its own batch's turn."""
    spans = _spans(seen, "forward")
    turns = {turn.id: turn.batch for turn in seen.turns if turn.state == "committed"}
    heard = defaultdict(list)
    for record in seen.said:
        heard[record.ref].append(record)
    last: Counter[int] = Counter()
    for message in seen.messages:
        batch = spans.get((message.lane, message.number))
        records = heard.pop(f"message:{message.id}", [])
        if len(records) != (batch is not None):
            yield f"once: message {message.id} is heard {len(records)} times in transcripts"
        for record in records:
            if record.text != message.text or record.lane != message.lane:
                yield f"once: message {message.id} is heard otherwise than it was said"
            if batch is not None and turns.get(record.turn) != batch.id:
                yield f"once: message {message.id} is heard in a turn that is not its own"
            if record.position <= last[message.lane]:
                yield f"order: message {message.id} stands before an earlier one in the transcript"
            last[message.lane] = record.position
    for ref in heard:
        yield f"once: a transcript holds {ref}, which is not stored"


def _spans(seen: Evidence, *actions: str) -> dict[tuple[int, int], Batch]:
    batches = [batch for batch in seen.batches if batch.action in actions]
    return {(batch.lane, number): batch for batch in batches for number in range(batch.first, batch.last + 1)}


def answered(seen: Evidence) -> Iterator[str]:
    """Every committed turn left one reply, which repeats all it answers; those with a URL have arrived."""
    arrived = {post.reply for post in seen.posts}
    texts = defaultdict(list)
    spans = _spans(seen, "forward")
    for message in seen.messages:
        batch = spans.get((message.lane, message.number))
        if batch is not None:
            texts[batch.id].append(message.text)
    replies = Counter(reply.batch for reply in seen.replies)
    for turn in seen.turns:
        if turn.state == "committed" and replies[turn.batch] != 1:
            yield f"answered: batch {turn.batch} has {replies[turn.batch]} replies"
    for reply in seen.replies:
        if reply.notice:
            yield f"answered: reply {reply.id} is a notice: {reply.text}"
        elif any(text not in reply.text for text in texts[reply.batch]):
            yield f"answered: reply {reply.id} does not answer all messages of its batch"
        if reply.url is not None and reply.state != "sent":
            yield f"answered: reply {reply.id} ends {reply.state}"
        if reply.url is not None and reply.id not in arrived:
            yield f"answered: reply {reply.id} never arrived"


def delivered(seen: Evidence) -> Iterator[str]:
    """What arrived was sent, as it stands in the outbox; a second copy is labelled; first copies come in order."""
    outbox = {reply.id: reply for reply in seen.replies}
    first: dict[int, Post] = {}
    latest: Counter[str] = Counter()
    for post in seen.posts:
        reply = outbox.get(post.reply)
        if reply is None:
            yield f"answered: a reply arrived that is not in the outbox: {post.reply}"
            continue
        if reply.state != "sent":
            yield f"answered: reply {reply.id} arrived and ends {reply.state}"
        if (post.text, post.conversation) != (reply.text, reply.conversation):
            yield f"answered: reply {reply.id} arrived otherwise than it was written"
        if post.reply in first:
            if not post.labelled:
                yield f"answered: reply {reply.id} arrived again without its label"
            continue
        first[post.reply] = post
        if reply.id < latest[reply.conversation]:
            yield f"order: reply {reply.id} arrived after a later one of {reply.conversation}"
        latest[reply.conversation] = max(latest[reply.conversation], reply.id)


def remembered(seen: Evidence) -> Iterator[str]:
    """Every message of a done batch and every reply is one episode; dropped ones are none."""
    episodes = Counter(seen.episodes)
    spans = _spans(seen, "forward", "spawn")
    for message in seen.messages:
        times = episodes.pop(Episode("message", str(message.id)), 0)
        if times != ((message.lane, message.number) in spans):
            yield f"memory: message {message.id} is {times} episodes"
    for turn in seen.turns:
        times = episodes.pop(Episode("reply", str(turn.id)), 0)
        if times != (turn.state == "committed"):
            yield f"memory: the reply of turn {turn.id} is {times} episodes"
    for episode in episodes:
        yield f"memory: an episode of {episode.kind} {episode.ref}, which is not stored"


CHECKS: Sequence[Check] = (
    sound,
    kept,
    nothing_else,
    numbered,
    after_one_another,
    batched,
    settled,
    ruled,
    turned_in_order,
    heard_once,
    answered,
    delivered,
    remembered,
)


def violations(seen: Evidence) -> list[str]:
    """All that was broken."""
    return [violation for check in CHECKS for violation in check(seen)]


def counts(seen: Evidence) -> dict[str, int]:
    """How much happened."""
    copies = Counter(post.reply for post in seen.posts)
    states = Counter(f"batches_{batch.state}_{batch.action}" for batch in seen.batches)
    return {
        "acknowledged": len({answer.key for answer in seen.taken}),
        "acknowledged_again": sum(answer.told["intake"] == "duplicate" for answer in seen.taken),
        "forged_refused": sum(answer.what == "refused" for answer in seen.answers),
        "lanes": len(seen.lanes),
        **dict(sorted(states.items())),
        "batches_in_flight_at_a_kill": sum(batch.crashes > 0 for batch in seen.batches),
        "batches_in_flight_at_two": sum(batch.crashes > 1 for batch in seen.batches),
        "turns": len(seen.turns),
        "tasks": len(seen.tasks),
        "replies": len(seen.replies),
        "replies_with_url": sum(reply.url is not None for reply in seen.replies),
        "replies_arrived": len(copies),
        "replies_arrived_again": sum(times - 1 for times in copies.values()),
        "replies_labelled": sum(post.labelled for post in seen.posts),
        "episodes": len(seen.episodes),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge; exits 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash.judge", description=main.__doc__)
    parser.add_argument("--load", type=Path, required=True, help="the ledger of the load")
    parser.add_argument("--replies", type=Path, required=True, help="the ledger of the receiver")
    parser.add_argument("--home", type=Path, required=True, help="KEEPSAID_HOME of the stopped server")
    options = parser.parse_args(arguments)
    seen = gather(options.load, options.replies, options.home)
    found = violations(seen)
    sys.stdout.write(json.dumps({"violations": found[:_SHOWN_MAX], "counts": counts(seen)}, indent=1) + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
