"""The contract of the operational store: `Operations`, `BufferView`, `LaneView` and `OutboxView` in one object.

Subclass every class of `CONTRACTS`, `COLLECTION` and `TASKS` in test modules with a fixture `store` that gives a new,
empty store:

    class TestIntake(IntakeContract): ...
"""

from __future__ import annotations

from keepsaid.testing.contracts.approvals import ApprovalContract
from keepsaid.testing.contracts.branches import BranchContract
from keepsaid.testing.contracts.busy import InterruptContract, ParkedContract, SteerContract
from keepsaid.testing.contracts.collection import (
    ClaimingContract,
    CollectedContract,
    FailingContract,
    FindingContract,
)
from keepsaid.testing.contracts.context import CopyContract, CutContract, SummaryContract, TailContract
from keepsaid.testing.contracts.crashes import SecondChanceContract, SplitContract, TrialContract
from keepsaid.testing.contracts.dropping import DropContract
from keepsaid.testing.contracts.failures import FailContract, FenceContract, OutageContract, RequeueContract
from keepsaid.testing.contracts.forgetting import ForgettingContract, NamesContract, ReachContract
from keepsaid.testing.contracts.intake import DueContract, IntakeContract, ReplyLaneContract, WindowContract
from keepsaid.testing.contracts.journal import DeliveryContract, JournalViewContract, SubscribeContract
from keepsaid.testing.contracts.lanes import LaneListContract, LaneRulesContract, StrandContract
from keepsaid.testing.contracts.leases import ClaimContract, LeaseContract, SuspectContract
from keepsaid.testing.contracts.marks import (
    FindingPruningContract,
    ForgottenFindingContract,
    InvalidateContract,
    PassageContract,
)
from keepsaid.testing.contracts.news import NewsContract
from keepsaid.testing.contracts.notes import NoteContract
from keepsaid.testing.contracts.outbox import DeadContract, PullingContract, SettlingContract, TakingContract
from keepsaid.testing.contracts.outputs import OutputContract
from keepsaid.testing.contracts.pruning import BacklogContract, PrunedContract, PruningContract
from keepsaid.testing.contracts.receipts import FeedbackContract, UseContract
from keepsaid.testing.contracts.relay import RelayContract
from keepsaid.testing.contracts.reminders import RemindersContract
from keepsaid.testing.contracts.road import ContractStore
from keepsaid.testing.contracts.routing import DispatchContract, MergingContract, SpawnContract
from keepsaid.testing.contracts.schedules import RunContract, ScheduleContract
from keepsaid.testing.contracts.sessions import MarkContract, RestContract, SessionContract
from keepsaid.testing.contracts.slots import SlotContract, TargetContract
from keepsaid.testing.contracts.staging import StagingContract
from keepsaid.testing.contracts.standing import CalibrationContract, PersonalityContract
from keepsaid.testing.contracts.stories import PointsContract, StoriesContract
from keepsaid.testing.contracts.tasks import TaskContract, TaskCrashContract, TaskGraphContract, TaskLifeContract
from keepsaid.testing.contracts.trusts import TrustContract
from keepsaid.testing.contracts.turns import EpisodeWorkContract, StepContract, TranscriptContract, TurnContract

CONTRACTS: tuple[type, ...] = (
    IntakeContract,
    ReplyLaneContract,
    LaneRulesContract,
    StrandContract,
    LaneListContract,
    WindowContract,
    DueContract,
    DispatchContract,
    SpawnContract,
    MergingContract,
    ClaimContract,
    LeaseContract,
    SuspectContract,
    TrialContract,
    SplitContract,
    SecondChanceContract,
    FenceContract,
    FailContract,
    OutageContract,
    RequeueContract,
    DropContract,
    InterruptContract,
    SteerContract,
    ParkedContract,
    StepContract,
    TurnContract,
    TranscriptContract,
    TailContract,
    RemindersContract,
    SummaryContract,
    CopyContract,
    CutContract,
    EpisodeWorkContract,
    SessionContract,
    RestContract,
    MarkContract,
    SlotContract,
    TargetContract,
    PersonalityContract,
    CalibrationContract,
    FeedbackContract,
    StagingContract,
    UseContract,
    TakingContract,
    SettlingContract,
    DeadContract,
    PullingContract,
    StoriesContract,
    PointsContract,
    PruningContract,
    PrunedContract,
    BacklogContract,
    ForgettingContract,
    NamesContract,
    ReachContract,
    SubscribeContract,
    DeliveryContract,
    JournalViewContract,
    NewsContract,
    TrustContract,
)
"""Every class of the contract but those of collection, of tasks and of schedules."""

COLLECTION: tuple[type, ...] = (
    ClaimingContract,
    CollectedContract,
    FindingContract,
    FailingContract,
    InvalidateContract,
    PassageContract,
)
"""Those of collection."""

TASKS: tuple[type, ...] = (
    TaskContract,
    TaskGraphContract,
    TaskCrashContract,
    TaskLifeContract,
    BranchContract,
    RelayContract,
    ApprovalContract,
)
"""Those of tasks."""

SCHEDULES: tuple[type, ...] = (ScheduleContract, RunContract, OutputContract)
"""Those of schedules."""

__all__ = [
    "COLLECTION",
    "CONTRACTS",
    "SCHEDULES",
    "TASKS",
    "ApprovalContract",
    "BacklogContract",
    "BranchContract",
    "CalibrationContract",
    "ClaimContract",
    "ClaimingContract",
    "CollectedContract",
    "ContractStore",
    "CopyContract",
    "CutContract",
    "DeadContract",
    "DeliveryContract",
    "DispatchContract",
    "DropContract",
    "DueContract",
    "EpisodeWorkContract",
    "FailContract",
    "FailingContract",
    "FeedbackContract",
    "FenceContract",
    "FindingContract",
    "FindingPruningContract",
    "ForgettingContract",
    "ForgottenFindingContract",
    "IntakeContract",
    "InterruptContract",
    "InvalidateContract",
    "JournalViewContract",
    "LaneListContract",
    "LaneRulesContract",
    "LeaseContract",
    "MarkContract",
    "MergingContract",
    "NamesContract",
    "NewsContract",
    "NoteContract",
    "OutageContract",
    "OutputContract",
    "ParkedContract",
    "PassageContract",
    "PersonalityContract",
    "PointsContract",
    "PrunedContract",
    "PruningContract",
    "PullingContract",
    "ReachContract",
    "RelayContract",
    "RemindersContract",
    "ReplyLaneContract",
    "RequeueContract",
    "RestContract",
    "RunContract",
    "ScheduleContract",
    "SecondChanceContract",
    "SessionContract",
    "SettlingContract",
    "SlotContract",
    "SpawnContract",
    "SplitContract",
    "StagingContract",
    "SteerContract",
    "StepContract",
    "StoriesContract",
    "StrandContract",
    "SubscribeContract",
    "SummaryContract",
    "SuspectContract",
    "TailContract",
    "TakingContract",
    "TargetContract",
    "TaskContract",
    "TaskCrashContract",
    "TaskGraphContract",
    "TaskLifeContract",
    "TranscriptContract",
    "TrialContract",
    "TrustContract",
    "TurnContract",
    "UseContract",
    "WindowContract",
]
