"""Write which configurations may be fitted and which are held out: ``python tools/trace_split.py [--check]``.

Writes ``traces/split.json``: the rule below, and the part of every configuration that is stored or planned
(``tools/planned_captures.py``). ``--check`` writes nothing and ends with 1 if the file is not what it would be. The
rule was written down before anything was fitted to it, and is not changed afterwards: a change of it makes every error
that was reported until then worthless.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from hwkernels.capture import CaptureRequest
from pipesim.trace.library import stored_traces, trace_folder
from pipesim.trace.split import FILE, FORMAT, VERSION, LaunchedKernel, Rule, SplitPart
from tools.planned_captures import LATER, planned, planned_later

#: Values that are held out whole. Most lie between values that are fitted; a head of 64 columns (there are two sizes
#: only) and blocks of 64 columns lie beyond them.
VALUES: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "producer_consumer": {"stages": (3, 7), "tile_bytes": (8192, 12288), "consumer_warps": (3, 7)},
    "attention_sm90": {"stages": (3,), "depth": (64,)},
    "attention_sm90_fused": {"stages": (3, 9), "depth": (64,)},
    "cluster_multicast": {"stages": (3, 7), "own_bytes": (12288, 16384), "consumer_warps": (3,)},
    "epilogue_residual": {"stages": (3,), "slice_bytes": (4096,), "slices": (3,)},
    "gemm_sm90": {"stages": (5, 6), "block_n": (64,)},
    "persistent_scheduler": {"stages": (3, 6), "tile_bytes": (8192, 12288), "consumer_warps": (3,)},
}
#: What only the model is told of a kernel: its kernel is the same whatever they are.
IGNORED = ("atomic", "softmax")
#: Of 256: how many of the configurations with no such value are held out all the same. The salt is the first number at
#: which a third of every kernel's configurations is held out, stored and with the planned ones, and about half of these
#: are sealed (:func:`balanced`).
SHARE, SALT = 64, "9655"


def rule(salt: str = SALT) -> Rule:
    """How any configuration is assigned."""
    values = {kernel: {name: frozenset(values) for name, values in of.items()} for kernel, of in VALUES.items()}
    return Rule(salt, SHARE, frozenset(IGNORED), values)


def stored_configurations(of: Rule) -> set[LaunchedKernel]:
    """What is stored of the kernels of the registry, on any device."""
    metas = [stored.meta for stored in stored_traces(trace_folder())]
    return {of.configuration(m.protocol, m.params, m.grid) for m in metas if m.source == "hardware"}


@cache
def _drawn() -> tuple[CaptureRequest, ...]:
    return planned()


def planned_configurations(of: Rule) -> set[LaunchedKernel]:
    """What is still to be captured, or was captured since."""
    return {of.configuration(r.subject.name, r.params, r.ctas) for r in _drawn()}


def later_configurations(of: Rule) -> dict[LaunchedKernel, int]:
    """What was drawn when others had been read, apart from what the split had: with the numbers of the draws."""
    known = planned_configurations(of)
    found: dict[LaunchedKernel, int] = {}

    def fitted(request: CaptureRequest) -> bool | None:
        configuration = of.configuration(request.subject.name, request.params, request.ctas)
        return None if configuration in known or configuration in found else of.part(configuration) is SplitPart.FIT

    for number in LATER:
        for request in planned_later(number, fitted):
            found[of.configuration(request.subject.name, request.params, request.ctas)] = number
    return found


def balanced(of: Rule, stored: set[LaunchedKernel], later: set[LaunchedKernel]) -> bool:
    """A third to 60 % of each kernel's is held out, of those stored and of all; about half of these are sealed."""
    for kernel in VALUES:
        for group in (stored, stored | later):
            parts = Counter(of.part(each) for each in group if each.kernel == kernel)
            held = parts[SplitPart.HELD_OUT] + parts[SplitPart.SEALED]
            if not is_share(held, sum(parts.values())):
                return False
        if abs(parts[SplitPart.SEALED] - parts[SplitPart.HELD_OUT]) > max(2, held // 6):
            return False
    return True


def is_share(held: int, total: int) -> bool:
    """At least a third, and not so much that nothing is left to fit."""
    return total <= 3 * held and 5 * held <= 3 * total


def first_salt() -> str:
    """The first number that is balanced as a salt."""
    found = rule("0")
    stored, later = stored_configurations(found), planned_configurations(found)
    number = 0
    while not balanced(rule(str(number)), stored, later):
        number += 1
    return str(number)


def text() -> str:
    """The file: a line for each kernel's values and for each configuration, sorted."""
    of = rule()
    later = later_configurations(of)
    known = stored_configurations(of) | planned_configurations(of) | later.keys()
    rows = [_row(of, each, later) for each in sorted(known, key=lambda c: (c.kernel, c.ctas, c.params))]
    values = [f"{json.dumps(kernel)}: {json.dumps(each)}" for kernel, each in VALUES.items()]
    return f"""{{
 "format": {json.dumps(FORMAT)},
 "version": {VERSION},
 "decided": "2026-11-23, before any profile was fitted to more than producer_consumer",
 "rule": {{
  "salt": {json.dumps(of.salt)}, "share": {of.share}, "ignored": {json.dumps(IGNORED)},
  "values": {{
   {_lines(values, 3)}
  }}
 }},
 "configurations": [
  {_lines(rows, 2)}
 ]
}}
"""


def _row(of: Rule, each: LaunchedKernel, later: Mapping[LaunchedKernel, int]) -> str:
    part = of.part_later(each) if each in later else of.part(each)
    row = {"part": part.value, "kernel": each.kernel, "ctas": each.ctas, "params": dict(each.params)}
    return json.dumps(row | ({"draw": later[each]} if each in later else {}))


def _lines(each: Sequence[str], indent: int) -> str:
    return (",\n" + " " * indent).join(each)


def main() -> int:
    """Write it, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if the file is not what it would be")
    parser.add_argument("--salt", action="store_true", help="print the first salt that is balanced")
    options = parser.parse_args()
    path = trace_folder() / FILE
    if options.salt:
        print(first_salt())
        return 0
    if options.check:
        return int(not path.exists() or path.read_text(encoding="utf-8") != text())
    path.write_text(text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
