"""State how far simulated times are off measured ones: ``python tools/accuracy.py``, after a change of the model.

The recordings to which no profile was fitted (``traces/split.json``: held out and sealed) are compared as ``verify``
does. The errors of those that lie between the least and the greatest fitted value of every parameter are written to the
built-in profiles, and printed beside those that lie outside. About five minutes of one core.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from pipesim.conform.compare import times_of
from pipesim.model.ending import Ending
from pipesim.targets import find
from pipesim.timed.profile import FOLDER, StatedError, profile_for, profile_names
from pipesim.trace.files import read_trace
from pipesim.trace.library import device_slug, stored_traces, trace_folder
from pipesim.trace.schema import TraceMeta
from pipesim.trace.split import FILE, Split, SplitPart, read_split

ENOUGH = 8  #: recordings from which an error is stated: the worst of fewer says little about the next one


@dataclass(frozen=True)
class LaunchClass:
    """Recordings that have one stated error: ``figure`` of ``kernel`` on a device, launches of ``ctas``; ``inside``:
    whether every parameter lies between its least and greatest fitted value, ``params``.
    """

    device: str
    kernel: str
    figure: str
    ctas: tuple[int, int]
    inside: bool
    params: tuple[tuple[str, tuple[int, int]], ...]

    def stated(self, off: Sequence[int]) -> StatedError:
        """What these deviations state, in thousandths."""
        sizes = sorted(map(abs, off))
        middle = sizes[len(sizes) // 2]
        return StatedError(self.kernel, self.figure, self.ctas, dict(self.params), len(sizes), middle, sizes[-1])


def deviations(folder: Path, split: Split, device: str) -> dict[LaunchClass, list[int]]:
    """How far each recording of ``device`` that no profile was fitted to is off, by class."""
    found = [
        (stored, split.part_of_trace(stored.meta))
        for stored in stored_traces(folder)
        if _comparable(stored.meta) and device in device_slug(stored.meta.device.name)
    ]
    table: defaultdict[str, defaultdict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for stored, part in found:
        for name, value in stored.meta.params.items() if part is SplitPart.FIT else ():
            table[stored.meta.protocol][name].add(value)
    classes: defaultdict[LaunchClass, list[int]] = defaultdict(list)
    for stored, part in found:
        meta = stored.meta
        if part is SplitPart.FIT or not table[meta.protocol]:
            continue
        compared = times_of(find(meta.protocol).build(meta.params, grid=meta.grid), read_trace(stored.path))
        if compared.off_permille is not None:
            ranges = {name: (min(values), max(values)) for name, values in sorted(table[meta.protocol].items())}
            sms = profile_for(meta.device.name).sms
            ctas = (1, sms // 2) if meta.grid <= sms // 2 else (sms // 2 + 1, sms)
            inside = all(low <= meta.params[name] <= high for name, (low, high) in ranges.items())
            key = LaunchClass(device, meta.protocol, compared.figure, ctas, inside, tuple(ranges.items()))
            classes[key].append(compared.off_permille)
    return dict(classes)


def state(folder: Path, split: Split) -> Iterator[str]:
    """Write what the recordings show to the built-in profiles; a line for each class."""
    for name in profile_names():
        classes = deviations(folder, split, name)
        for each in sorted(classes, key=lambda one: (one.kernel, one.figure, not one.inside, one.ctas)):
            error = each.stated(classes[each])
            where = f"{error.ctas[0]:>3} to {error.ctas[1]:<3} CTAs {'inside' if each.inside else 'outside':<7}"
            numbers = f"median {error.median_permille / 10:>5.1f} % worst {error.worst_permille / 10:>5.1f} %"
            yield f"{name}  {each.kernel:<22} {each.figure:<17} {where} {error.configurations:>4} {numbers}"
        path = FOLDER / f"{name}.json"
        document = json.loads(path.read_text(encoding="utf-8"))
        document["errors"] = [asdict(each) for each in stated_errors(classes)]
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def stated_errors(classes: Mapping[LaunchClass, Sequence[int]]) -> list[StatedError]:
    """What a profile states: of the classes inside the table of fitted values that have recordings enough."""
    found = [each.stated(off) for each, off in classes.items() if each.inside and len(off) >= ENOUGH]
    return sorted(found, key=lambda each: (each.kernel, each.figure, each.ctas))


def _comparable(meta: TraceMeta) -> bool:
    return meta.source == "hardware" and meta.status is Ending.FINISHED and not (meta.fault or meta.window)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the errors, and print them."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args(
        arguments
    )
    for line in state(trace_folder(), read_split(trace_folder() / FILE)):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
