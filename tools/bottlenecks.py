"""What limits each recorded configuration, simulated and measured, by one rule: ``python tools/bottlenecks.py``.

A line for each trace in which the two differ, then the share of the same by kernel and device. ``--all`` prints every
trace.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from pipesim.conform.bottleneck import Bottleneck, bottleneck
from pipesim.conform.compare import launched
from pipesim.conform.timing import like
from pipesim.errors import PipesimError
from pipesim.model.ending import Ending
from pipesim.targets import find
from pipesim.timed.choice import profile_for
from pipesim.timed.engine import simulate
from pipesim.trace.files import read_trace
from pipesim.trace.library import StoredTrace, stored_traces, trace_folder
from pipesim.trace.sites import optional_of


@dataclass(frozen=True)
class Limited:
    """What limits one configuration, simulated with the cost of recording and measured; None: too short to say."""

    kernel: str
    device: str
    file: str
    simulated: Bottleneck | None
    measured: Bottleneck | None

    @property
    def same(self) -> bool:
        """True if both name the same, or neither names anything."""
        names = [each.name if each is not None else None for each in (self.simulated, self.measured)]
        return names[0] == names[1]


def limited(stored: StoredTrace) -> Limited | None:
    """Both sides of one recording; None for one that did not finish, or whose program cannot be made today."""
    meta = stored.meta
    if meta.source != "hardware" or meta.status is not Ending.FINISHED:
        return None
    try:
        program = find(meta.protocol).build(meta.params, grid=meta.grid)
    except PipesimError:
        return None
    measured = read_trace(stored.path)
    profile = profile_for(meta.device.name)
    simulated = simulate(launched(program, meta), profile, traced=True, also=optional_of(meta)).trace
    sides = bottleneck(like(simulated, measured)), bottleneck(measured)
    return Limited(meta.protocol, meta.device.name, stored.path.name, *sides)


def every(folder: Path) -> Iterator[Limited]:
    """All recordings of a folder that can be compared."""
    for stored in stored_traces(folder):
        found = limited(stored)
        if found is not None:
            yield found


def main() -> int:
    """Print the lines and the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, default=None, help="folder (default: the recorded traces)")
    parser.add_argument("--all", action="store_true", help="print every trace, not only those that differ")
    options = parser.parse_args()
    found = list(every(options.traces or trace_folder()))
    for each in found:
        if options.all or not each.same:
            print(f"{each.file}: simulated {_words(each.simulated)}, measured {_words(each.measured)}")
    for key in dict.fromkeys((each.kernel, each.device) for each in found):
        mine = [each.same for each in found if (each.kernel, each.device) == key]
        print(f"{key[0]} on {key[1]}: the same in {sum(mine)} of {len(mine)}")
    same = sum(each.same for each in found)
    print(f"all: the same in {same} of {len(found)}, {100 * same / max(len(found), 1):.1f} %")
    return 0


def _words(found: Bottleneck | None) -> str:
    if found is None:
        return "nothing"
    limit, name = found.name
    return f"{limit.name.lower()} {name} ({found.role} waits {found.waits_permille / 10:.1f} %)"


if __name__ == "__main__":
    sys.exit(main())
