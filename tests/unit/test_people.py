"""Who is one person hears as one, from the moment it is said and until it is undone; however it was said."""

from __future__ import annotations

from pathlib import Path

from tests.unit.http_cast import refused, site
from tests.unit.test_wrong import BOILER, QUESTION, Reminded

from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.ids import show
from keepsaid.domain.memory import OWNER, Kind, Listener, NewMemory, conversation_scope, person_scope
from keepsaid.domain.message import Content, Inbound, Lane, Origin, Trust, lane_key
from keepsaid.domain.visibility import identity_in

ANN, BEN = "http:default:ann", "library:default:ben"
ROOM = Lane("http", "default", "room", lane_key("room"))


def fact(key: str, scope: str, **fields: object) -> NewMemory:
    values: dict[str, object] = {"trust": Trust.KNOWN, "importance": 0.6, **fields}
    return NewMemory(key, Kind.FACT, BOILER, scope, **values)  # type: ignore[arg-type]


async def asked(instance: Instance, person: str, text: str) -> str:
    """What somebody is answered in a direct chat."""
    identity = identity_in(person)
    assert identity is not None
    channel, account, sender = identity
    origin = Origin(channel, account, f"dm:{sender}", sender, "Ann", direct=True, trust=Trust.KNOWN)
    heard = await instance.receive(Inbound(origin, Content(text.encode(), text), priority=10))
    with instance.hub.listening(heard.id) as stages:
        story = await instance.operations.story(heard.id)
        while story is None or story.state != "done":
            await stages.get()
            story = await instance.operations.story(heard.id)
    return "\n".join(reply.draft.text for reply in story.replies)


async def test_what_one_identity_told_comes_to_mind_for_the_other_while_they_are_joined(tmp_path: Path) -> None:
    """Both are called Ann, which joins nobody."""
    channels = {name: {"window_ms": 0, "trust": "known"} for name in ("http", "library")}
    config = Config(channels=channels, memory={"deadline_ms": 5_000}, server={"port": 0})
    async with opened(Home.at(tmp_path), config, Reminded()) as instance:
        await instance.memories.keep([fact("f", person_scope(ANN), speaker="Ann", speaker_id=ANN)], 1)
        await instance.start()
        assert BOILER not in await asked(instance, BEN, QUESTION)
        assert BOILER in await asked(instance, ANN, QUESTION)
        await instance.services.people.join((ANN, BEN))
        assert BOILER in await asked(instance, BEN, f"once more: {QUESTION}")
        await instance.services.people.split(BEN)
        assert BOILER not in await asked(instance, BEN, f"and again: {QUESTION}")
        seen = await instance.memories.people.seen(9)
        assert [(one.name, one.called) for one in seen] == [(ANN, "Ann"), (BEN, "Ann")]


async def test_people_are_joined_and_split_over_http(tmp_path: Path) -> None:
    async with site(tmp_path, answering=False) as here:

        async def told(path: str, body: object, status: int = 200) -> dict[str, object]:
            response = await here.client.post(path, json=body, headers=here.owner)
            return response.json() if status == 200 and response.status_code == 200 else refused(response, status)

        person = (await told("/v1/people/join", {"names": [ANN, BEN, "terminal:default:me"]}))["person"]
        assert isinstance(person, dict)
        assert [one["name"] for one in person["identities"]] == [ANN, BEN, OWNER]
        assert {one["joined_by"] for one in person["identities"]} == {OWNER}
        assert await told("/v1/people/split", {"name": ANN}) == {"split": ANN}
        assert await here.instance.memories.people.joined_with(BEN) == (BEN, OWNER)
        before = await here.instance.memories.people.everybody()
        await here.instance.memories.keep([fact("f", person_scope(ANN), speaker="Ann", speaker_id=ANN)], 1)
        listed = (await here.client.get("/v1/people", headers=here.owner)).json()
        assert [[one["name"] for one in person["identities"]] for person in listed["people"]] == [[BEN, OWNER]]
        assert [(one["name"], one["called"], one["memories"]) for one in listed["seen"]] == [(ANN, "Ann", 1)]
        for path, body, status in (
            ("/v1/people/join", {"names": ANN}, 400),
            ("/v1/people/join", {"names": [ANN, 5]}, 400),
            ("/v1/people/join", {"names": [ANN, ANN]}, 422),
            ("/v1/people/join", {"names": ["owner", "terminal:default:anybody"]}, 422),
            ("/v1/people/join", {"names": [ANN, "Ben"]}, 422),
            ("/v1/people/join", {"names": [ANN, "nowhere:default:ben"]}, 422),
            ("/v1/people/split", {}, 400),
            ("/v1/people/split", {"name": ANN}, 422),
        ):
            assert await told(path, body, status)
        for path in ("/v1/people/join", "/v1/people/split", "/v1/memories/mem_0000000000001/widen"):
            refused(await here.client.post(path, json={"names": [ANN, BEN]}), 401)
        assert await here.instance.memories.people.everybody() == before


async def test_a_memory_is_widened_over_http(tmp_path: Path) -> None:
    async with site(tmp_path, answering=False) as here:
        memories = here.instance.memories
        [id_] = await memories.keep([fact("f", conversation_scope(ROOM), lane=ROOM)], 1)
        mine = (await here.instance.services.memories.add("The key is under the pot.", "fact")).id
        path, elsewhere = f"/v1/memories/{show('memory', id_)}/widen", Listener(None)
        assert await memories.get(elsewhere, id_) is None
        for body, status in (
            ({"to": "global"}, 400),
            ({"to": "global", "reason": " "}, 422),
            ({"to": "everybody", "reason": "why not"}, 422),
            ({"to": "person", "reason": "it was said in a room"}, 422),
        ):
            refused(await here.client.post(path, json=body, headers=here.owner), status)
        narrower = f"/v1/memories/{show('memory', mine)}/widen"
        refused(await here.client.post(narrower, json={"to": "conversation", "reason": "x"}, headers=here.owner), 422)
        gone = "/v1/memories/mem_0000000000001/widen"
        refused(await here.client.post(gone, json={"to": "global", "reason": "x"}, headers=here.owner), 422)
        assert await memories.get(elsewhere, id_) is None
        done = await here.client.post(path, json={"to": "global", "reason": "all may know"}, headers=here.owner)
        assert done.json()["widened"]["before"] == "conversation:http:default:room"
        assert done.json()["widened"]["after"] == "global"
        assert await memories.get(elsewhere, id_) is not None
        [told] = await memories.sharing.list_shares(elsewhere, id_)
        assert (told.by, told.reason) == (OWNER, "all may know")


async def test_over_http_a_past_memory_is_not_changed_and_its_successor_is_named(tmp_path: Path) -> None:
    async with site(tmp_path, answering=False) as here:
        service = here.instance.services.memories
        before = (await service.add("The key is under the pot.", "fact")).id
        after = (await service.edit(before, "The key is under the mat.", "")).memory_id
        past, current = show("memory", before), show("memory", after)
        for path, body in (
            (f"{past}/widen", {"to": "global", "reason": "all may know"}),
            (f"{past}/pin", {}),
            (f"{past}/pin", {"pinned": False}),
            (f"{past}/merge", {"others": [current]}),
            (f"{current}/merge", {"others": [past]}),
            ("archive", {"ids": [current, past]}),
        ):
            answer = await here.client.post(f"/v1/memories/{path}", json=body, headers=here.owner)
            assert answer.status_code == 422
            assert f"{past} was replaced by {current}; use {current}" in answer.text
        told = (await here.client.get("/v1/memories", params={"query": "key"}, headers=here.owner)).json()["hits"]
        assert [(one["memory"]["id"], one["memory"]["state"]) for one in told] == [
            (current, "active"),
            (past, "superseded"),
        ]
        assert told[1]["memory"]["valid_to"] is not None
        assert told[1]["memory"]["superseded_by"] == current
