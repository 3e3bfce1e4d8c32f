"""From a finding to memories: the same names each time, and no more trust or audience than its sources have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from keepsaid.domain.collection import Utterance
from keepsaid.domain.finding import Finding, Link, Statement
from keepsaid.domain.forgetting import AGENT
from keepsaid.domain.graph import Association, Relation
from keepsaid.domain.lane import Lane
from keepsaid.domain.memory import NewMemory, Source, chat_of, episode_scope, person_of
from keepsaid.domain.message import Origin
from keepsaid.domain.prompt import Role
from keepsaid.domain.statements import asks_to_remember
from keepsaid.domain.visibility import Parent, shares

_WEIGHT_LEAST = 0.1
"""What belongs together does so at least so much, however uncertain either is."""


def memories_of(finding: Finding, utterances: Sequence[Utterance]) -> list[NewMemory]:
    """The memories a finding stands for; of a statement whose sources are gone, or were never fit, there is none."""
    told = {one.position: one for one in utterances if one.told}
    found = (_of_statement(finding, n, one, told) for n, one in enumerate(finding.statements) if one is not None)
    return [memory for several in found for memory in several]


def links_of(finding: Finding, memories: Sequence[NewMemory], ids: Sequence[int]) -> list[Association]:
    """How the memories of a finding belong together, as its statements are linked; `ids` are theirs, 0 for none.

    Only memories of one scope are associated, each as far as both are certain.
    """
    places: dict[tuple[int, str], tuple[int, float]] = {}
    for memory, id_ in zip(memories, ids, strict=True):
        if id_:
            n = int(memory.sources[0].ref.partition(":")[2])
            places[n, memory.scope] = id_, memory.confidence
    return [
        Association(id_, *_end(places[link.to, scope], link, certain))
        for (n, scope), (id_, certain) in places.items()
        for link in _links(finding, n)
        if places.get((link.to, scope), (id_,))[0] != id_
    ]


def _links(finding: Finding, n: int) -> tuple[Link, ...]:
    one = finding.statements[n]
    return () if one is None else one.links


def _end(other: tuple[int, float], link: Link, certain: float) -> tuple[int, Relation, float]:
    return other[0], link.relation, max(_WEIGHT_LEAST, min(certain, other[1]))


def _of_statement(finding: Finding, n: int, one: Statement, told: Mapping[int, Utterance]) -> Iterator[NewMemory]:
    if any(at not in told for at in one.records):
        return
    cited = [told[at] for at in sorted(set(one.records))]
    origins = [_origin(said, finding.lane) for said in cited]
    parents = [Parent(episode_scope(origin, finding.lane), origin.trust) for origin in origins]
    for place, share in enumerate(shares(parents)):
        said = [cited[at] for at in share.parents]
        last, origin = said[-1], origins[share.parents[-1]]
        ref = f"{finding.id}:{n}"
        by = person_of(origin)
        yield NewMemory(
            key=f"finding:{ref}" + (f":{place}" if place else ""),
            kind=one.kind,
            text=one.text,
            scope=share.scope,
            trust=share.trust,
            lane=finding.lane,
            speaker=last.speaker,
            speaker_id=by,
            subject=one.subject,
            subject_id=by if one.subject and one.subject == last.speaker else "",
            chat_of=chat_of([origins[at] for at in share.parents]),
            said_at=max(heard.at for heard in said),
            importance=one.importance,
            sources=(Source("finding", ref), *(_source(heard) for heard in said)),
            derived=True,
            attribute=one.attribute,
            value=one.value,
            valid_from=one.valid_from,
            valid_to=one.valid_to,
            confidence=one.confidence,
            asked=any(asks_to_remember(heard.text) for heard in said),
        )


def speaker_of(one: Utterance, lane: Lane) -> str:
    """The person who said something, or AGENT."""
    return person_of(_origin(one, lane)) if one.role is Role.USER else AGENT


def _origin(one: Utterance, lane: Lane) -> Origin:
    return Origin(lane.channel, lane.account, lane.conversation, one.sender, one.speaker, one.direct, one.trust)


def _source(one: Utterance) -> Source:
    kind, _, ref = one.ref.partition(":")
    return Source(kind, ref)


def without_secrets(one: Statement, redacted: Callable[[str], str]) -> Statement:
    """A statement as it may be kept."""
    subject, attribute, value = redacted(one.subject), redacted(one.attribute), redacted(one.value)
    return replace(one, text=redacted(one.text), subject=subject, attribute=attribute, value=value)
