"""Memory over HTTP, as its owner reads it: searched with filters, listed, and one by one with its history."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.http_cast import site


async def test_memory_is_searched_listed_and_read(tmp_path: Path) -> None:
    async with site(tmp_path, answering=False) as here:
        for text, kind in (("Ann lives in Lisbon.", "fact"), ("Ann prefers tea in Lisbon.", "preference")):
            await here.instance.services.memories.add(text, kind)

        async def read(path: str, **query: str) -> dict[str, object]:
            answer = await here.client.get(path, params=query, headers=here.owner)
            assert answer.status_code == 200, answer.text
            return dict(answer.json())

        found = (await read("/v1/memories", query="who lives in Lisbon?"))["hits"]
        assert isinstance(found, list)
        assert found[0]["memory"]["text"] == "Ann lives in Lisbon."
        kept = (await read("/v1/memories", query="Lisbon", kind="preference", limit="1"))["hits"]
        assert isinstance(kept, list)
        assert [one["memory"]["kind"] for one in kept] == ["preference"]
        assert (await read("/v1/memories", query="Lisbon", until="2001-01-01"))["hits"] == []
        assert (await read("/v1/memories", query="Lisbon", archived="1"))["hits"] == []
        listed = (await read("/v1/memories", kind="fact"))["memories"]
        assert isinstance(listed, list)
        assert [one["text"] for one in listed] == ["Ann lives in Lisbon."]
        memory = found[0]["memory"]["id"]
        await here.instance.services.memories.edit(
            (await here.instance.services.search.get(memory)).id, "Ann lives in Rome.", ""
        )
        one = await read(f"/v1/memories/{memory}")
        versions = one["history"]
        assert isinstance(versions, list)
        assert [version["text"] for version in versions] == ["Ann lives in Lisbon.", "Ann lives in Rome."]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("?query=x&kind=poem", 422),
        ("?query=x&since=May", 422),
        ("?query=x&since=2026-05-02&until=2026-05-01", 422),
        ("?query=x&archived=1&kind=fact", 422),
        ("?limit=0", 400),
        ("/mem_zzz", 404),
        ("/mem_01hz00000000a", 404),
    ],
)
async def test_a_bad_search_is_refused(tmp_path: Path, query: str, status: int) -> None:
    async with site(tmp_path, answering=False) as here:
        answer = await here.client.get(f"/v1/memories{query}", headers=here.owner)
        assert answer.status_code == status, answer.text
        assert answer.json()["title"]
        assert (await here.client.get(f"/v1/memories{query}")).status_code == 401
