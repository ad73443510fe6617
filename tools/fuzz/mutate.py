"""Mutations that know a structure: of a JSON document and of bytes, and values that are easily handled wrongly."""

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any

from tests.support.hostile_names import HOSTILE

INTEGERS = (
    -(2**64), -(2**63) - 1, -(2**63), -(2**62), -(2**31), -2, -1, 0, 1, 2, 3, 7, 16, 31, 32, 33, 64, 255, 256, 1023,
    4095, 2**15, 2**16, 2**20, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**61, 2**62, 2**63 - 1, 2**63, 2**64,
    10**12, 10**30,
)  # fmt: skip
TEXTS = tuple(HOSTILE.values())
OTHERS: tuple[Any, ...] = (None, True, False, 0.5, -1.0, 1e308, "", "1", [], {}, [0], {"a": 1}, [[]], "none")

Path = tuple[Any, ...]


def value(rng: Random) -> Any:
    """A value of any type that JSON has."""
    return rng.choice(rng.choice((INTEGERS, INTEGERS, TEXTS, OTHERS)))


def near(number: int, rng: Random) -> int:
    """A number that is easily taken for this one, or one at an edge."""
    return rng.choice((number - 1, number + 1, number ^ 1, -number, 2 * number, number // 2, rng.choice(INTEGERS)))


def places(document: Any, at: Path = ()) -> Iterator[Path]:
    """The way to every member and item of a document."""
    if isinstance(document, dict):
        members: Any = document.items()
    elif isinstance(document, list):
        members = enumerate(document)
    else:
        return
    for key, each in members:
        yield (*at, key)
        yield from places(each, (*at, key))


def _container(document: Any, path: Path) -> Any:
    for key in path[:-1]:
        document = document[key]
    return document


def mutated(document: Any, rng: Random) -> tuple[Any, str]:
    """A copy of a document with one mutation, and what it is.

    Members of objects near the top are as likely as all the items of its lists together.
    """
    made = copy.deepcopy(document)
    every = list(places(made))
    shallow = [path for path in every if len(path) <= 2] or every
    path = rng.choice(rng.choice((every, shallow)))
    box, key = _container(made, path), path[-1]
    where = "/".join(map(str, path))
    choice = rng.choice(("near", "near", "value", "value", "delete", "twice", "swap", "other", "unknown", "deep"))
    if choice == "near" and type(box[key]) is int:
        box[key] = near(box[key], rng)
    elif choice == "delete":
        del box[key]
    elif choice == "twice" and isinstance(box, list):
        box.insert(key, copy.deepcopy(box[key]))
    elif choice == "swap" and len(box) > 1:
        second = rng.choice(list(range(len(box))) if isinstance(box, list) else list(box))
        box[key], box[second] = box[second], box[key]
    elif choice == "other":
        box[key] = copy.deepcopy(_container(made, other := rng.choice(every))[other[-1]])
    elif choice == "unknown" and isinstance(box, dict):
        box[rng.choice(TEXTS)] = value(rng)
    elif choice == "deep":
        nested: Any = value(rng)
        for _ in range(rng.choice((3, 50, 400))):
            nested = [nested]
        box[key] = nested
    else:
        choice, box[key] = "value", value(rng)
    return made, f"{choice} {where}"


def as_json(document: Any, rng: Random) -> bytes:
    """The text of a document, now and then spelled differently: the same, a constant that is not JSON, a key twice."""
    text = json.dumps(document, ensure_ascii=rng.random() < 0.5)
    if rng.random() < 0.03:
        text = text.replace("0", rng.choice(("NaN", "-Infinity", "1e400", "0x10", "01", "9" * 5_000)), 1)
    if rng.random() < 0.03 and text.startswith("{"):
        text = '{"version": 3, "format": "x", ' + text[1:]
    return text.encode("utf-8", "surrogatepass")


def damaged(data: bytes, rng: Random) -> tuple[bytes, str]:
    """Bytes as a copy, an editor or a disk may damage them, and how."""
    at = rng.randrange(len(data) + 1)
    end = min(len(data), at + rng.choice((1, 4, 64, 4096)))
    noise = rng.randbytes(rng.choice((1, 4, 64)))
    how = rng.choice(("cut", "removed", "bits", "noise", "twice", "deep", "bom", "utf-16", "null", "newlines", "empty"))
    match how:
        case "cut":
            return data[:at], how
        case "removed":
            return data[:at] + data[end:], how
        case "bits":
            flipped = bytes(byte ^ (1 << rng.randrange(8)) for byte in data[at:end])
            return data[:at] + flipped + data[end:], how
        case "noise":
            return data[:at] + noise + data[at:], how
        case "twice":
            return data + data, how
        case "deep":
            return data[:at] + rng.choice((b"[", b'{"a":', b"(", b"-")) * 60_000 + data[at:], how
        case "bom":
            return b"\xef\xbb\xbf" + data, how
        case "utf-16":
            return data.decode("utf-8", "replace").encode("utf-16"), how
        case "null":
            return data[:at] + b"\0" + data[at:], how
        case "newlines":
            return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\x0b", b"\xe2\x80\xa8"))), how
        case _:
            return b"", how
