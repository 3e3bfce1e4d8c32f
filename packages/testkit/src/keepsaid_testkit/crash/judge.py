"""The judge: says what of the promises was broken, from evidence alone; it shares no code with the program.

`python -m keepsaid_testkit.crash.judge --load LEDGER --replies LEDGER --effects LEDGER --home DIR` prints
`{"violations": [...], "counts": {...}}` and exits 1 when there is a violation. Each begins with the promise it breaks.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from keepsaid_testkit.crash.evidence import Evidence, Ledgers, gather
from keepsaid_testkit.crash.outcomes import (
    check_deliveries,
    check_episodes,
    check_notices,
    check_replies,
    check_tool_effects,
)
from keepsaid_testkit.crash.promises import (
    check_batches,
    check_databases,
    check_event_deliveries,
    check_lane_numbers,
    check_no_extra_messages,
    check_send_order,
    check_settlements,
    check_stored_messages,
    check_summaries,
    check_transcripts,
    check_turn_order,
    check_verdicts,
)
from keepsaid_testkit.crash.strands import check_answers, check_commands, check_questions
from keepsaid_testkit.crash.working import check_task_ends

Check = Callable[[Evidence], Iterator[str]]
_SHOWN_MAX = 200

CHECKS: Sequence[Check] = (
    check_databases,
    check_stored_messages,
    check_no_extra_messages,
    check_lane_numbers,
    check_send_order,
    check_batches,
    check_settlements,
    check_verdicts,
    check_turn_order,
    check_transcripts,
    check_replies,
    check_notices,
    check_deliveries,
    check_tool_effects,
    check_episodes,
    check_summaries,
    check_commands,
    check_questions,
    check_answers,
    check_event_deliveries,
    check_task_ends,
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
        "effects": len(seen.effects),
        "effects_again": len(seen.effects) - len(set(seen.effects)),
        "tasks": len(seen.tasks),
        "commands": len(seen.obeyed),
        **dict(sorted(Counter(f"questions_{slot.state}" for slot in seen.slots).items())),
        "replies": len(seen.replies),
        "replies_with_url": sum(reply.url is not None for reply in seen.replies),
        "replies_arrived": len(copies),
        "replies_arrived_again": sum(times - 1 for times in copies.values()),
        "replies_labelled": sum(post.labelled for post in seen.posts),
        "episodes": len(seen.episodes),
        "summaries_and_cuts": len(seen.stretches),
        "events_heard": len({one.event for one in seen.heard}),
        "events_heard_again": len(seen.heard) - len({one.event for one in seen.heard}),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge; exits 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m keepsaid_testkit.crash.judge", description=main.__doc__)
    parser.add_argument("--load", type=Path, required=True, help="the ledger of the load")
    parser.add_argument("--replies", type=Path, required=True, help="the ledger of the receiver")
    parser.add_argument("--home", type=Path, required=True, help="KEEPSAID_HOME of the stopped server")
    parser.add_argument("--effects", type=Path, required=True, help="the ledger of the tools")
    options = parser.parse_args(arguments)
    seen = gather(Ledgers(options.load, options.replies, options.effects), options.home)
    found = violations(seen)
    sys.stdout.write(json.dumps({"violations": found[:_SHOWN_MAX], "counts": counts(seen)}, indent=1) + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
