"""Sources of the prompt beside the lane and memory: identity, personality, skills, tools of the context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from keepsaid.domain.memory import person_of
from keepsaid.domain.message import Trust
from keepsaid.domain.personality import Personality, Skills, effective, scopes_of
from keepsaid.domain.prompt import Json
from keepsaid.domain.scene import Contribution, PromptInputs, StaticContext, TurnContext
from keepsaid.domain.tool_calls import object_schema
from keepsaid.domain.turn import Claimed
from keepsaid.errors import ToolError
from keepsaid.pipeline.prompt.assemble import Preparation, PreparedPart
from keepsaid.ports.extension import Contributor
from keepsaid.ports.memory_store import Bulletins
from keepsaid.ports.model import Tool
from keepsaid.ports.prompt_sources import AgentIdentity, Capabilities, SideWork, SkillShelf
from keepsaid.ports.store_views import ConversationLanes


@dataclass(frozen=True, slots=True)
class Sources:
    """Those that there are; a layer without one is empty."""

    skills: SkillShelf | None = None
    capabilities: Capabilities | None = None
    side_work: SideWork | None = None
    contributors: Sequence[Contributor] = ()
    overview: ConversationLanes | None = None
    bulletins: Bulletins | None = None

    def begin(self, preparation: Preparation, claimed: Claimed, identity: AgentIdentity) -> SourceReading:
        """Start to read all of them for a turn, each as a part of its preparation."""
        lane, begin = claimed.batch.lane, preparation.begin
        return SourceReading(
            personality_of(claimed),
            self.capabilities.lines() if self.capabilities else (),
            begin("identity files", identity.read(), ""),
            begin("skills", self.skills.read(), Skills()) if self.skills else None,
            begin("bulletin", self.bulletins.render_bulletins(claimed), "") if self.bulletins else None,
            begin("session summary", self.overview.render_other_lanes(lane), "") if self.overview else None,
            begin("side work", self.side_work.lines(lane), ()) if self.side_work else None,
            tuple(begin("extensions", one.contribute(claimed), ()) for one in self.contributors),
        )


@dataclass(frozen=True, slots=True)
class SourceReading:
    """What is read of the sources for one turn; a part that was not ready in time is empty."""

    personality: Personality
    capabilities: tuple[str, ...]
    identity: PreparedPart[str]
    skills: PreparedPart[Skills] | None
    bulletin: PreparedPart[str] | None
    session_summary: PreparedPart[str] | None
    side_work: PreparedPart[tuple[str, ...]] | None
    contributors: tuple[PreparedPart[Sequence[Contribution]], ...]

    @property
    def standing(self) -> StaticContext:
        """What stands above the lane's records."""
        return StaticContext(
            self.identity.value,
            self.personality,
            self.skills.value if self.skills else Skills(),
            self.capabilities,
            self.bulletin.value if self.bulletin else "",
            self.session_summary.value if self.session_summary else "",
        )

    def turn_context(self, now_ms: int) -> TurnContext:
        """Return the prompt inputs that hold for this turn only."""
        added = tuple(one for part in self.contributors for one in part.value)
        return TurnContext(now_ms, self.side_work.value if self.side_work else (), added)


def personality_of(claimed: Claimed) -> Personality:
    """The one in force: of the lane, of the one person of a direct chat, of everybody, or the built-in."""
    return effective(scopes_of(claimed.batch.lane, person_in(claimed)), claimed.around.personalities)


def person_in(claimed: Claimed) -> str:
    """The one person of a direct chat; "" where more than one may be heard."""
    origins = [message.inbound.origin for message in claimed.messages]
    people = {person_of(origin) for origin in origins}
    return people.pop() if len(people) == 1 and all(origin.direct for origin in origins) else ""


_SCHEMA = object_schema({"name": {"type": "string", "description": "a name from the list of skills"}}, "name")


def skill_tool(shelf: Skills) -> Tool:
    """A tool that returns the text of one skill."""

    async def run(arguments: dict[str, Json]) -> str:
        name = arguments.get("name")
        found = shelf.named(name) if isinstance(name, str) else None
        if found is None:
            known = ", ".join(one.name for one in shelf.known)
            raise ToolError(f"there is no such skill; there are: {known}")
        return found.body

    return Tool("skill", "Read how to do something that is listed under [Skills].", _SCHEMA, run, output=Trust.OWNER)


def tools_of(scene: PromptInputs) -> tuple[Tool, ...]:
    """The tool of the skills, if there are any."""
    shelf = scene.standing.skills
    return (skill_tool(shelf),) if shelf.known else ()
