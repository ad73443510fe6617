"""Launch files (docs/launch-file.md): those of the kernels in the tests and of small ones, with mutated members.

A verdict is confirmed as that of a kernel.
"""

import json
from random import Random
from typing import Any

from tools.fuzz.cases import Case
from tools.fuzz.kinds import kernels
from tools.fuzz.mutate import INTEGERS, as_json, damaged, mutated, value

_SIZES: tuple[Any, ...] = (
    [],
    [0],
    [1],
    [2, 2],
    [1, 1, 1],
    [1, 1, 1, 1],
    [2**31 - 1] * 3,
    [2**31],
    [-1],
    [1024],
    [1025],
    [33],
    [16],
    3,
    "1",
)
_POLICIES: tuple[Any, ...] = (
    {},
    {"tile_counter": 2**63 - 1},
    {"launch_control": 10**9},
    {"launch_control": -1},
    {"lock_failures": 10**6},
    {"more": 1},
    [],
    None,
)


def make(rng: Random) -> Case:
    """A launch with one to three mutations, of a kernel that is right."""
    text, right = kernels.seed(rng)
    document: Any = json.loads(right)
    said = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        document, words = _mutated(document, rng)
        said.append(words)
        if not isinstance(document, dict):
            break
    data = as_json(document, rng)
    if rng.random() < 0.08:
        data, words = damaged(data, rng)
        said.append(words)
    return kernels.case(text.encode(), data, ", ".join(said), rng)


def make_sequence(rng: Random) -> Case:
    """Launches in their order with one to three mutations, of kernels that are right."""
    files: dict[str, bytes] = {}
    steps: list[Any] = []
    for n in range(2):
        text, right = kernels.seed(rng)
        files |= {f"{n}.ptx": text.encode(), f"{n}.json": right}
        buffers = {str(rng.choice((0, 8, "source"))): rng.choice(("a", "a+64", "b"))}
        steps.append({"ptx": f"{n}.ptx", "launch": f"{n}.json", "stream": rng.choice("12"), "buffers": buffers})
    order: list[Any] = [steps[0], {"record": "e", "stream": "1"}, {"wait": "e", "stream": "2"}, steps[1]]
    document: Any = {"format": "pipesim-launches", "version": 1, "sequence": order}
    said = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        if isinstance(document, dict) and document:
            document, words = mutated(document, rng)
            said.append(words)
    more = rng.choice(("--json", "", "--format github", "--json --time-limit 5", "--max-memory 2G"))
    line = ("check", "--sequence", "s.json", *more.split())
    return Case(", ".join(said), files | {"s.json": as_json(document, rng)}, line)


def _mutated(document: Any, rng: Random) -> tuple[Any, str]:
    """A copy with one mutation: of a size, of a policy, of a parameter, or of any member."""
    parameters = document.get("parameters") if isinstance(document, dict) else None
    match rng.choice(("size", "policies", "parameter", "contents", "any", "any")):
        case "size":
            name = rng.choice(("grid", "block", "cluster", "dynamic_shared_bytes", "registers_per_thread"))
            return document | {name: rng.choice((*_SIZES, rng.choice(INTEGERS)))}, name
        case "policies":
            return document | {"policies": rng.choice(_POLICIES)}, "policies"
        case "parameter" if isinstance(parameters, list) and parameters:
            at = rng.randrange(len(parameters))
            changed = [*parameters]
            changed[at : at + 1] = rng.choice(([], [parameters[at]] * 2, [_content(rng, 0)], [value(rng)]))
            return document | {"parameters": changed}, f"parameter {at}"
        case "contents" if isinstance(parameters, list) and parameters:
            at = rng.randrange(len(parameters))
            pointer = {"kind": "pointer", "contents": [_content(rng, 1) | {"offset": _offset(rng)} for _ in range(3)]}
            return document | {"parameters": [*parameters[:at], pointer, *parameters[at + 1 :]]}, f"contents of {at}"
        case _:
            return mutated(document, rng)


def _offset(rng: Random) -> Any:
    return rng.choice((0, 4, 8, 64, 2**20, 2**32, 2**39, 2**40 - 8, 2**40, rng.choice(INTEGERS)))


def _content(rng: Random, depth: int) -> dict[str, Any]:
    """A parameter of some kind, perhaps with others inside."""
    inner = [_content(rng, depth + 1) | {"offset": _offset(rng)} for _ in range(2)] if depth < 3 else []
    kinds: tuple[dict[str, Any], ...] = (
        {"kind": "value", "type": rng.choice(("u8", "u32", "s64", "f16", "f64", "b128")), "value": value(rng)},
        {"kind": "value", "type": "u32", "value": None},
        {"kind": "array", "type": "u32", "values": [rng.choice(INTEGERS) for _ in range(rng.choice((0, 3, 3)))]},
        {"kind": "array", "type": "u64", "values": [1] * rng.choice((10, 200_000))},
        {"kind": "pointer", "align": rng.choice((1, 3, 2**30, 2**62)), "contents": inner},
        {"kind": "struct", "size": rng.choice((1, 8, 32_764, 2**40)), "fields": inner},
        {"kind": "tensor_map", "element": rng.choice(("bf16", "f32", "x")), "dims": [rng.choice(INTEGERS)] * 2,
         "box": [rng.choice((1, 64, 65_536)), rng.choice((1, 256))], "strides": [rng.choice(INTEGERS)]},
        {"kind": "tensor_map"},
        {"kind": rng.choice(("", "pointers", "VALUE"))},
    )  # fmt: skip
    return rng.choice(kinds)
