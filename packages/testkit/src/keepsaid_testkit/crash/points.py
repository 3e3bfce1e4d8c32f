"""The kill points: every name that `point` is called with, read from the program itself, and what each kill proves.

`python -m keepsaid_testkit.crash.points` lists them under K1 to K11 (spec: reliability, kill points).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

from keepsaid import errors
from keepsaid.adapters.sql.operations.queries import buffer_commits
from keepsaid.adapters.sql.scripts import migrations
from keepsaid.adapters.sql.search.memories import MEMORY_TABLE
from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.adapters.sqlite.connection import open_writer
from keepsaid.adapters.sqlite.integrity import migrate
from keepsaid.domain.turn import StepKind

_PACKAGE = Path(errors.__file__).parent
PARTS = ("buffer", "memory")
"""The parts of the schema."""

WHEN: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType(
    {
        "K1": ("after receiving, before it is on disk", ("receive.before", "commit.Receive.before")),
        "K2": (
            "on disk, before the acknowledgement",
            (
                "commit.Receive.after",
                "receive.after",
                "commit.TakeAwaited.",
                "brought.",
                "commit.KeepBrought.",
                "acknowledge.",
            ),
        ),
        "K3": (
            "routed or not, before it is claimed",
            ("commit.Dispatch.", "commit.Interrupt.", "commit.ClaimBatches.", "commit.Drop.", "commit.Requeue."),
        ),
        "K4": ("around a call of the model", ("commit.StepStart.", "model.", "commit.Renew.", "commit.Steer.")),
        "K5": (
            "around a call of a tool, the files that it makes, and its record",
            ("tool.", "made.", "commit.KeepTurnPiece.", "commit.KeepTurnFile.", "commit.StepEnd."),
        ),
        "K6": (
            "the turn is settled, before its reply is sent",
            (
                "commit.TurnCommit.",
                "commit.Fail.",
                "commit.TakeReplies.",
                "send.before",
                "commit.MarkReplyShown.",
                "commit.KeepParts.",
                "part.before",
            ),
        ),
        "K7": (
            "sent, before that is on disk",
            (
                "part.after",
                "commit.ConfirmPart.",
                "commit.NoteUndelivered.",
                "send.after",
                "commit.Settle.",
                "commit.Decide.",
                "commit.RecordFeedback.",
            ),
        ),
        "K8": (
            "while a lane's past is summarised or cut, its session rests, and what is old is pruned or told",
            (
                "commit.Summarise.",
                "commit.CutContext.",
                "commit.SummaryFailed.",
                "summary.",
                "commit.BeginPruning.",
                "commit.Prune.",
                "commit.Maintain.",
                "commit.Tell.",
                "commit.TellNews.",
                "news.",
                "commit.DropNews.",
                "commit.Rest.",
            ),
        ),
        "K9": (
            "while talk is recorded, people let in, files fetched, memories widened or imported, words collected",
            (
                "commit.KeepMemories.",
                "commit.Learn.",
                "commit.Correct.",
                "commit.Pin.",
                "commit.Confirm.",
                "commit.Merge.",
                "commit.ArchiveMemories.",
                "commit.UndoMemory.",
                "commit.TakeIn.",
                "commit.RulePairs.",
                "episodes.kept",
                "commit.EpisodesKept.",
                "commit.RecordTalk.",
                "summaries.kept",
                "commit.SummariesCopied.",
                "commit.KeepBulletin.",
                "vectors.made",
                "commit.KeepVectors.",
                "block.",
                "commit.Relate.",
                "commit.MergeEntities.",
                "commit.JoinPeople.",
                "commit.SplitPerson.",
                "commit.ShareMemory.",
                "commit.MoveCursors.",
                "fetch.",
                "commit.TakeFiles.",
                "commit.KeepPiece.",
                "commit.KeepFile.",
                "commit.PutOffFile.",
                "commit.LeaveFile.",
                "commit.SendCode.",
                "commit.LetIn.",
                "commit.ShutOut.",
                "commit.ClaimCollection.",
                "commit.KeepFinding.",
                "finding.",
                "commit.Collected.",
                "commit.Note.",
                "commit.NotifyOwner.",
                "commit.CollectionFailed.",
                "commit.RequeueCollection.",
                "commit.Invalidate.",
                "commit.MarkUnprocessed.",
            ),
        ),
        "K10": (
            "during recovery, or an orderly end",
            (
                "commit.VoidLeases.",
                "commit.Beat.",
                "commit.RequeueCrashed.",
                "commit.ExpireLeases.",
                "commit.RecoverFiles.",
                "commit.Doubt.",
                "commit.Resend.",
                "commit.Release.",
                "commit.Relinquish.",
            ),
        ),
        "K12": (
            "while something is forgotten, in either store and between the two",
            (
                "commit.RequestForgetting.",
                "commit.HideMemories.",
                "commit.ScrubForgotten.",
                "commit.EraseMemories.",
                "commit.MoveForgetting.",
                "commit.EmptyLog.",
                "commit.PutBack.",
                "commit.PutBackMemories.",
                "commit.DropUndo.",
                "commit.DropMemoryUndo.",
            ),
        ),
        "K13": (
            "while events are delivered to subscribers",
            (
                "commit.Subscribe.",
                "commit.Unsubscribe.",
                "commit.Distribute.",
                "commit.TakeDeliveries.",
                "commit.SettleDeliveries.",
                "commit.DecideDelivery.",
                "tell.",
            ),
        ),
        "K14": (
            "while tasks are made, done, decided, and their results remembered",
            (
                "commit.CreateTasks.",
                "commit.ClaimTasks.",
                "commit.RenewTask.",
                "commit.TellStatus.",
                "commit.EndTask.",
                "commit.CancelTask.",
                "commit.RunTask.",
                "commit.DecideTask.",
                "commit.ExpireTasks.",
                "commit.MarkTasksReported.",
                "relay.",
                "commit.ResultsKept.",
                "results.",
            ),
        ),
        "K15": (
            "while schedules are added, come, run and end",
            (
                "commit.AddSchedule.",
                "commit.ReplaceSchedules.",
                "commit.FireSchedules.",
                "commit.RunNow.",
                "commit.BeginRun.",
                "commit.EndRun.",
                "commit.SettleRun.",
                "commit.MoveSchedule.",
                "commit.RecoverRuns.",
            ),
        ),
        "K11": ("during a migration or a backup", ("migrate.", "backup.")),
    }
)
"""Kill points of the spec: what is cut, and the beginnings of the names."""


@cache
def points() -> tuple[str, ...]:
    """Every name, sorted."""
    found = {name for file in _modules() for pattern in _patterns(file) for name in _expanded(pattern)}
    return tuple(sorted(found))


@cache
def commit_names() -> tuple[str, ...]:
    """The types of commits that the stores apply."""
    with TemporaryDirectory() as folder, closing(open_writer(path := Path(folder, "buffer.db"))) as db:
        migrate(db, path, "buffer")
        table = buffer_commits(db, TombstoneKeyring(None)) | MEMORY_TABLE
    return tuple(sorted(kind.__name__ for kind in (*table.single, *table.sets)))


def kind_of(point: str) -> str:
    """The kill point of the spec that a name belongs to: `K1` to `K11`; "" for none."""
    return next((kind for kind, (_, begins) in WHEN.items() if point.startswith(begins)), "")


def _modules() -> Iterator[Path]:
    return (file for file in _PACKAGE.rglob("*.py") if "testing" not in file.relative_to(_PACKAGE).parts)


def _patterns(file: Path) -> Iterator[str]:
    source = file.read_text("utf-8")
    if "point(" not in source:
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "point":
            yield ast.unparse(node.args[0])


def _expanded(pattern: str) -> Iterator[str]:
    """The names that a call's argument matches; raises KeyError for a blank nobody knows how to fill."""
    fills: dict[str, tuple[str, ...]] = {
        "{name}": commit_names(),
        "{call.kind}": tuple(StepKind),
        "{part}.{number}": tuple(f"{part}.{number}" for part in PARTS for number, _ in migrations(part)),
    }
    literal = ast.literal_eval(pattern.removeprefix("f"))
    blanks = [blank for blank in fills if blank in literal]
    for values in product(*(fills[blank] for blank in blanks)):
        name = literal
        for blank, value in zip(blanks, values, strict=True):
            name = name.replace(blank, value)
        if "{" in name:
            raise KeyError(name)
        yield name


def main() -> int:
    """List them."""
    for kind, (cut, _) in WHEN.items():
        sys.stdout.write(f"{kind:4} {cut}\n")
        sys.stdout.writelines(f"       {name}\n" for name in points() if kind_of(name) == kind)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
