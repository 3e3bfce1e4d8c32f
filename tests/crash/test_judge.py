"""The judge can fail: each promise is broken by hand in a copy of honest evidence, and the judge names it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.crash.cast import CAST

from keepsaid_testkit.crash.evidence import Ledgers, gather, number, numbers, subscriber_ledger_path
from keepsaid_testkit.crash.fork import Nursery
from keepsaid_testkit.crash.judge import violations
from keepsaid_testkit.crash.stage import Judgement, Sandbox, judged

_ACKNOWLEDGED = 80
_WITHIN_S = 180.0
"""Ends a stage that hangs, however busy the machine is."""

LEDGERS = ("load.jsonl", "replies.jsonl", "effects.jsonl")


@dataclass(frozen=True, slots=True)
class Case:
    """A folder of evidence: two ledgers and a home."""

    folder: Path

    @property
    def ledgers(self) -> Ledgers:
        """What was written outside."""
        return Ledgers(*(self.folder / name for name in LEDGERS))

    def judged(self) -> Judgement:
        """What the judge says of it, in a process of its own."""
        return judged(self.ledgers, self.folder / "home")

    def broken(self, violation: str) -> bool:
        """Whether the judge finds a violation; asked in this process, which is quicker."""
        found = violations(gather(self.ledgers, self.folder / "home"))
        assert any(violation in one for one in found), found
        return True

    def sql(self, *statements: str, store: str = "buffer.db") -> None:
        """Change what is stored; fails when a statement changes nothing."""
        db = apsw.Connection(str(self.folder / "home" / "data" / store))
        try:
            for statement in statements:
                before = db.total_changes()
                db.execute(statement)
                assert db.total_changes() > before, statement
        finally:
            db.close()

    def lines(self, ledger: Path) -> list[dict[str, Any]]:
        """What a ledger holds."""
        return [json.loads(line) for line in ledger.read_text("utf-8").splitlines()]

    def write(self, ledger: Path, lines: list[dict[str, Any]]) -> None:
        """Let a ledger hold other lines."""
        ledger.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


@pytest.fixture(scope="module")
def honest(forks: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a quiet run leaves behind: no kill, all promises kept."""
    folder = tmp_path_factory.mktemp("honest")
    with Sandbox(folder, replace(CAST, seed=3), forks) as stage:
        load, server = stage.load(), stage.fork()
        stage.until(lambda: stage.acknowledged.count() >= _ACKNOWLEDGED, server, _WITHIN_S, "messages were taken")
        stage.until(lambda: stage.number("verdicts") == 4, server, _WITHIN_S, "verdicts of every kind")
        stage.until(lambda: numbers(stage.home, "dead") not in (None, [[]]), server, _WITHIN_S, "a batch is refused")
        stage.until(lambda: bool(stage.number("summarised")), server, _WITHIN_S, "a lane is summarised")
        stage.until(lambda: bool(stage.number("filled")), server, _WITHIN_S, "a question is answered")
        stage.until(lambda: bool(stage.number("commanded")), server, _WITHIN_S, "a command is carried out")
        stage.until(lambda: stage.ledgers.effects.stat().st_size > 0, server, _WITHIN_S, "a tool is used")
        stage.stop(load)
        stage.drain(server, _WITHIN_S)
        stage.stop(server)
    return folder


@pytest.fixture
def case(honest: Path, tmp_path: Path) -> Case:
    """A copy to tamper with."""
    for part in (*LEDGERS, f"{LEDGERS[-1]}.heard"):
        shutil.copy(honest / part, tmp_path)
    shutil.copytree(honest / "home" / "data", tmp_path / "home" / "data")
    return Case(tmp_path)


def test_honest_evidence_is_accepted(honest: Path) -> None:
    judgement = Case(honest).judged()
    assert (judgement.exit_code, judgement.violations) == (0, [])
    assert judgement.counts["replies_arrived"] > 5
    assert judgement.counts["forged_refused"] > 0


_FORWARDED = "(SELECT id FROM batch WHERE action = 'forward' AND state = 'done' ORDER BY id LIMIT 1)"
_DEAD = "(SELECT id FROM batch WHERE state = 'dead' LIMIT 1)"
_DROPPED = "(SELECT id FROM batch WHERE action = 'drop' LIMIT 1)"
_SPAWNED = "(SELECT id FROM batch WHERE action = 'spawn' LIMIT 1)"
_TALK = "(SELECT id FROM message WHERE external_id LIKE 'said-%' ORDER BY id LIMIT 1)"
_URL_REPLY = "(SELECT id FROM reply WHERE url IS NOT NULL AND notice = 0 AND state = 'sent' LIMIT 1)"
_LONG_LANE = "(SELECT id FROM lane WHERE conversation LIKE 'talk:%' ORDER BY head DESC LIMIT 1)"
_SAME_KEY = f"""
    UPDATE message SET external_id = (SELECT external_id FROM message WHERE id = {_TALK})
    WHERE id = (SELECT id FROM message WHERE external_id LIKE 'said-%' AND id <> {_TALK} LIMIT 1)
"""
_SECOND_TURN = f"""
    INSERT INTO turn (id, lane_id, batch_id, state, started_at)
    SELECT 7, lane_id, batch_id, 'committed', 0 FROM turn WHERE batch_id = {_FORWARDED}
"""
_HEARD_AGAIN = """
    INSERT INTO transcript (lane_id, position, session_id, turn_id, role, text, ref, created_at)
    SELECT lane_id, position + 1000, session_id, turn_id, role, text, ref, 0 FROM transcript WHERE role = 'user' LIMIT 1
"""
_SWAP_COMMITS = f"""
    UPDATE journal SET payload = json_set(payload, '$.turn', (
      SELECT turn.id FROM turn WHERE turn.lane_id = {_LONG_LANE} AND turn.id <> journal.payload ->> 'turn' LIMIT 1
    )) WHERE payload ->> 'turn' IN (SELECT id FROM turn WHERE lane_id = {_LONG_LANE} ORDER BY id LIMIT 2)
"""


@pytest.mark.parametrize(
    ("statement", "violation"),
    [
        (f"DELETE FROM message WHERE id = {_TALK}", "is not stored"),
        (f"UPDATE message SET number = number + 500 WHERE id = {_TALK}", "has a gap"),
        (f"UPDATE message SET text = 'other' WHERE id = {_TALK}", "is stored with another text"),
        (f"UPDATE message SET external_id = 'x' WHERE id = {_TALK}", "x is stored and was never acknowledged"),
        ("UPDATE lane SET key = 'else' || id WHERE channel = 'http'", "was acknowledged at"),
        (_SAME_KEY, "is stored 2 times"),
        (f"UPDATE batch SET state = 'dead' WHERE id = {_FORWARDED}", "ends dead"),
        (f"UPDATE batch SET state = 'review' WHERE id = {_FORWARDED}", "ends review"),
        (f"UPDATE batch SET state = 'queued' WHERE id = {_FORWARDED}", "ends queued"),
        (f"DELETE FROM batch WHERE id = {_DROPPED}", "belongs to 0 batches"),
        (f"UPDATE batch SET last = last + 500 WHERE id = {_DROPPED}", "a batch holds number"),
        ("UPDATE lane SET batched = batched - 1 WHERE channel = 'http'", "is batched up to"),
        (f"UPDATE batch SET reason = '' WHERE id = {_DROPPED}", "is dropped without a reason"),
        (f"UPDATE batch SET task_id = NULL WHERE id = {_SPAWNED}", "(spawn) has 0 committed turns, task None"),
        (f"DELETE FROM task WHERE id = (SELECT task_id FROM batch WHERE id = {_SPAWNED})", "does not exist"),
        (f"UPDATE batch SET action = 'drop' WHERE id = {_FORWARDED}", "got the verdict drop"),
        (f"DELETE FROM turn WHERE batch_id = {_FORWARDED}", "(forward) has 0 committed turns"),
        (_SECOND_TURN, "(forward) has 2 committed turns"),
        (f"UPDATE turn SET state = 'open' WHERE batch_id = {_FORWARDED}", "ends open"),
        (_SWAP_COMMITS, "was answered after"),
        (f"DELETE FROM transcript WHERE ref = 'message:' || {_TALK}", "occurs 0 times"),
        (_HEARD_AGAIN, "occurs 2 times"),
        ("UPDATE transcript SET text = 'other' WHERE role = 'user'", "has another text in the transcript"),
        ("UPDATE transcript SET turn_id = 7 WHERE role = 'user'", "is in the transcript of a turn that is not its own"),
        ("UPDATE transcript SET position = -position WHERE role = 'user'", "stands before an earlier one"),
        (f"DELETE FROM reply WHERE batch_id = {_FORWARDED}", "has 0 replies"),
        (f"UPDATE reply SET state = 'unknown' WHERE id = {_URL_REPLY}", "ends unknown"),
        (f"UPDATE reply SET notice = 1 WHERE id = {_URL_REPLY}", "is a notice"),
        (f"DELETE FROM reply WHERE batch_id = {_DEAD}", "there is no notice about batch"),
        (f"UPDATE reply SET text = 'what?' WHERE id = {_URL_REPLY}", "does not answer all messages"),
        ("UPDATE lane_summary SET first = first + 1", "takes"),
        ("DELETE FROM lane_summary", "and its spans reach"),
        ("UPDATE lane_summary SET text = ' '", "says nothing"),
        ("UPDATE lane_context SET summarised_until = summarised_until + 1", "is covered up to"),
        ("DELETE FROM transcript WHERE role = 'assistant'", "records of"),
    ],
)  # fmt: skip
def test_what_is_stored_wrongly_is_found(case: Case, statement: str, violation: str) -> None:
    case.sql(statement)
    assert case.broken(violation)


_FILLED = "(SELECT id FROM slot WHERE state = 'filled' LIMIT 1)"
_ELSEWHERE = f"SELECT id FROM message WHERE lane_id <> (SELECT lane_id FROM slot WHERE id = {_FILLED}) LIMIT 1"
_SETTLED = "(SELECT id FROM turn WHERE state = 'committed' AND id NOT IN (SELECT id FROM slot) LIMIT 1)"
_OBEYED_AGAIN = """
    INSERT INTO journal (topic, payload, correlation_id, created_at)
    SELECT topic, payload, correlation_id, 0 FROM journal WHERE topic = 'command.executed' LIMIT 1
"""
_COMMAND_HEARD = """
    UPDATE transcript SET ref = 'message:' || (SELECT id FROM message WHERE text LIKE '/%' AND event = '' LIMIT 1)
    WHERE (lane_id, position) = (SELECT lane_id, position FROM transcript WHERE role = 'user' LIMIT 1)
"""


@pytest.mark.parametrize(
    ("statement", "violation"),
    [
        ("DELETE FROM journal WHERE topic = 'command.executed'", "and carried out 0 times"),
        (_OBEYED_AGAIN, "and carried out 2 times"),
        (_COMMAND_HEARD, "occurs 1 times in transcripts"),
        (f"DELETE FROM slot WHERE id = {_FILLED}", "and asked nothing"),
        (f"UPDATE slot SET id = {_SETTLED} WHERE id = {_FILLED}", "was to ask [], and asked Which number?"),
        (f"UPDATE slot SET id = 7 WHERE id = {_FILLED}", "something is asked by turn 7, which is not committed"),
        (f"UPDATE slot SET question = 'which?' WHERE id = {_FILLED}", "and asked which?"),
        (f"UPDATE slot SET state = 'cleared' WHERE id = {_FILLED}", "and that is cleared"),
        (f"UPDATE slot SET value = 'x' WHERE id = {_FILLED}", "is taken for the answer x"),
        (f"UPDATE slot SET opened_at = ended_at + 9999 WHERE id = {_FILLED}", "came too early or too late"),
        (f"UPDATE slot SET filled_by = 'message:' || ({_ELSEWHERE}) WHERE id = {_FILLED}", "who was not asked there"),
        ("DROP INDEX slot_open; UPDATE slot SET state = 'open', person = 'x', lane_id = 1", "things at once in lane 1"),
    ],
)  # fmt: skip
def test_a_command_or_a_question_gone_wrong_is_found(case: Case, statement: str, violation: str) -> None:
    case.sql(statement)
    assert case.broken(violation)


@pytest.mark.parametrize(
    ("statement", "violation"),
    [
        ("DELETE FROM memory_source WHERE kind = 'message' AND n = 0", "is 0 episodes"),
        ("UPDATE memory_source SET ref = '7' WHERE kind = 'message'", "an episode of message 7, which is not stored"),
        ("UPDATE memory SET kind = 'fact' WHERE key LIKE 'reply:%'", "the reply of turn"),
    ],
)
def test_what_is_remembered_wrongly_is_found(case: Case, statement: str, violation: str) -> None:
    case.sql(statement, store="memory.db")
    assert case.broken(violation)


Lines = list[dict[str, Any]]


def _unheard(lines: Lines) -> None:
    del lines[0]


def _heard_late(lines: Lines) -> None:
    lines.append({**lines[0], "at": lines[-1]["at"] + 999_999})


@pytest.mark.parametrize(
    ("tamper", "violation"),
    [(_unheard, "and was not received"), (_heard_late, "was delivered again after it was done")],
)
def test_what_was_heard_wrongly_is_found(case: Case, tamper: Callable[[Lines], None], violation: str) -> None:
    ledger = subscriber_ledger_path(case.ledgers.effects)
    lines = case.lines(ledger)
    tamper(lines)
    case.write(ledger, lines)
    assert case.broken(violation)


def test_who_was_not_told_is_found(case: Case) -> None:
    case.sql("UPDATE delivery SET state = 'pending' WHERE subscriber = 'ledger'")
    assert case.broken("is pending in the end")
    case.write(subscriber_ledger_path(case.ledgers.effects), [])
    assert case.broken("no subscriber received message")
    assert case.broken("no subscriber received turn")


def _lost(lines: Lines) -> None:
    lines[:] = [line for line in lines if line["headers"]["idempotency-key"] != lines[0]["headers"]["idempotency-key"]]


def _unlabelled(lines: Lines) -> None:
    lines.append({**lines[0], "json": {**lines[0]["json"], "possible_duplicate": False}})


def _backwards(lines: Lines) -> None:
    lines.reverse()


def _invented(lines: Lines) -> None:
    lines.append({**lines[0], "headers": {"idempotency-key": "keepsaid-7"}})


def _changed(lines: Lines) -> None:
    lines[0]["json"]["text"] = "something else"


@pytest.mark.parametrize(
    ("tamper", "violation"),
    [
        (_lost, "never arrived"),
        (_unlabelled, "arrived again without its label"),
        (_backwards, "arrived after a later one"),
        (_invented, "that is not in the outbox: 7"),
        (_changed, "arrived otherwise than it was written"),
    ],
)
def test_what_arrived_wrongly_is_found(case: Case, tamper: Callable[[Lines], None], violation: str) -> None:
    lines = case.lines(case.ledgers.replies)
    tamper(lines)
    case.write(case.ledgers.replies, lines)
    assert case.broken(violation)


def _first(lines: Lines, what: str, kind: str) -> dict[str, Any]:
    return next(line for line in lines if (line["what"], line["kind"]) == (what, kind))


def _other_number(lines: Lines) -> None:
    _first(lines, "taken", "talk")["number"] += 1


def _other_id(lines: Lines) -> None:
    talk = [line for line in lines if (line["what"], line["kind"]) == ("taken", "talk")]
    talk[0]["id"] = talk[-1]["id"]


def _overtaken(lines: Lines) -> None:
    talk = [line for line in lines if (line["what"], line["kind"]) == ("taken", "talk")]
    first = next(line for line in reversed(talk) if line["number"] == 1)
    lines.insert(0, {**first, "key": "earlier", "number": 99})
    first["after"] = 1


def _taken_though_forged(lines: Lines) -> None:
    _first(lines, "taken", "hook")["forged"] = True


def _refused_though_true(lines: Lines) -> None:
    _first(lines, "refused", "hook")["forged"] = False


def _failed(lines: Lines) -> None:
    _first(lines, "refused", "hook")["what"] = "strange"


@pytest.mark.parametrize(
    ("tamper", "violation"),
    [
        (_other_number, "was acknowledged at"),
        (_other_id, "was acknowledged with the id of"),
        (_overtaken, "was sent after number 99 was acknowledged"),
        (_taken_though_forged, "was taken"),
        (_refused_though_true, "is true and was refused"),
        (_failed, "was answered with 401"),
    ],
)
def test_what_was_told_wrongly_is_found(case: Case, tamper: Callable[[Lines], None], violation: str) -> None:
    lines = case.lines(case.ledgers.load)
    tamper(lines)
    case.write(case.ledgers.load, lines)
    assert case.broken(violation)


def test_a_damaged_file_is_found(case: Case) -> None:
    db = apsw.Connection(str(case.folder / "home" / "data" / "buffer.db"))
    db.pragma("writable_schema", True)
    db.execute("UPDATE sqlite_schema SET sql = replace(sql, 'IS NOT NULL', 'IS NULL') WHERE name = 'message_provider'")
    db.close()
    assert case.broken("sound: buffer.db: ")


def test_a_violation_is_an_exit_code_and_a_line(case: Case) -> None:
    case.sql(f"DELETE FROM message WHERE id = {_TALK}")
    judgement = case.judged()
    assert judgement.exit_code == 1
    assert any(line.startswith("kept: ") for line in judgement.violations)


def test_ids_are_read_as_they_are_written() -> None:
    assert (number(""), number("msg_0000000000010"), number("rep_7zzzzzzzzzzzz")) == (0, 32, 2**63 - 1)
