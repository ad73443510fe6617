"""Latency profiles (docs/latency-profile.md): the built-in ones with mutated values, members and text.

An accepted one is valid by the published schema, and a simulation of a right ring finishes on it: latencies change when
something happens, never what.
"""

import json
from functools import cache
from random import Random
from typing import Any

from jsonschema import Draft202012Validator

from pipesim.formats.schemas import schema
from pipesim.timed.profile import FOLDER, PROFILE_VERSION
from tools.fuzz.cases import Answer, Case, Confirm
from tools.fuzz.mutate import INTEGERS, as_json, damaged, mutated

_RING = "producer_consumer -p stages=2 -p tiles={tiles} -p tile_bytes=1024"


def make(rng: Random) -> Case:
    """A profile with one to three mutations."""
    document: Any = json.loads(rng.choice(sorted(FOLDER.glob("*.json"))).read_text(encoding="utf-8"))
    said = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        if rng.random() < 0.6 and isinstance(document, dict) and isinstance(document.get("values"), dict):
            name = rng.choice(sorted(document["values"]) or ["none"])
            document["values"][name] = rng.choice((0, 1, 10**6, 10**9, 10**12, 10**12 + 1, rng.choice(INTEGERS)))
            said.append(name)
        else:
            document, words = mutated(document, rng)
            said.append(words)
    data = as_json(document, rng)
    if rng.random() < 0.1:
        data, words = damaged(data, rng)
        said.append(words)
    ring = _RING.format(tiles=rng.choice((0, 1, 3, 5)))
    line = rng.choice(
        (
            f"run {ring} --profile p.json --json",
            f"run {ring} --profile p.json --json --recording --save-trace t.parquet",
            f"run {ring} --profile p.json --ctas 3",
            f"verify {ring} --no-hardware --profile p.json --json --time-limit 0.05",
        )
    )
    return Case(", ".join(said), {"p.json": data}, tuple(line.split()), confirm(data), ("t.parquet",))


def confirm(data: bytes) -> Confirm:
    """What confirms an answer that was computed with this profile."""

    def confirmed(answer: Answer) -> str | None:
        if answer.code == 2:
            return None
        known = schema("profile")["properties"]
        document = {name: each for name, each in json.loads(data.decode("utf-8")).items() if name in known}
        wrong = next(_validator().iter_errors(document), None)
        if wrong is not None and document["version"] == PROFILE_VERSION:
            return f"accepted, and not valid by its schema: {list(wrong.path)}"
        return "" if answer.code == 0 else f"exit code {answer.code}: a right ring does not finish with these latencies"

    return confirmed


@cache
def _validator() -> Draft202012Validator:
    return Draft202012Validator(schema("profile"))
