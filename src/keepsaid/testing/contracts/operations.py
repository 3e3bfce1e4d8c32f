"""The contract of the operational store: `Operations`, `BufferView`, `LaneView` and `OutboxView` in one object.

Subclass every class of `CONTRACTS` in a test module with a fixture `store` that gives a new, empty store:

    class TestIntake(IntakeContract): ...
"""

from __future__ import annotations

from keepsaid.testing.contracts.failures import FailContract, FenceContract, RequeueContract
from keepsaid.testing.contracts.intake import DueContract, IntakeContract, ReplyLaneContract, WindowContract
from keepsaid.testing.contracts.leases import ClaimContract, LeaseContract, SuspectContract
from keepsaid.testing.contracts.outbox import PullingContract, SettlingContract, TakingContract
from keepsaid.testing.contracts.road import Store
from keepsaid.testing.contracts.routing import DispatchContract, MergingContract, SpawnContract
from keepsaid.testing.contracts.stories import PointsContract, StoriesContract
from keepsaid.testing.contracts.turns import EpisodeWorkContract, StepContract, TranscriptContract, TurnContract

CONTRACTS: tuple[type, ...] = (
    IntakeContract,
    ReplyLaneContract,
    WindowContract,
    DueContract,
    DispatchContract,
    SpawnContract,
    MergingContract,
    ClaimContract,
    LeaseContract,
    SuspectContract,
    FenceContract,
    FailContract,
    RequeueContract,
    StepContract,
    TurnContract,
    TranscriptContract,
    EpisodeWorkContract,
    TakingContract,
    SettlingContract,
    PullingContract,
    StoriesContract,
    PointsContract,
)
"""Every class of the contract."""

__all__ = [
    "CONTRACTS",
    "ClaimContract",
    "DispatchContract",
    "DueContract",
    "EpisodeWorkContract",
    "FailContract",
    "FenceContract",
    "IntakeContract",
    "LeaseContract",
    "MergingContract",
    "PointsContract",
    "PullingContract",
    "ReplyLaneContract",
    "RequeueContract",
    "SettlingContract",
    "SpawnContract",
    "StepContract",
    "Store",
    "StoriesContract",
    "SuspectContract",
    "TakingContract",
    "TranscriptContract",
    "TurnContract",
    "WindowContract",
]
