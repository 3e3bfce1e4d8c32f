"""Promises of compaction: old history or new summary, never neither or both (spec: reliability, K8)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from keepsaid_testkit.crash.evidence import Evidence, Stretch


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
