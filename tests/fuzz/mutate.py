"""The mutator: what copying, editing, cutting off and malice make of bytes."""

from __future__ import annotations

import random
import re
import struct

#: Numbers at which sizes overflow, signs change, or memory ends.
EDGES = (0, 1, 2, 127, 128, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32,
         2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1)  # fmt: skip
WORDS = (
    b"", b"-", b"-1", b"nan", b"NaN", b"inf", b"-inf", b"1e999", b"1_000", b"0x10", b"\x00",
    b"\xff\xfe", b"'", b'"', b'""', b",", b";", b"\t", b"\r\n", b"\n", b":", b"#", b"=1+1",
    b"null", b"{}", b"[]", b"true", b"1e5", b"2000000000", b"99999999999999999999999",
    "\u202e\u0645".encode(), b" ", b"qid:1", b"NA",
)  # fmt: skip


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Return the content after one to four changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        content = rng.choice(CHANGES)(content, rng)
    return content


def _place(content: bytes, rng: random.Random) -> int:
    # Heads and tails hold the sizes, so half of the changes are made there.
    end = len(content)
    near = rng.randrange(min(end, 200) + 1)
    return rng.choice((rng.randrange(end + 1), near, end - near))


def _flip(content: bytes, rng: random.Random) -> bytes:
    if not content:
        return content
    place = min(_place(content, rng), len(content) - 1)
    changed = content[place] ^ (1 << rng.randrange(8))
    return content[:place] + bytes([changed]) + content[place + 1 :]


def _cut(content: bytes, rng: random.Random) -> bytes:
    return content[: _place(content, rng)]


def _remove(content: bytes, rng: random.Random) -> bytes:
    place = _place(content, rng)
    return content[:place] + content[place + rng.choice((1, 4, 8, 40)) :]


def _repeat(content: bytes, rng: random.Random) -> bytes:
    place = _place(content, rng)
    part = content[place : place + rng.choice((1, 8, 64, 512))]
    return content[:place] + part * rng.choice((2, 2, 16)) + content[place:]


def _insert(content: bytes, rng: random.Random) -> bytes:
    place = _place(content, rng)
    return content[:place] + rng.choice(WORDS) + content[place:]


def _number(content: bytes, rng: random.Random) -> bytes:
    """Write a number at which sizes overflow over some bytes, in one of the usual widths."""
    place, width = _place(content, rng), rng.choice((1, 2, 4, 8))
    number = rng.choice(EDGES) % 2 ** (8 * width)
    packed = number.to_bytes(width, rng.choice(("little", "little", "big")))
    return content[:place] + packed + content[place + width :]


def _real(content: bytes, rng: random.Random) -> bytes:
    place = _place(content, rng)
    value = rng.choice((float("nan"), float("inf"), -1.0, 1e308, 5e-324))
    return content[:place] + struct.pack("<d", value) + content[place + 8 :]


def _digits(content: bytes, rng: random.Random) -> bytes:
    """Put another number, or a word, for digits that stand in the text."""
    found = list(re.finditer(rb"\d+", content[:4096]))
    if not found:
        return _number(content, rng)
    match = rng.choice(found)
    put = rng.choice((str(rng.choice(EDGES)).encode(), rng.choice(WORDS)))
    return content[: match.start()] + put + content[match.end() :]


def _swap(content: bytes, rng: random.Random) -> bytes:
    """Exchange two parts, as if blocks came back from the disk in another order."""
    if len(content) < 4:
        return content
    first, second = sorted(rng.sample(range(len(content)), 2))
    size = min(rng.choice((4, 16, 512)), second - first)
    one, two = content[first : first + size], content[second : second + size]
    middle = content[first + size : second]
    return content[:first] + two + middle + one + content[second + size :]


CHANGES = (_flip, _flip, _cut, _remove, _repeat, _insert, _number, _number, _real, _digits,
           _digits, _swap)  # fmt: skip
