"""What clients of mem0 call: one person's memories, added, found, put right and forgotten, and nobody else's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from tests.unit.http_cast import Site, refused, site

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEYS: Mapping[str, Mapping[str, object]] = {
    "ann": {"token": "a" * 40},
    "bob": {"token": "b" * 40},
    "carer": {"token": "c" * 40, "sender": "cleo", "scopes": ["read", "write", "operate"]},
    "reader": {"token": "d" * 40, "scopes": ["read"]},
    "worker": {"token": "e" * 40, "scopes": ["operate"]},
    "club": {"token": "f" * 40, "direct": False},
}
AT = "/compat/mem0/memories"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    async with site(tmp_path_factory.mktemp("home"), answering=False, keys=KEYS) as running:
        yield running


async def call(one: Site, who: str, method: str, path: str, **more: Any) -> httpx2.Response:
    head = one.owner if who == "operator" else {"Authorization": f"Bearer {KEYS[who]['token']}"}
    return await one.client.request(method, path, headers=head, **more)


async def add(one: Site, who: str, text: str, **fields: Any) -> list[dict[str, Any]]:
    given = {"messages": [{"role": "user", "content": text}], **fields}
    response = await call(one, who, "POST", AT, json=given)
    assert response.status_code == 200, response.text
    results: list[dict[str, Any]] = response.json()["results"]
    return results


async def found(one: Site, who: str, query: str, **fields: Any) -> list[str]:
    response = await call(one, who, "POST", "/compat/mem0/search", json={"query": query, **fields})
    assert response.status_code == 200, response.text
    return [hit["memory"] for hit in response.json()["results"]]


async def test_what_was_added_is_found_listed_and_read(one: Site) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "My cat is called Miso."},
        {"role": "assistant", "content": "Miso, noted."},
    ]
    told = await call(one, "ann", "POST", AT, json={"messages": messages, "user_id": "ann", "run_id": "r1"})
    assert [(hit["memory"], hit["event"]) for hit in told.json()["results"]] == [
        ("My cat is called Miso.", "ADD"),
        ("Miso, noted.", "ADD"),
    ]
    assert "My cat is called Miso." in await found(one, "ann", "what is my cat called?")
    assert "My cat is called Miso." in await found(one, "ann", "what is my cat called?", filters={"user_id": "ann"})
    listed = (await call(one, "ann", "GET", AT, params={"user_id": "ann"})).json()["results"]
    [mine] = [hit for hit in listed if hit["memory"] == "My cat is called Miso."]
    assert mine["user_id"] == "ann"
    assert mine["id"] == told.json()["results"][0]["id"]
    read = await call(one, "ann", "GET", f"{AT}/{mine['id']}")
    assert read.json()["memory"] == "My cat is called Miso."
    transcript = await call(one, "ann", "GET", "/v1/lanes", params={"conversation": "r1"})
    assert [said["text"] for said in transcript.json()["messages"]] == ["My cat is called Miso.", "Miso, noted."]


async def test_without_inference_a_text_is_saved_as_it_is_and_corrected_and_forgotten(one: Site) -> None:
    [added] = await add(one, "ann", "I would like to remember: the build runs on Debian 12", infer=False)
    assert (added["memory"], added["event"]) == ("I would like to remember: the build runs on Debian 12", "ADD")
    [twice] = await add(one, "ann", "I would like to remember: the build runs on Debian 12", infer=False)
    assert (twice["id"], twice["event"]) == (added["id"], "NONE")
    done = await call(one, "ann", "PUT", f"{AT}/{added['id']}", json={"text": "The build runs on Debian 13"})
    assert done.status_code == 200, done.text
    told = (await call(one, "ann", "GET", f"{AT}/{done.json()['id']}/history")).json()
    assert [step["event"] for step in told] == ["ADD", "UPDATE"]
    assert told[1]["old_memory"] == added["memory"]
    assert told[1]["new_memory"] == "The build runs on Debian 13"
    assert (await call(one, "ann", "DELETE", f"{AT}/{done.json()['id']}")).status_code == 200
    refused(await call(one, "ann", "GET", f"{AT}/{done.json()['id']}"), 404)
    refused(await call(one, "ann", "DELETE", f"{AT}/{done.json()['id']}"), 404)


async def test_a_key_is_one_person_and_reads_nobody_else(one: Site) -> None:
    [added] = await add(one, "ann", "The safe opens with the name of my aunt Philomena", infer=False)
    assert await found(one, "bob", "safe aunt Philomena") == []
    listed = (await call(one, "bob", "GET", AT)).json()["results"]
    assert "Philomena" not in str(listed)
    for method, path, more in (
        ("GET", f"{AT}/{added['id']}", {}),
        ("GET", f"{AT}/{added['id']}/history", {}),
        ("PUT", f"{AT}/{added['id']}", {"json": {"text": "The safe is empty"}}),
        ("DELETE", f"{AT}/{added['id']}", {}),
    ):
        refused(await call(one, "bob", method, path, **more), 404)
    refused(await call(one, "bob", "GET", AT, params={"user_id": "ann"}), 403)
    refused(await call(one, "bob", "GET", f"{AT}/{added['id']}", params={"user_id": "ann"}), 403)
    refused(await call(one, "bob", "POST", "/compat/mem0/search", json={"query": "safe", "user_id": "ann"}), 403)
    refused(await call(one, "bob", "POST", AT, json={"messages": "hello", "user_id": "ann"}), 403)
    assert await found(one, "ann", "safe aunt Philomena") != []


async def test_the_operator_names_people_who_are_apart(one: Site) -> None:
    await add(one, "operator", "The blue bicycle is in the shed", infer=False, user_id="u1")
    await add(one, "operator", "My bicycle is green", user_id="u2", agent_id="coach", run_id="7")
    assert await found(one, "operator", "bicycle", user_id="u1") == ["The blue bicycle is in the shed"]
    assert "The blue bicycle is in the shed" not in await found(one, "operator", "bicycle", user_id="u2")
    assert await found(one, "ann", "blue bicycle shed") == []
    for method, path in (("GET", AT), ("DELETE", AT)):
        refused(await call(one, "operator", method, path), 400)
    refused(await call(one, "operator", "POST", AT, json={"messages": "hello"}), 400)


async def test_all_memories_are_forgotten_only_with_the_scope_operate(one: Site) -> None:
    for n in range(60):
        await add(one, "carer", f"The shelf {n} holds jar {n}", infer=False)
    await add(one, "carer", "I keep the jam in the cellar.", run_id="r")
    await add(one, "ann", "The jars of ann are red", infer=False)
    for who in ("ann", "reader", "worker"):
        refused(await call(one, who, "DELETE", AT), 403)
    refused(await call(one, "carer", "DELETE", AT, params={"user_id": "ann"}), 403)
    assert len((await call(one, "carer", "GET", AT)).json()["results"]) > 50
    done = await call(one, "carer", "DELETE", AT, params={"user_id": "cleo"})
    assert done.status_code == 200, done.text
    assert (await call(one, "carer", "GET", AT)).json()["results"] == []
    assert "The jars of ann are red" in await found(one, "ann", "jars of ann")


async def test_a_key_does_what_its_scopes_say(one: Site) -> None:
    refused(await call(one, "reader", "POST", AT, json={"messages": "hello"}), 403)
    refused(await call(one, "reader", "PUT", f"{AT}/mem_0000000000001", json={"text": "x"}), 403)
    refused(await call(one, "worker", "POST", "/compat/mem0/search", json={"query": "x"}), 403)
    assert (await call(one, "reader", "GET", AT)).status_code == 200
    refused(await one.client.get(AT), 401)


async def test_where_others_read_along_a_run_is_read_alone(one: Site) -> None:
    await add(one, "club", "The heron nests behind the mill.", run_id="monday")
    assert await found(one, "club", "where does the heron nest?", run_id="monday") == [
        "The heron nests behind the mill."
    ]
    assert await found(one, "club", "where does the heron nest?", run_id="tuesday") == []


async def test_fields_that_mean_nothing_here_are_named(one: Site) -> None:
    given = {"messages": "The kettle is on", "metadata": {"a": 1}, "a\nb": 2}
    told = await call(one, "ann", "POST", AT, json=given)
    assert told.headers["x-keepsaid-ignored"] == "?, metadata"


async def test_metadata_is_kept_without_secrets_and_returned_and_stays_through_a_correction(one: Site) -> None:
    metadata = {"category": "food", "tags": ["a", {"b": None}], "kind": "mine", "note": f"key sk-proj-{'A1b2' * 12}"}
    [added] = await add(one, "ann", "I eat lentils on Fridays", infer=False, metadata=metadata)
    read = (await call(one, "ann", "GET", f"{AT}/{added['id']}")).json()["metadata"]
    assert {name: read[name] for name in ("category", "tags", "kind", "state")} == {
        **{name: metadata[name] for name in ("category", "tags", "kind")},
        "state": "active",
    }
    assert "A1b2" not in read["note"]
    assert [one["event"] for one in await add(one, "ann", "I eat lentils on Fridays", infer=False)] == ["NONE"]
    done = await call(one, "ann", "PUT", f"{AT}/{added['id']}", json={"text": "I eat lentils on Mondays"})
    now = (await call(one, "ann", "GET", f"{AT}/{done.json()['id']}")).json()
    assert (now["memory"], now["metadata"]["category"]) == ("I eat lentils on Mondays", "food")
    listed = (await call(one, "ann", "POST", "/compat/mem0/search", json={"query": "lentils"})).json()["results"]
    assert listed[0]["metadata"]["category"] == "food"


@pytest.mark.parametrize("metadata", [["a"], "text", 7, {"a": "x" * 4_000}])
async def test_metadata_that_is_too_much_or_no_object_is_refused(one: Site, metadata: object) -> None:
    given = {"messages": "The oven is on", "infer": False, "metadata": metadata}
    refused(await call(one, "ann", "POST", AT, json=given), 400)


@pytest.mark.parametrize("filters", [{"category": "food"}, {"AND": [{"user_id": "ann"}]}, ["user_id"], "ann"])
async def test_a_filter_that_would_narrow_nothing_is_refused(one: Site, filters: object) -> None:
    asked = {"query": "lentils", "filters": filters}
    refused(await call(one, "ann", "POST", "/compat/mem0/search", json=asked), 400)


async def test_the_token_is_taken_as_the_client_of_mem0_sends_it(one: Site) -> None:
    statuses = [
        (await one.client.get(AT, headers={"Authorization": f"{scheme} {KEYS['ann']['token']}"})).status_code
        for scheme in ("Token", "Bearer", "Basic")
    ]
    assert statuses == [200, 200, 401]


WRONG: Mapping[str, dict[str, Any]] = {
    "no messages": {},
    "a number": {"messages": 7},
    "an empty list": {"messages": []},
    "a list of texts": {"messages": ["hello"]},
    "only the system": {"messages": [{"role": "system", "content": "obey"}]},
    "no content": {"messages": [{"role": "user"}]},
    "parts": {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
    "a role that is none": {"messages": [{"role": "owner", "content": "obey"}]},
    "infer as a text": {"messages": "hello", "infer": "no"},
    "a user that is a number": {"messages": "hello", "user_id": 7},
}


@pytest.mark.parametrize("name", WRONG)
async def test_what_cannot_be_added_is_refused(one: Site, name: str) -> None:
    refused(await call(one, "ann", "POST", AT, json=WRONG[name]), 400)


async def test_a_search_that_cannot_be_is_refused(one: Site) -> None:
    for fields in ({"query": "x", "limit": "many"}, {"query": 7}, {"query": "x", "top_k": True}):
        refused(await call(one, "ann", "POST", "/compat/mem0/search", json=fields), 400)
    refused(await call(one, "ann", "POST", "/compat/mem0/search", json={"query": " "}), 422)
    refused(await call(one, "ann", "GET", f"{AT}/nonsense"), 404)
