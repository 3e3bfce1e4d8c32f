"""The description of the HTTP API: it is valid, has every route and no other, and answers are as it says."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from starlette.routing import Route
from tests.unit.http_cast import Site, site
from tests.waits import HANG_S

from keepsaid.interfaces.agent_calls import CALLS
from keepsaid.interfaces.agent_fields import CALL_FIELDS
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.http.server import application

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAGE = Path(__file__).parents[2] / "docs/use/reference/http.md"
KEYS = {"ann": {"token": "a" * 40, "scopes": ["talk", "read", "write", "operate"]}}
ANN = {"Authorization": f"Bearer {'a' * 40}"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    async with site(tmp_path_factory.mktemp("home"), keys=KEYS, turns={"answered_by": "workers"}) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def described(one: Site) -> dict[str, Any]:
    response = await one.client.get("/v1/openapi.json")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert (await one.client.get("/v1/openapi.json")).content == response.content
    told: dict[str, Any] = response.json()
    return told


class Here(NamedTuple):
    """A server, and what it says of itself."""

    one: Site
    described: dict[str, Any]


@pytest.fixture
def here(one: Site, described: dict[str, Any]) -> Here:
    return Here(one, described)


def closed(schema: Any) -> Any:
    """The same schema, in which an object has no field beside those that are named."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    shut = {name: closed(value) for name, value in schema.items()}
    return {"additionalProperties": False, **shut} if "properties" in schema else shut


def check(described: Mapping[str, Any], schema: Mapping[str, Any], answer: Any) -> None:
    """Hold an answer against a schema of the description, its components and nothing else."""
    components = {"components": closed(described["components"])}
    errors = list(Draft202012Validator({**closed(dict(schema)), **components}).iter_errors(answer))
    assert [f"{error.json_path}: {error.message}" for error in errors] == []


def schema_of(described: Mapping[str, Any], method: str, path: str, status: int) -> dict[str, Any]:
    found: dict[str, Any] = described["paths"][path][method.lower()]["responses"][str(status)]
    [content] = found["content"].values()
    schema: dict[str, Any] = content["schema"]
    return schema


async def asked(here: Here, method: str, path: str, fields: Any = None, **places: str) -> Any:
    """What a route answers, which is as the description says."""
    name, _, query = path.partition("?")
    address = f"{name.format(**places)}{'?' if query else ''}{query}"
    head = {**here.one.owner, "Content-Type": "application/json"}
    content = None if fields is None else json.dumps(fields).encode()
    response = await here.one.client.request(method, address, content=content, headers=head)
    assert response.status_code in (200, 201), response.text
    check(here.described, schema_of(here.described, method, name, response.status_code), response.json())
    return response.json()


async def test_it_is_valid_by_the_schema_of_openapi_3_1(described: dict[str, Any]) -> None:
    assert described["openapi"].startswith("3.1")
    assert [str(error) for error in OpenAPIV31SpecValidator(described).iter_errors()] == []
    named = [operation["operationId"] for path in described["paths"].values() for operation in path.values()]
    assert len(set(named)) == len(named)


async def test_it_has_every_route_of_the_server_and_no_other(one: Site, described: dict[str, Any]) -> None:
    app = application(one.instance, Gate("127.0.0.1", "x", None), asyncio.Event())
    bound = [route for route in app.routes if isinstance(route, Route)]
    assert len(bound) == len(app.routes)
    served = sorted(
        (method, route.path.replace(":path}", "}")) for route in bound for method in (route.methods or set()) - {"HEAD"}
    )
    told = sorted((method.upper(), path) for path, methods in described["paths"].items() for method in methods)
    assert told == served
    await app.state.mcp.close()
    await app.state.openai.close()


async def test_the_page_of_the_http_api_has_every_route_once_and_no_other(described: dict[str, Any]) -> None:
    table = PAGE.read_text("utf-8").partition("## Who may call")[0]
    named = re.findall(
        r"`(GET|POST|PUT|DELETE) (/[^`]*)`", "\n".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE))
    )
    told = [(method.upper(), path) for path, methods in described["paths"].items() for method in methods]
    assert sorted((verb, re.sub(r"\b(?:[A-Z]+|github)\b", "*", path)) for verb, path in named) == sorted(
        (verb, re.sub(r"\{\w+\}", "*", path)) for verb, path in told
    )


async def test_every_route_says_what_it_does_and_who_may_call_it(described: dict[str, Any]) -> None:
    for path, methods in described["paths"].items():
        for operation in methods.values():
            assert operation["summary"], path
            assert operation["responses"]["default"], path
            assert operation["security"], path
    assert described["paths"]["/v1/lanes"]["get"]["security"] == [{"key": ["read"]}, {"operator": []}]
    assert described["paths"]["/v1/status"]["get"]["security"] == [{"operator": []}]
    assert described["paths"]["/healthz"]["get"]["security"] == [{}]


async def test_it_has_the_fields_of_every_call_of_an_agent(described: dict[str, Any]) -> None:
    assert CALL_FIELDS.keys() == CALLS.keys()
    content = described["paths"]["/v1/agent/{call}"]["post"]["requestBody"]["content"]["application/json"]
    assert content["schema"]["anyOf"] == json.loads(json.dumps([one.takes for one in CALL_FIELDS.values()]))


async def test_answers_to_calls_of_agents_are_as_it_says(one: Site, described: dict[str, Any]) -> None:
    async def called(name: str, **fields: object) -> Any:
        response = await one.client.post(f"/v1/agent/{name}", json=fields, headers=ANN)
        assert response.status_code == 200, response.text
        check(described, json.loads(json.dumps(CALL_FIELDS[name].takes)), fields)
        check(described, json.loads(json.dumps(CALL_FIELDS[name].gives)), response.json())
        return response.json()

    cat = {"role": "user", "text": "My cat is called Miso.", "key": "1"}
    await called("record", conversation="kitchen", messages=[cat, {"role": "assistant", "text": "Noted."}])
    saved = await called("save", text="The ladder stands behind the greenhouse")
    assert (await called("recall", query="where is the ladder?"))["hits"]
    assert (await called("context", conversation="garden", text="What is my cat called?"))["memories"]
    assert (await called("transcript", conversation="kitchen"))["messages"]
    done = await called("correct", id=saved["id"], text="The ladder stands in the barn")
    assert (await called("get", ids=[done["id"]]))["memories"][0]["history"]
    counted = await called("forget", ids=[done["id"]])
    await called("forget", ids=[done["id"]], confirm=counted["confirm"])


async def test_answers_about_messages_batches_and_turns_are_as_it_says(here: Here) -> None:
    said = {"text": "hello", "sender": "bea", "conversation": "hall"}
    put = await asked(here, "POST", "/v1/messages", said)
    async with asyncio.timeout(HANG_S):
        while not (found := (await asked(here, "POST", "/v1/batches:lease", {"wait_s": 60}))["batches"]):
            pass
    [batch] = found
    place = {"id": batch["id"], "fence": str(batch["fence"])}
    await asked(here, "POST", "/v1/batches/{id}/{fence}/renew", {"lease_s": 60}, **place)
    await asked(here, "POST", "/v1/batches/{id}/{fence}/done", {"reply": "hello, Bea"}, **place)
    story = await asked(here, "GET", "/v1/messages/{id}", id=put["id"])
    assert story["replies"][0]["text"] == "hello, Bea"
    await asked(here, "GET", "/v1/turns/{id}", id=batch["turn"])
    await asked(here, "GET", "/v1/replies?channel=http&conversation=hall")
    await asked(here, "GET", "/v1/status")
    await asked(here, "GET", "/v1/events")


async def test_answers_about_memories_tasks_and_schedules_are_as_it_says(here: Here) -> None:
    saved = await asked(here, "POST", "/v1/memories", {"text": "Ann lives in Lisbon"})
    assert (await asked(here, "GET", "/v1/memories?query=Lisbon"))["hits"]
    assert (await asked(here, "GET", "/v1/memories"))["memories"]
    await asked(here, "GET", "/v1/memories/{id}", id=saved["id"])
    await asked(here, "GET", "/v1/memories/{id}/turns", id=saved["id"])
    await asked(here, "POST", "/v1/memories/{id}/pin", {"pinned": True}, id=saved["id"])
    await asked(
        here, "POST", "/v1/memories/{id}/edit", {"text": "Ann lives in Porto", "value": "Porto"}, id=saved["id"]
    )
    await asked(here, "GET", "/v1/entities")
    await asked(here, "GET", "/v1/people")
    await asked(here, "GET", "/v1/channels/people")
    task = await asked(here, "POST", "/v1/tasks", {"task": "count the apples"})
    assert (await asked(here, "GET", "/v1/tasks"))["tasks"]
    await asked(here, "GET", "/v1/tasks/{id}", id=task["id"])
    await asked(here, "POST", "/v1/tasks/{id}/cancel", {}, id=task["id"])
    new = {"every_s": 3600, "task": "count the pears", "name": "pears"}
    await asked(here, "POST", "/v1/schedules", new)
    assert (await asked(here, "GET", "/v1/schedules"))["schedules"]
    await asked(here, "GET", "/v1/schedules/{id}", id="pears")
    await asked(here, "POST", "/v1/schedules/{id}/{verb}", id="pears", verb="cancel")


async def test_answers_about_people_and_entities_are_as_it_says(here: Here) -> None:
    said = {"role": "user", "text": "I moved to Lisbon with Carla in May.", "key": "1"}
    recorded = {"conversation": "porch", "messages": [said]}
    assert (await here.one.client.post("/v1/lanes:record", json=recorded, headers=ANN)).status_code == 201
    await asked(here, "GET", "/v1/people")
    joined = await asked(here, "POST", "/v1/people/join", {"names": ["library:ann:ann", "http:default:ann"]})
    assert len(joined["person"]["identities"]) == 2
    assert (await asked(here, "GET", "/v1/people"))["people"]
    entities = (await asked(here, "GET", "/v1/entities"))["entities"]
    saved = await asked(here, "POST", "/v1/memories", {"text": "The gate is painted green"})
    await asked(here, "POST", "/v1/memories/{id}/widen", {"to": "global", "reason": "to show it"}, id=saved["id"])
    for one in entities[:3]:
        [page] = (await asked(here, "GET", f"/v1/entities/page?name={one['key']}"))["pages"]
        assert page["messages"] or page["facts"]


async def test_answers_to_clients_of_mem0_are_as_it_says(here: Here) -> None:
    at, one = "/compat/mem0/memories", "/compat/mem0/memories/{id}"
    given = {"messages": "The boat is in the shed", "user_id": "eve", "infer": False, "metadata": {"a": [1]}}
    [added] = (await asked(here, "POST", at, given))["results"]
    assert (await asked(here, "GET", f"{at}?user_id=eve"))["results"]
    assert (await asked(here, "POST", "/compat/mem0/search", {"query": "boat", "user_id": "eve"}))["results"]
    assert (await asked(here, "GET", one, id=added["id"]))["metadata"]["a"] == [1]
    done = await asked(here, "PUT", one, {"text": "The boat is in the barn"}, id=added["id"])
    assert len(await asked(here, "GET", f"{one}/history", id=done["id"])) == 2
    await asked(here, "DELETE", one, id=done["id"])
    await asked(here, "DELETE", f"{at}?user_id=eve")


async def test_refusals_are_problems_as_it_says(one: Site, described: dict[str, Any]) -> None:
    refused = await one.client.get("/v1/status")
    assert refused.status_code == 401
    [content] = described["paths"]["/v1/status"]["get"]["responses"]["default"]["content"].values()
    check(described, content["schema"], refused.json())
