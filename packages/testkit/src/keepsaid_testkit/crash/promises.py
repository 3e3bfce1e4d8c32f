"""Promises: kept, in order, compacted and published once; each check says from evidence alone what was broken."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from unicodedata import normalize

from keepsaid.domain.recorded_talk import EVENTS
from keepsaid_testkit.crash.evidence import BatchRow, Evidence, MessageRow, Stretch
from keepsaid_testkit.crash.fetching import BROUGHT

REFUSED = "[refuse]"
"""Stands in messages that the model of the play refuses: these may die."""


_INTERRUPTED = "interrupted by a newer message"
"""Why a turn was abandoned whose batch restarted."""


def check_databases(seen: Evidence) -> Iterator[str]:
    """The integrity check of SQLite finds no damage in the database files."""
    for line in seen.broken:
        yield f"sound: {line}"


def check_stored_messages(seen: Evidence) -> Iterator[str]:
    """Every acknowledged message is stored once, with the acknowledged id, place and text."""
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


def _task_of(key: str | None) -> str | None:
    """The task whose result a message tells; None for another message."""
    begins, _, rest = (key or "").partition(":")
    return rest.partition(":")[0] if begins == "task" else None


def check_no_extra_messages(seen: Evidence) -> Iterator[str]:
    """Every stored message was acknowledged, once: no duplicate, no forged and no refused message.

    Excepted are the results of tasks, which the program sends by itself once they have ended, and what the play brings
    with files, which nobody acknowledges to anybody.
    """
    acknowledged = {answer.key for answer in seen.taken if not answer.told.get("forged")}
    ended = {str(number) for number, (state, _) in seen.tasks.items() if state in ("completed", "failed")}
    keys = [one.external_id for one in seen.messages]
    acknowledged |= {key for key in keys if _task_of(key) in ended or (key or "").startswith(BROUGHT)}
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


def check_lane_numbers(seen: Evidence) -> Iterator[str]:
    """The messages of a lane have the numbers 1..n, and the lane's head is n."""
    numbers = defaultdict(list)
    for message in seen.messages:
        numbers[message.lane].append(message.number)
    for lane in seen.lanes:
        found = sorted(numbers[lane.id])
        if found != list(range(1, lane.head + 1)):
            yield f"order: {lane.conversation} {lane.key} has a gap: {len(found)} messages, head {lane.head}"


def check_send_order(seen: Evidence) -> Iterator[str]:
    """A message that was sent after an earlier one of its lane was acknowledged has a larger number."""
    best: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    told = set()
    for place, answer in enumerate(seen.taken):
        if answer.told["kind"] != "talk" or answer.key in told:
            continue
        told.add(answer.key)
        before = best[answer.told["conversation"], answer.told["lane"]]
        known = bisect_left(before, (answer.told["after"], 0))
        number = answer.told["number"]
        if known and number <= (last := before[known - 1][1]):
            yield f"order: {answer.key} has number {number} and was sent after number {last} was acknowledged"
        if not before or number > before[-1][1]:
            before.append((place, number))


def check_batches(seen: Evidence) -> Iterator[str]:
    """Every message belongs to exactly one batch, and every batch is settled.

    No batch is dead or parked without a cause of its own.
    """
    held: Counter[tuple[int, int]] = Counter()
    guilty, doubtful = _guilty(seen), _doubtful(seen)
    for batch in seen.batches:
        held.update((batch.lane, number) for number in range(batch.first, batch.last + 1))
        excused = {"done": True, "dropped": True, "dead": batch.id in guilty, "review": batch.id in doubtful}
        if not excused.get(batch.state, False):
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


def _guilty(seen: Evidence) -> set[int]:
    """Batches whose every message is one that the model refuses."""
    places = by_place(seen)
    batches = [batch for batch in seen.batches if batch.action == "forward"]
    return {batch.id for batch in batches if all(REFUSED in message.text for message in held_by(batch, places))}


def _doubtful(seen: Evidence) -> set[int]:
    """Batches with a call that nobody may repeat, and that began and has no result; what joined them is one of them."""
    turns = {step.turn for step in seen.steps if step.tool == "once" and step.state == "started"}
    joined = {batch.id for batch in seen.batches if batch.steered in turns}
    return joined | {turn.batch for turn in seen.turns if turn.id in turns}


def by_place(seen: Evidence) -> dict[tuple[int, int], MessageRow]:
    """Messages by lane and number."""
    return {(message.lane, message.number): message for message in seen.messages}


def held_by(batch: BatchRow, places: dict[tuple[int, int], MessageRow]) -> list[MessageRow]:
    """The messages of a batch that are stored."""
    numbers = range(batch.first, batch.last + 1)
    return [places[batch.lane, number] for number in numbers if (batch.lane, number) in places]


_SETTLED = {"forward": (1, False), "listen": (1, False), "spawn": (0, True), "drop": (0, False)}
"""By verdict: the committed turns of a batch that is settled, and whether it has a task."""


def check_settlements(seen: Evidence) -> Iterator[str]:
    """A done batch has one committed turn or one task; a dropped batch has a reason and neither of them."""
    committed = Counter(turn.batch for turn in seen.turns if turn.state == "committed")
    answering = {turn.id for turn in seen.turns if turn.state == "committed"}
    batches = {batch.id: batch for batch in seen.batches}
    given_up = {batch.id for batch in seen.batches if batch.state in ("dead", "review")}
    for batch in seen.batches:
        turns, task = committed[batch.id] + (batch.steered in answering), batch.task is not None
        wanted = _SETTLED[batch.action]
        if batch.state in ("done", "dropped") and (turns, task) != wanted:
            yield f"once: batch {batch.id} ({batch.action}) has {turns} committed turns, task {batch.task}"
        if batch.task is not None and batch.task not in seen.tasks:
            yield f"once: task {batch.task} of batch {batch.id} does not exist"
        if batch.state == "dropped" and not batch.reason:
            yield f"once: batch {batch.id} is dropped without a reason"
    for turn in seen.turns:
        if turn.batch not in batches:
            yield f"once: turn {turn.id} has no batch"
        if turn.state == "abandoned" and (turn.reason == _INTERRUPTED or turn.batch in given_up):
            continue
        if turn.state != "committed":
            yield f"once: turn {turn.id} of batch {turn.batch} ends {turn.state}"
        elif turn.seq is None:
            yield f"once: turn {turn.id} is committed without a word in the journal"


def check_verdicts(seen: Evidence) -> Iterator[str]:
    """Every message has the verdict that the rules of the sandbox give its event."""
    places = by_place(seen)
    for batch in seen.batches:
        for message in held_by(batch, places):
            if batch.action != _deserved(message.event):
                yield f"once: message {message.id} ({message.event or 'talk'}) got the verdict {batch.action}"


def _deserved(event: str) -> str:
    if not event or event in ("pull_request.opened", "task.result"):
        return "forward"
    if event in EVENTS:
        return "listen"
    return "spawn" if event.startswith("issue_comment.") else "drop"


def check_turn_order(seen: Evidence) -> Iterator[str]:
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


def check_transcripts(seen: Evidence) -> Iterator[str]:
    """Every forwarded message except commands is one user record of its lane, and so is all recorded talk.

    The records are in order, each in the turn of its own batch.
    """
    heard_in = spans(seen, "forward", "listen")
    turns = {turn.id: turn.batch for turn in seen.turns if turn.state == "committed"}
    heard = defaultdict(list)
    for record in seen.said:
        heard[record.ref].append(record)
    last: Counter[int] = Counter()
    for message in seen.messages:
        batch = heard_in.get((message.lane, message.number))
        records = heard.pop(f"message:{message.id}", [])
        if len(records) != (batch is not None and batch.state == "done" and not message.is_command):
            yield f"once: message {message.id} occurs {len(records)} times in transcripts"
        for record in records:
            if record.text != message.text or record.lane != message.lane:
                yield f"once: message {message.id} has another text in the transcript"
            if batch is not None and turns.get(record.turn) != batch.id and record.turn != batch.steered:
                yield f"once: message {message.id} is in the transcript of a turn that is not its own"
            if record.position <= last[message.lane]:
                yield f"order: message {message.id} stands before an earlier one in the transcript"
            last[message.lane] = record.position
    for ref in heard:
        yield f"once: a transcript holds {ref}, which is not stored"


def spans(seen: Evidence, *actions: str) -> dict[tuple[int, int], BatchRow]:
    """Batches with one of these verdicts, by every place they hold."""
    batches = [batch for batch in seen.batches if batch.action in actions]
    return {(batch.lane, number): batch for batch in batches for number in range(batch.first, batch.last + 1)}


def check_summaries(seen: Evidence) -> Iterator[str]:
    """Every record of a transcript is exactly once in the tail, in a summarised span or in a dropped span."""
    past: defaultdict[int, list[Stretch]] = defaultdict(list)
    for stretch in seen.stretches:
        past[stretch.lane].append(stretch)
    for head in seen.heads:
        reached = 0
        for number, stretch in enumerate(past[head.lane], 1):
            if (stretch.version, stretch.first) != (number, reached + 1) or stretch.last < reached:
                yield f"past: version {stretch.version} of lane {head.lane} takes {stretch.first} on, after {reached}"
            reached = max(reached, stretch.last)
        if (head.version, head.covered) != (len(past[head.lane]), reached):
            yield f"past: lane {head.lane} is covered up to {head.covered}, and its spans reach {reached}"
        if head.covered > head.told or head.records != head.told:
            yield f"past: lane {head.lane} has {head.records} records of {head.told}, and {head.covered} are covered"
        if head.follows == "tool":
            yield f"past: what lane {head.lane} shows begins with a result without its call"
        if not head.worded:
            yield f"past: the summary of lane {head.lane} says nothing"


_EACH = 1_024
_SLACK_MS = 50
"""Between what is written down of a hearing and of its end stand two clocks' roundings."""


def check_event_deliveries(seen: Evidence) -> Iterator[str]:
    """Every message and every committed turn was delivered, and each delivery ended exactly once."""
    last = {one.event: one.at for one in seen.heard}
    about = {one.about for one in seen.heard}
    for message in seen.messages:
        if str(message.id) not in about:
            yield f"told: no subscriber received message {message.id}"
    for turn in seen.turns:
        if turn.state == "committed" and turn.seq is not None and turn.seq * _EACH not in last:
            yield f"told: no subscriber received turn {turn.id}"
    for one in seen.deliveries:
        if one.state != "done":
            yield f"told: the delivery of event {one.event} is {one.state} in the end"
        elif one.event not in last:
            yield f"told: event {one.event} is done, and was not received"
        elif last[one.event] > one.ended + _SLACK_MS:
            yield f"told: event {one.event} was delivered again after it was done"
