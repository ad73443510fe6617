"""Build the corpus of real kernels: PTX and a launch file each, outside of the repository.

With ``--table`` nothing is built: every kernel of the fixed list is checked, and the table is printed; ``--write`` puts
it also into docs/kernels-in-the-wild.md. Each kernel has a process of its own, which is ended after ``--seconds``.
"""

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tools.corpus.cutlass import cutlass
from tools.corpus.deep_gemm import deep_gemm
from tools.corpus.environment import CACHE, ROOT
from tools.corpus.kernel_list import kernels_listed, twins
from tools.corpus.modular import modular
from tools.corpus.python_kernels import cute, gluon, triton
from tools.corpus.tilelang import tilelang
from tools.corpus.verdicts import KernelVerdict, rows, summary, verdicts_of

#: What builds a family: it writes into a folder, and says what it wrote or what was wrong.
FAMILIES: Mapping[str, Callable[[Path], Iterator[str]]] = {
    "twins": twins,
    "triton": triton,
    "gluon": gluon,
    "cutlass": cutlass,
    "cute": cute,
    "modular": modular,
    "tilelang": tilelang,
    "deep_gemm": deep_gemm,
}


#: Kernels of ours that the tests read: their PTX is in the repository.
COMMITTED = (
    "gluon/scale_pipelined_s3-sm_90a",
    "gluon/scale_ws_s3-sm_90a",
    "gluon/scale_watched-sm_90a",
    "gluon/gemm_wgmma_ws-sm_90a",
    "gluon/gemm_tcgen05-sm_100a",
    "gluon/gemm_clc-sm_100a",
    "triton/gemm_tma_ws-sm_100a",
)


def copied(folder: Path) -> int:
    """Copy the files that the tests read out of the corpus."""
    for stem in COMMITTED:
        for suffix in (".ptx", ".json"):
            source = folder / f"{stem}{suffix}"
            (ROOT / "tests" / "ptx" / "kernels" / source.name).write_bytes(source.read_bytes())
    return 0


PAGE = ROOT / "docs" / "kernels-in-the-wild.md"
_TABLE = re.compile(r"(<!-- corpus -->\n).*?(<!-- end of the corpus -->)", re.DOTALL)


def tabled(folder: Path, families: Sequence[str], seconds: float) -> list[str]:
    """Check the kernels of the list, each named as its verdict is known; the lines of the page."""
    found: list[KernelVerdict] = []
    for each in verdicts_of(folder, list(kernels_listed(tuple(families))), seconds):
        print(f"{each.family:8} {each.kernel + '-' + each.arch:40} {each.verdict:10} {each.seconds:7.2f} s", flush=True)
        for why in each.why:
            print(f"{'':10}{why}", flush=True)
        found.append(each)
    return [*summary(found), "", *rows(found)]


def main(argv: Sequence[str] | None = None) -> int:
    """Build what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", help=f"of {', '.join(FAMILIES)}; all without one")
    parser.add_argument("--to", type=Path, default=CACHE / "kernels", metavar="FOLDER", help="where to write")
    parser.add_argument("--tests", action="store_true", help="copy the small kernels of ours to tests/ptx/kernels")
    parser.add_argument("--table", action="store_true", help="check the kernels instead, and print the table")
    parser.add_argument("--write", action="store_true", help="and write it into docs/kernels-in-the-wild.md")
    parser.add_argument("--seconds", type=float, default=120, help="most of a kernel with --table, 120 if not given")
    given = parser.parse_args(argv)
    if given.table or given.write:
        lines = tabled(given.to, given.families, given.seconds)
        print("\n".join(lines))
        if given.write:
            text = PAGE.read_text(encoding="utf-8")
            PAGE.write_text(_TABLE.sub(lambda m: m[1] + "\n".join(lines) + "\n" + m[2], text), encoding="utf-8")
        return 0
    if given.tests:
        return copied(given.to)
    for family in given.families or FAMILIES:
        start = time.monotonic()
        for line in FAMILIES[family](given.to / family):
            print(f"{family:8} {line:50} {time.monotonic() - start:7.1f} s", flush=True)
            start = time.monotonic()
    return 0


if __name__ == "__main__":
    sys.exit(main())
