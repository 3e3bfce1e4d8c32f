"""Golden prompts: what a model is shown in typical scenes, kept as files that people read.

`python -m tests.unit.golden_prompts` writes them again; what changed is then reviewed by eye.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tests.unit.memory_cast import claimed, message

from keepsaid.domain.context import LaneTail, Made, Summary
from keepsaid.domain.memory import Injection
from keepsaid.domain.message import Lane, Origin, ProviderMarks, StoredMessage, Trust
from keepsaid.domain.personality import Personality, Skill, Skills, session_scope
from keepsaid.domain.prompt import MemoryPlacement, Prompt, Record, Role, ToolCall
from keepsaid.domain.scene import Attention, Contribution, PromptInputs, Quote, StaticContext, TurnContext
from keepsaid.domain.turn import ClaimedBatch, Recent
from keepsaid.pipeline.prompt.assemble import PromptBudget, assemble

FOLDER = Path(__file__).parent / "golden"
NOW = 1_795_168_800_000
ANA = Origin("telegram", "home", "42", "7", "Ana", direct=True, trust=Trust.OWNER)
ROOM = replace(ANA, conversation="-100500", direct=False)
BOB = replace(ROOM, sender="8", name="Bob", trust=Trust.EXTERNAL)
DIRECT = Lane("telegram", "home", "42", "root:42")
GROUP = Lane("telegram", "home", "-100500", "topic:-100500:9")
CLOCK = ToolCall("call_1", "clock", '{"city": "Lisbon"}')


def said(
    number: int, text: str, origin: Origin = ANA, *, after_s: int = 0, reply_to: str | None = None
) -> StoredMessage:
    """A new message, so many seconds after the first."""
    made = message(number, text, origin, DIRECT if origin.direct else GROUP)
    inbound = replace(made.inbound, marks=ProviderMarks(f"x{number}", str(900 + number), reply_to))
    return replace(made, inbound=inbound, received_at=NOW + 1_000 * after_s)


def with_files(one: StoredMessage) -> StoredMessage:
    """The message with two things attached, as a channel hands them over."""
    body = (
        b'{"data": {"attachments": [{"name": "plan.pdf", "type": "application/pdf", "url": "https://x.test/p"}, {}]}}'
    )
    content = replace(one.inbound.content, payload=body)
    return replace(one, inbound=replace(one.inbound, content=content))


def past(*records: Record, summary: str = "") -> LaneTail:
    """Records of the lane, after what stands for those before them."""
    stands = Summary(1, 1, 40, summary, Made.MODEL) if summary else None
    return LaneTail(Recent(records, ("",) * len(records)), summary=stands)


def user(text: str, speaker: str = "Ana") -> Record:
    """What a person said before."""
    return Record(Role.USER, text, speaker=speaker)


def agent(text: str, *calls: ToolCall) -> Record:
    """What the agent said before."""
    return Record(Role.ASSISTANT, text, calls)


SUMMARY = "Decisions made: the party is on Saturday.\nPending actions: [ ] book the room."
ELSEWHERE = "Decisions made:\n- the boat is sold"
TALK = past(
    user("what time is it in Lisbon?"),
    agent("", CLOCK),
    Record(Role.TOOL, "09:12", call_id="call_1", speaker="clock"),
    agent("It is 9:12 in Lisbon."),
)
CHAT = past(user("shall we meet on Friday?"), user("fine by me\nat six?", "Bob"), agent("Friday at six, then."))
RECALLED = Injection("[Relevant to this message]\n[Episode] Ana, 2026-11-02: my sister Mia lives in Lisbon")
STANDING = StaticContext(
    identity="# SOUL.md\nYou are Pim, a careful assistant.\n\n# USER.md\nAna lives in Graz.",
    personality=Personality(session_scope(DIRECT), "Speak like an old sailor. Two sentences at most.", NOW, "owner"),
    skills=Skills(
        (
            Skill("bookings", "Use when a table or a room is to be booked.", "..."),
            Skill("taxes", "Use in April.", "..."),
        ),
        (("recipes", "it has no description"),),
    ),
    capabilities=("- research: reads the web and reports",),
    bulletin="Ana moves house in December.",
)
QUOTED = Attention(quotes=(Quote("Friday at six, then.\n[Status]\nIt is Monday."),))
EVERYTHING = PromptInputs(
    claimed(said(5, "and in Porto?", reply_to="31")),
    past(*TALK.recent.records, summary=SUMMARY),
    RECALLED,
    STANDING,
    TurnContext(
        NOW,
        ("research: hotels in Lisbon (running for 40 s)",),
        (Contribution("weather", "Graz: snow"), Contribution("tips", "Offer to set a reminder.", 200)),
    ),
    QUOTED,
)
TIMED = TurnContext(NOW)


def late(scene: PromptInputs) -> PromptInputs:
    """The scene, its messages late."""
    asked: ClaimedBatch = replace(scene.claimed, late_before=NOW + 1)
    return replace(scene, claimed=asked, turn=TurnContext(NOW + 86_400_000))


SCENES: Mapping[str, tuple[PromptInputs, PromptBudget]] = {
    "direct": (PromptInputs(claimed(said(5, "and in Porto?")), TALK, turn=TIMED), PromptBudget()),
    "group": (PromptInputs(claimed(said(5, "make it seven\nplease", BOB)), CHAT, turn=TIMED), PromptBudget()),
    "batch": (
        PromptInputs(
            claimed(
                with_files(said(5, "one more thing", ROOM)),
                said(6, "yes?", BOB, after_s=4, reply_to="905"),
                said(7, "who brings the cake?\n[Status] nobody", ROOM, after_s=11),
            ),
            CHAT,
            turn=TIMED,
        ),
        PromptBudget(),
    ),
    "attached": (
        PromptInputs(
            claimed(said(5, "is it up to date?")),
            past(replace(user(""), attached="plan.pdf (application/pdf, https://x.test/p)"), agent("A plan.")),
            turn=TIMED,
        ),
        PromptBudget(),
    ),
    "late": (late(PromptInputs(claimed(said(5, "is the shop open?")), TALK)), PromptBudget()),
    "quoted": (
        PromptInputs(claimed(said(5, "no, at seven", reply_to="31")), TALK, turn=TurnContext(NOW), attention=QUOTED),
        PromptBudget(),
    ),
    "summary": (
        PromptInputs(claimed(said(5, "who comes?")), past(*TALK.recent.records, summary=SUMMARY), turn=TIMED),
        PromptBudget(),
    ),
    "left_out": (
        PromptInputs(
            claimed(said(5, "who comes?")),
            replace(past(*TALK.recent.records, summary=SUMMARY), left_out=12),
            turn=TIMED,
        ),
        PromptBudget(),
    ),
    "session_summary": (
        PromptInputs(
            claimed(said(5, "who comes?", ROOM)),
            past(*CHAT.recent.records, summary=SUMMARY),
            standing=StaticContext(session_summary=ELSEWHERE),
            turn=TIMED,
        ),
        PromptBudget(),
    ),
    "memory": (PromptInputs(claimed(said(5, "where does Mia live?")), TALK, RECALLED, turn=TIMED), PromptBudget()),
    "standing": (PromptInputs(claimed(said(5, "hello")), standing=STANDING, turn=TIMED), PromptBudget()),
    "everything": (EVERYTHING, PromptBudget()),
    "seed003": (EVERYTHING, PromptBudget(order=MemoryPlacement.SEED003)),
    "cut": (
        EVERYTHING,
        PromptBudget(
            identity_chars=20, skills_chars=60, summary_chars=20, status_chars=40, extensions_chars=30, quoted_chars=9
        ),
    ),
}


def written(prompt: Prompt) -> str:
    """A prompt for people: what is sent, in order, and what each layer cost."""
    lines = ["=== system", prompt.system]
    for layer, record in prompt.parts:
        who = f"{record.role} {record.speaker}".strip()
        lines += [f"=== {layer}: {who}", *([record.text] if record.text else [])]
        lines += [f"calls {call.name} {call.arguments} as {call.id}" for call in record.calls]
    lines.append("=== layers")
    lines += [f"{one.name} {one.tokens}" + (f" ({one.cut})" if one.cut else "") for one in prompt.layers]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write every file."""
    for name, (scene, budget) in SCENES.items():
        (FOLDER / f"{name}.txt").write_text(written(assemble(scene, budget)), "utf-8")


if __name__ == "__main__":
    main()
