"""A memory store of schema 1 that names an endpoint with its password forgets the password and keeps the vectors."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from tests.migration.files import first_schema, rows

from keepsaid.adapters.embedders.endpoint import revision_of
from keepsaid.adapters.sql.memory.rows import space_names
from keepsaid.adapters.sql.query import every, load
from keepsaid.adapters.sqlite.connection import open_writer
from keepsaid.adapters.sqlite.integrity import migrate
from keepsaid.domain.memory import VectorSpace
from keepsaid.text.normal import digest

VECTORS = load("memory_vectors")
ADDRESS = "https://bob:{}@vectors.test/v1"
INSERT = "INSERT INTO space (model, revision, dimension, weights_hash, created_at) VALUES (?, ?, 3, ?, 0)"
PASSWORDS = ("wordthatmustgo", "anothersuchword")


def test_the_password_of_an_endpoint_leaves_the_store_and_its_vectors_stay(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    logins = [("any", ADDRESS.format(password)) for password in PASSWORDS]
    with closing(open_writer(path)) as db:
        first_schema(db, "memory")
        for model, revision in (*logins, ("minilm", "a@b"), ("other", "http://x/v1")):
            db.execute(INSERT, (model, revision, digest(revision, model)))
        migrate(db, path, "memory")
        address = revision_of(ADDRESS.format("wordoftoday"))
        now = VectorSpace("any", address, 3, digest(address, "any"))
        assert [row[0] for row in every(db, VECTORS["space"], space_names(now))] == [1]
    assert rows(path, "SELECT id, revision FROM space ORDER BY id") == [
        (1, "https://vectors.test/v1"),
        (2, "https://vectors.test/v1"),
        (3, "a@b"),
        (4, "http://x/v1"),
    ]
    left = path.read_bytes()
    assert not any(password.encode() in left for password in PASSWORDS)


def test_an_endpoint_is_named_without_its_login() -> None:
    named = {
        ADDRESS.format("pass"): "https://vectors.test/v1",
        "https://token@vectors.test/v1/": "https://vectors.test/v1",
        "http://127.0.0.1:9/v1": "http://127.0.0.1:9/v1",
        "http://[::1]:9/v1?user=a@b": "http://[::1]:9/v1?user=a@b",
    }
    assert {address: revision_of(address) for address in named} == named
