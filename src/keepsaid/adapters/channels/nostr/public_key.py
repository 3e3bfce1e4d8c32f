"""The public key of an account from its secret key, without nostr-sdk: an idle account needs no more (NIP-01, NIP-19).

The library takes 9 MB; it is loaded with the first event that is signed, opened or checked. The arithmetic is that of
secp256k1 (SEC 2). The same operations run for every secret key, once a start, and nobody outside can time them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_P: Final = 2**256 - 2**32 - 977
_N: Final = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141
_GX: Final = 0x79BE667E_F9DCBBAC_55A06295_CE870B07_029BFCDB_2DCE28D9_59F2815B_16F81798
_GY: Final = 0x483ADA77_26A3C465_5DA4FBFC_0E1108A8_FD17B448_A6855419_9C47D08F_FB10D4B8
_B3: Final = 21
"""The field, the order of the group, its generator, and three times the constant of the curve y² = x³ + 7."""

_SECRET: Final = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)
_KEY_BYTES, _CHECK_WORDS = 32, 6
_WORDS: Final = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_GENERATOR: Final = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
"""Letters and checksum of bech32 (BIP-173)."""

_Point = tuple[int, int, int]


def public_key_of(secret: str) -> str:
    """The public key of a secret key, `nsec1...` or 64 hexadecimal digits, as 64 hexadecimal digits (BIP-340).

    Raises ValueError for another form, and for a number that is not that of a key.
    """
    digits = secret if _SECRET.fullmatch(secret) else _bytes_of("nsec", secret).hex()
    number = int(digits, 16)
    if not 0 < number < _N:
        raise ValueError("the number is not that of a key")
    low, high = (0, 1, 0), (_GX, _GY, 1)
    for place in reversed(range(_KEY_BYTES * 8)):
        both = _sum(low, high)
        low, high = (both, _sum(high, high)) if number >> place & 1 else (_sum(low, low), both)
    x, _, z = low
    return f"{x * pow(z, -1, _P) % _P:064x}"


def npub_of(public: str) -> str:
    """A public key of 64 hexadecimal digits as people write it, `npub1...` (NIP-19)."""
    words = _regroup(list(bytes.fromhex(public)), 8, 5)
    check = _checksum("npub", [*words, *[0] * _CHECK_WORDS]) ^ 1
    words += [check >> 5 * place & 31 for place in reversed(range(_CHECK_WORDS))]
    return f"npub1{''.join(_WORDS[word] for word in words)}"


def _bytes_of(kind: str, text: str) -> bytes:
    """The key in a text of bech32 that begins with `kind`. Raises ValueError."""
    name, _, rest = (text.lower() if text.isupper() else text).rpartition("1")
    words = [_WORDS.find(one) for one in rest]
    if name != kind or len(words) < _CHECK_WORDS or -1 in words or _checksum(name, words) != 1:
        raise ValueError(f"not a key in bech32 that begins with {kind}1")
    found = _regroup(words[:-_CHECK_WORDS], 5, 8)
    if len(found) < _KEY_BYTES or any(found[_KEY_BYTES:]):
        raise ValueError("not a key of 32 bytes")
    return bytes(found[:_KEY_BYTES])


def _checksum(name: str, words: Sequence[int]) -> int:
    """The checksum of a text: 1 where it is right (BIP-173)."""
    found = 1
    for word in (*(ord(one) >> 5 for one in name), 0, *(ord(one) & 31 for one in name), *words):
        top, found = found >> 25, (found & 0x1FFFFFF) << 5 ^ word
        for place, value in enumerate(_GENERATOR):
            found ^= value if top >> place & 1 else 0
    return found


def _regroup(numbers: Sequence[int], bits: int, into: int) -> list[int]:
    """The same bits in numbers of another size; the last is filled with zeros."""
    digits = "".join(f"{number:0{bits}b}" for number in numbers)
    return [int(digits[place : place + into].ljust(into, "0"), 2) for place in range(0, len(digits), into)]


def _sum(one: _Point, other: _Point) -> _Point:
    """The sum of any two points, in projective coordinates (Renes, Costello, Batina 2015, algorithm 7)."""
    (x1, y1, z1), (x2, y2, z2) = one, other
    xs, ys, zs = x1 * x2, y1 * y2, _B3 * z1 * z2
    xy, yz = x1 * y2 + x2 * y1, y1 * z2 + y2 * z1
    xz = _B3 * (x1 * z2 + x2 * z1)
    more, less = (ys + zs) % _P, (ys - zs) % _P
    return (
        (xy * less - yz * xz) % _P,
        (less * more + 3 * xs * xz) % _P,
        (more * yz + 3 * xs * xy) % _P,
    )
