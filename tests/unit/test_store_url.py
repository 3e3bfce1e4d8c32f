"""The URL of the database: its password is shown nowhere, and clients hear nothing of it."""

from __future__ import annotations

import json

import pytest

from keepsaid.adapters.postgres.connection import PostgresPlace
from keepsaid.config import Config
from keepsaid.errors import ConfigError, StoreUnreachable
from keepsaid.interfaces.http.responses import problem
from keepsaid.text.normal import is_plain_url

SECRET = "S3cretPw"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://keepsaid@db.test/keepsaid",
        "postgresql://u:p%40w@h1:1,h2:2/db?sslmode=require&application_name=a%20b",
        "postgresql:///db?host=/run/postgresql",
        "postgresql://[::1]:5432/db",
        "redis://:pw@cache.test:6379/0",
        "unix:///run/redis.sock",
    ],
)
def test_a_url_whose_parts_are_clear(url: str) -> None:
    assert is_plain_url(url)


@pytest.mark.parametrize("sign", ["#", "?", "/", "@", "%", "%zz", " "])
def test_a_password_that_is_not_encoded_is_refused_and_not_shown(sign: str) -> None:
    url = f"postgresql://keepsaid:S3c{sign}retPw@127.0.0.1:55432/empty"
    assert not is_plain_url(url)
    with pytest.raises(ValueError, match="%40 %2F %3F %23 and %25") as found:
        Config.model_validate({"store": {"url": url}})
    assert "retPw" not in str(found.value)


def test_of_the_parameters_only_the_place_is_shown() -> None:
    place = PostgresPlace(f"postgresql://me:{SECRET}@127.0.0.1:1/db?user=me&password={SECRET}&host=/run/pg")
    assert str(place) == "postgresql://127.0.0.1:1/db?host=/run/pg"


@pytest.mark.parametrize(("owner", "title"), [(False, "the database cannot be reached"), (True, "db.test is away")])
def test_only_an_owner_hears_where_the_database_is(owner: bool, title: str) -> None:
    response = problem(StoreUnreachable("db.test is away"), owner=owner)
    assert (response.status_code, json.loads(bytes(response.body))["title"]) == (503, title)


def test_a_wrong_url_names_the_setting() -> None:
    with pytest.raises((ConfigError, ValueError), match=r"store.url"):
        Config.model_validate({"store": {"url": "mysql://db.test/x"}})
