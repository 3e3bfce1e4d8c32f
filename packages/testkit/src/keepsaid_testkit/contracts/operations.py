"""The contract of the operational store: `Operations`, `BufferView`, `LaneView` and `OutboxView` in one object.

Subclass every class of `CONTRACTS`, `COLLECTION` and `TASKS` in test modules with a fixture `store` that gives a new,
empty store:

    class TestIntake(IntakeContract): ...
"""

from __future__ import annotations

from keepsaid_testkit.contracts.approvals import ApprovalContract
from keepsaid_testkit.contracts.branches import BranchContract
from keepsaid_testkit.contracts.busy import InterruptContract, ParkedContract, SteerContract
from keepsaid_testkit.contracts.collection import (
    ClaimingContract,
    CollectedContract,
    FailingContract,
    FindingContract,
)
from keepsaid_testkit.contracts.context import CopyContract, CutContract, SummaryContract, TailContract
from keepsaid_testkit.contracts.crashes import SecondChanceContract, SplitContract, TrialContract
from keepsaid_testkit.contracts.cursors import CursorContract
from keepsaid_testkit.contracts.dropping import DropContract
from keepsaid_testkit.contracts.failures import FailContract, FenceContract, OutageContract, RequeueContract
from keepsaid_testkit.contracts.files import BroughtFileContract, FileContract
from keepsaid_testkit.contracts.forgetting import ForgettingContract, NamesContract, ReachContract
from keepsaid_testkit.contracts.intake import DueContract, IntakeContract, ReplyLaneContract, WindowContract
from keepsaid_testkit.contracts.journal import DeliveryContract, JournalViewContract, SubscribeContract
from keepsaid_testkit.contracts.lanes import LaneListContract, LaneRulesContract, StrandContract
from keepsaid_testkit.contracts.leases import ClaimContract, LeaseContract, SuspectContract
from keepsaid_testkit.contracts.marks import (
    FindingPruningContract,
    ForgottenFindingContract,
    InvalidateContract,
    PassageContract,
)
from keepsaid_testkit.contracts.news import NewsContract
from keepsaid_testkit.contracts.notes import NoteContract, StagingContract
from keepsaid_testkit.contracts.outbox import DeadContract, PullingContract, SettlingContract, TakingContract
from keepsaid_testkit.contracts.outputs import OutputContract
from keepsaid_testkit.contracts.pairing import PairingContract
from keepsaid_testkit.contracts.processes import ProcessesContract
from keepsaid_testkit.contracts.pruning import BacklogContract, PrunedContract, PruningContract
from keepsaid_testkit.contracts.receipts import FeedbackContract, UseContract
from keepsaid_testkit.contracts.recorded_talk import RecordedTalkContract
from keepsaid_testkit.contracts.relay import RelayContract
from keepsaid_testkit.contracts.reminders import RemindersContract
from keepsaid_testkit.contracts.reply_parts import ReplyPartsContract
from keepsaid_testkit.contracts.routing import DispatchContract, LateEditContract, MergingContract, SpawnContract
from keepsaid_testkit.contracts.schedules import RunContract, ScheduleContract
from keepsaid_testkit.contracts.sessions import MarkContract, RestContract, SessionContract
from keepsaid_testkit.contracts.slots import SlotContract, TargetContract
from keepsaid_testkit.contracts.standing import CalibrationContract, PersonalityContract
from keepsaid_testkit.contracts.store_driver import ContractStore
from keepsaid_testkit.contracts.stories import PointsContract, StoriesContract
from keepsaid_testkit.contracts.tasks import TaskContract, TaskCrashContract, TaskGraphContract, TaskLifeContract
from keepsaid_testkit.contracts.trusts import TrustContract
from keepsaid_testkit.contracts.turn_files import TurnFileContract
from keepsaid_testkit.contracts.turns import EpisodeWorkContract, StepContract, TranscriptContract, TurnContract

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
    ProcessesContract,
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
    ReplyPartsContract,
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
    PairingContract,
    CursorContract,
    FileContract,
    BroughtFileContract,
    TurnFileContract,
    RecordedTalkContract,
    LateEditContract,
)
"""Those of tasks, of who may talk, of how far channels were read, of files, of recorded talk, and of late edits."""

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
    "BroughtFileContract",
    "CalibrationContract",
    "ClaimContract",
    "ClaimingContract",
    "CollectedContract",
    "ContractStore",
    "CopyContract",
    "CursorContract",
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
    "FileContract",
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
    "LateEditContract",
    "LeaseContract",
    "MarkContract",
    "MergingContract",
    "NamesContract",
    "NewsContract",
    "NoteContract",
    "OutageContract",
    "OutputContract",
    "PairingContract",
    "ParkedContract",
    "PassageContract",
    "PersonalityContract",
    "PointsContract",
    "ProcessesContract",
    "PrunedContract",
    "PruningContract",
    "PullingContract",
    "ReachContract",
    "RecordedTalkContract",
    "RelayContract",
    "RemindersContract",
    "ReplyLaneContract",
    "ReplyPartsContract",
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
    "TurnFileContract",
    "UseContract",
    "WindowContract",
]
