"""Metrics: the name, meaning, unit and labels of everything that `/metrics` prints, and values of one scrape.

Names and labels are stable. Units are base units: seconds, bytes, dollars. No label names a sender, a conversation or a
text; the values of every label are bounded (`Label.most`), so the number of series is too (`series_max`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from math import prod

from keepsaid.domain import reply, route
from keepsaid.domain.memory import Kind
from keepsaid.values import frozen

OTHER = "other"
"""The value of a label for everything beyond its bound."""

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds of the buckets of every histogram, seconds; above the last is one more bucket."""

LABEL_CHARS_MAX = 64
"""Characters of a label's value; a longer one is cut."""


class MetricKind(StrEnum):
    """How a value is read: a counter only rises, a gauge goes both ways, a histogram counts durations."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Reach(StrEnum):
    """Whose value it is: `store` is read from the store by every process, `process` counts what one process did."""

    STORE = "store"
    PROCESS = "process"


@frozen
class Label:
    """A label, with its meaning and every value it can have; without `values`, the first `most` that come up."""

    name: str
    meaning: str
    values: tuple[str, ...] = ()
    most: int = 0

    @property
    def count_max(self) -> int:
        """How many values it can have, `other` counted."""
        return (len(self.values) or self.most) + 1


@frozen
class Metric:
    """One metric. `lines_max` bounds the combinations of labels that come together; 0 for their product."""

    name: str
    kind: MetricKind
    meaning: str
    labels: tuple[Label, ...] = ()
    reach: Reach = Reach.PROCESS
    lines_max: int = 0

    @property
    def combinations_max(self) -> int:
        """How many combinations of label values it can have."""
        return self.lines_max or prod(one.count_max for one in self.labels)

    @property
    def series_max(self) -> int:
        """How many series it can have: a histogram has one a bucket, the unbounded one, its sum and its count."""
        each = len(BUCKETS) + 3 if self.kind is MetricKind.HISTOGRAM else 1
        return each * self.combinations_max


@frozen
class Distribution:
    """Durations counted by bucket, those above the last bound at the end; and their sum in seconds."""

    counts: tuple[int, ...]
    total_s: float


Values = Mapping[tuple[str, ...], float | Distribution]
"""The values of one metric by its labels, in the order of `Metric.labels`."""


@frozen
class Reading:
    """One scrape: the values of each metric that has any, by name."""

    values: Mapping[str, Values] = field(default_factory=dict)

    def families(self) -> Iterator[tuple[Metric, Values]]:
        """Every metric of the catalogue that has values, in its order."""
        for name, metric in METRICS.items():
            if name in self.values:
                yield metric, self.values[name]


CHANNEL = Label("channel", "the channel", most=20)
ACCOUNT = Label("account", "the account of the agent on the channel", most=20)
MODEL = Label("model", "the model, as `models.chat` names it", most=8)
LEG = Label("leg", "the search leg", ("text", "vector", "fact", "graph"))
LINES_MAX = 32
"""Lines of channels that are listed; more share the labels `other`."""

BUFFERED = ("unrouted", "queued", "leased", "review", "dead")
"""Where a message without an answer is; `review` and `dead` wait for a person."""

OUTBOX = ("pending", "sending", "unknown", "sent", "dead", "not_deliverable")
"""The states of replies."""

TURNS_ENDED = ("committed", "abandoned")
"""The states in which turns end."""

_BUFFERED = Label("state", "where the messages are", BUFFERED)
_ROUTED = Label("outcome", "what the rule asked for", tuple(map(str, route.Action)))
_OUTBOX = Label("state", "the state of the replies", OUTBOX)
_SENT = Label("outcome", "the result of the attempt", tuple(map(str, reply.Delivered)))
_TURNS = Label("outcome", "how the turn ended", TURNS_ENDED)
_MEMORY_TYPES = Label("type", "the kind of the memory", tuple(map(str, Kind)))
_MEMORY_STATES = Label("state", "`active` is what recall can find", ("active",))
_KEPT = Label("result", "whether the commit was kept", ("kept", "refused"))
_RESULTS = ("injected", "nothing", "skipped", "degraded")
_INJECTED = Label("result", "what the turn got; `degraded`: a part of recall was missing", _RESULTS)
_ITEMS = Label("result", "whether the memory was shown to the model", ("chosen", "left_out"))
_TOKENS = Label("kind", "what the tokens were", ("input", "output"))
_LEASES = Label("state", "`expired`: held by a process that did not renew it in time", ("held", "expired"))
_STORES = Label("store", "the store that was written", ("operations", "memory"))
_VERSION = Label("version", "the version of keepsaid", most=1)

_C, _G, _H = MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.HISTOGRAM
_S = Reach.STORE

_CATALOGUE = (
    Metric("keepsaid_build_info", _G, "Always 1; the label has the version.", (_VERSION,)),
    Metric("keepsaid_buffer_messages", _G, "Messages without an answer.", (CHANNEL, _BUFFERED), _S),
    Metric(
        "keepsaid_buffer_oldest_seconds",
        _G,
        "Age of the oldest message that waits for a turn; 0 when none waits.",
        (CHANNEL,),
        _S,
    ),
    Metric("keepsaid_messages_received_total", _C, "Messages that were stored.", (CHANNEL,), _S),
    Metric("keepsaid_batches_routed_total", _C, "Batches that a rule judged.", (_ROUTED,)),
    Metric(
        "keepsaid_route_wait_seconds",
        _H,
        "From the arrival of a batch's first message to the rule's verdict, the window included.",
    ),
    Metric("keepsaid_leases", _G, "Leases of batches; at most 100 expired ones are counted.", (_LEASES,), _S),
    Metric("keepsaid_turns_total", _C, "Turns that ended.", (_TURNS,), _S),
    Metric("keepsaid_turn_seconds", _H, "One attempt of a turn, from its prompt to its commit."),
    Metric("keepsaid_reply_wait_seconds", _H, "From the arrival of a batch's first message to the commit of its turn."),
    Metric("keepsaid_recall_seconds", _H, "One search leg of the recall before a turn.", (LEG,)),
    Metric("keepsaid_inject_seconds", _H, "Finding the memories for a turn, all legs and gates together."),
    Metric("keepsaid_injected_total", _C, "Turns for which memories were searched.", (_INJECTED,)),
    Metric("keepsaid_inject_items_total", _C, "Memories that were considered for a turn.", (_ITEMS,)),
    Metric("keepsaid_memories", _G, "Memories.", (_MEMORY_TYPES, _MEMORY_STATES), _S),
    Metric("keepsaid_memory_writes_total", _C, "Commits to the memory store.", (_KEPT,)),
    Metric("keepsaid_model_tokens_total", _C, "Tokens of the model's calls, of turns and of upkeep.", (MODEL, _TOKENS)),
    Metric("keepsaid_model_cost_dollars_total", _C, "Price of these calls, where it is known.", (MODEL,)),
    Metric(
        "keepsaid_outbox_messages", _G, "Replies that are kept, settled ones until they are pruned.", (_OUTBOX,), _S
    ),
    Metric(
        "keepsaid_replies_total", _C, "Attempts to send a reply; not of those that clients fetch.", (CHANNEL, _SENT)
    ),
    Metric(
        "keepsaid_delivery_seconds",
        _H,
        "From the commit of a reply to its confirmed delivery; not of those that clients fetch.",
    ),
    Metric("keepsaid_commit_seconds", _H, "One commit, from its request until it is on disk.", (_STORES,)),
    Metric("keepsaid_wal_bytes", _G, "Size of the write-ahead log; absent on PostgreSQL.", (_STORES,), _S),
    Metric("keepsaid_line_up", _G, "Whether a channel that listens is connected.", (CHANNEL, ACCOUNT), _S, LINES_MAX),
    Metric(
        "keepsaid_line_last_ok_timestamp_seconds",
        _G,
        "When it was last connected, seconds since 1970; absent if it never was.",
        (CHANNEL, ACCOUNT),
        _S,
        LINES_MAX,
    ),
    Metric(
        "keepsaid_lost_total",
        _C,
        "Messages that were acknowledged, and that no lane accounts for. Anything but 0 is a fault of keepsaid.",
        (),
        _S,
    ),
)

METRICS: Mapping[str, Metric] = {one.name: one for one in _CATALOGUE}
"""The catalogue, by name."""
