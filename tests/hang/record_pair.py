"""Records two launches, of which the second begins early: ``python -m tests.hang.record_pair FOLDER [TIMES]``.

The kernels of ``tests/ptx/dependent_launch/pair.cu``, right and wrong, as :mod:`tests.hang.record_words` records grids.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from hwkernels.rewriter import assemble, instrument
from pipesim.answers.launch_sequence.check import check_sequence
from pipesim.answers.views.sequence import SequenceReport
from pipesim.launches.record.gather import compare_with_program, trace_of
from pipesim.launches.record.preparation import rewrite_options
from pipesim.ptx.launch.file import launch_json
from pipesim.ptx.launch.values import Launch, Number, Parameter, Pointer
from pipesim.trace.schema import EARLIER_KERNELS, ORIGIN, EventKind, Trace
from tests.hang.record_words import ZEROS, Gpu, compiled
from tests.support.paths import ROOT

SOURCE = ROOT / "tests" / "ptx" / "dependent_launch" / "pair.cu"
CTAS, THREADS, VALUE = 4, 64, 3
GIVEN: dict[str, tuple[str | int | tuple[str, int], ...]] = {"stores": ("x", ("words", 0), VALUE), "loads": ("x", "y")}


def ptx_of(*, wrong: bool) -> str:
    """The PTX of both kernels."""
    return compiled(SOURCE, f"-DWRONG={int(wrong)}")


def launch_of(name: str) -> Launch:
    """The launch of one of them."""
    met, value = Parameter("met", ZEROS), Parameter("value", Number("s32", VALUE))
    given = (met, value) if name == "stores" else (Parameter("y", Pointer()),)
    return Launch(name, (CTAS, 1, 1), (THREADS, 1, 1), parameters=(Parameter("x", Pointer()), *given))


def sequence_of(folder: Path, ptx: str) -> SequenceReport:
    """What is said of the two launches in this order; their files are in the folder."""
    (folder / "pair.ptx").write_text(ptx)
    steps = []
    for name, buffers in (("stores", {"x": "x", "met": "met"}), ("loads", {"x": "x", "y": "y"})):
        (folder / f"{name}.json").write_text(launch_json(launch_of(name)))
        files = {"ptx": "pair.ptx", "launch": f"{name}.json", "stream": "s", "buffers": buffers}
        steps.append(files | {"programmatic": name == "loads"})
    file = folder / "launches.json"
    file.write_text(json.dumps({"format": "pipesim-launches", "version": 1, "sequence": steps}))
    return check_sequence(file)


class Overlap(NamedTuple):
    """Readings of the device's timer, in ns: the end of the first launch, the begin of the second, and where each wait
    of the second returned.
    """

    ended: int
    began: int
    waited: tuple[int, ...]


def overlap_of(first: Trace, second: Trace) -> Overlap:
    """When the launches of two traces of one device began and ended."""
    ended = max(each.anchors[-1].globaltimer_ns for each in first.meta.ctas) + first.meta.extra[ORIGIN]
    sites = [n for n, site in enumerate(second.meta.sites) if site.barrier == EARLIER_KERNELS]
    returns = [n for n in sites if second.meta.sites[n].kind is EventKind.SPIN_RETURN]
    rows = [n for n, site in enumerate(second.events.site) if site in returns]
    began = second.meta.extra[ORIGIN]
    return Overlap(ended, began, tuple(began + int(second.events.time_ps[row]) // 1000 for row in rows))


def main() -> int:
    """1 if a launch shows something else than its program."""
    folder, times = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    gpu, wrong_ones = Gpu(), 0
    for wrong in (False, True):
        into = folder / ("wrong" if wrong else "right")
        into.mkdir(parents=True, exist_ok=True)
        ptx = ptx_of(wrong=wrong)
        shared = [each for pair in sequence_of(into, ptx).pairs for each in pair.shared]
        print(into.name, [(each.promise.value, each.missing) for each in shared], flush=True)
        made = {
            name: instrument(ptx, name, launch_of(name), rewrite_options(stop_flag=False, waits_only=False))
            for name in GIVEN
        }
        cubins = {name: assemble(each.ptx, name).cubin for name, each in made.items()}
        seen: Counter[str] = Counter()
        gaps: list[tuple[int, ...]] = []
        for number in range(times):
            places = gpu.places()
            loaded = {name: gpu.load(made[name], cubins[name]) for name in GIVEN}
            for name, kernel in loaded.items():
                gpu.launch(kernel, launch_of(name), GIVEN[name], places, early=name == "loads")
            buffers = {name: gpu.finish(kernel) for name, kernel in loaded.items()}
            y = (ctypes.c_float * (CTAS * THREADS))()
            gpu.call("cuMemcpyDtoH_v2", y, ctypes.c_uint64(places["y"]), ctypes.c_size_t(4 * len(y)))
            said = [f"{sum(each == 2 * VALUE for each in y)} right"]
            traces = {}
            for name, buffer in buffers.items():
                (into / f"{name}.{number}.records").write_bytes(buffer.encode())
                try:
                    traces[name] = trace_of(ptx, launch_of(name), buffer)
                    said.append(compare_with_program(ptx, launch_of(name), traces[name], name).agreement.name)
                except Exception as error:  # noqa: BLE001  # the other launches are wanted, too
                    said.append(repr(error))
            wrong_ones += said[1:] != ["CONFORMS"] * 2
            if len(traces) == len(buffers):
                ended, began, waited = overlap_of(*traces.values())
                gaps.append((began - ended, *(each - ended for each in waited)))
                said += ["overlap" * (began < ended), f"waits {all(each >= ended for each in waited)}"]
            seen[" ".join(said)] += 1
        print(into.name, dict(seen), sorted(gaps), flush=True)
    return 1 if wrong_ones else 0


if __name__ == "__main__":
    sys.exit(main())
