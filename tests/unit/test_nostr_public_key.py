"""The public key of an account of Nostr is that of nostr-sdk, which is not loaded for it."""

from __future__ import annotations

import importlib
import random
import subprocess
import sys
from typing import Any

import pytest

from keepsaid.adapters.channels.nostr.public_key import npub_of, public_key_of

_ORDER = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141
_NIP_19 = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"
_NIP_19_HEX = "67dea2ed018072d675f5415ecfaed7d2597555e202d85b3d65ea4e58d2d92ffa"
_LOADED = """
import sys
from keepsaid.adapters.channels.nostr.channel import NostrChannel
from keepsaid.adapters.channels.nostr.keys import NostrKeys
from keepsaid.adapters.channels.nostr.listener import NostrListener
keys = NostrKeys(sys.argv[1])
print(keys.public, keys.npub(), "nostr_sdk" in sys.modules)
keys.sign(1, "", [], 1)
print("nostr_sdk" in sys.modules)
"""


def _numbers() -> list[int]:
    chance = random.Random("secret keys")
    return [1, 2, 3, _ORDER // 2, _ORDER - 1, *(chance.randrange(1, _ORDER) for _ in range(50))]


def test_public_key_is_that_of_the_library_in_every_form() -> None:
    sdk: Any = importlib.import_module("nostr_sdk")
    for number in _numbers():
        keys = sdk.Keys.parse(f"{number:064x}")
        public, nsec = keys.public_key(), keys.secret_key().to_bech32()
        for form in (f"{number:064x}", f"{number:064X}", nsec, nsec.upper()):
            assert public_key_of(form) == public.to_hex(), number
        assert npub_of(public.to_hex()) == public.to_bech32(), number


def test_example_of_nip_19_is_read() -> None:
    assert public_key_of(_NIP_19) == public_key_of(_NIP_19_HEX)


@pytest.mark.parametrize(
    "secret",
    [
        f"{_ORDER:064x}",
        "0" * 64,
        "²" * 64,
        "",
        "nsec1",
        "nsec1qqqqqq",
        _NIP_19[:-1],
        _NIP_19[:-1] + "q",
        _NIP_19 + "q",
        _NIP_19[:9] + _NIP_19[9:].upper(),
        _NIP_19.replace("nsec", "npub"),
        f"nostr:{_NIP_19}",
    ],
)
def test_key_that_the_library_refuses_is_refused(secret: str) -> None:
    sdk: Any = importlib.import_module("nostr_sdk")
    with pytest.raises(sdk.NostrSdkError):
        sdk.Keys.parse(secret)
    with pytest.raises(ValueError, match="key"):
        public_key_of(secret)


def test_library_is_loaded_with_the_first_event() -> None:
    command = [sys.executable, "-c", _LOADED, _NIP_19]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    public = public_key_of(_NIP_19)
    assert lines == [f"{public} {npub_of(public)} False", "True"]
