"""Mutants of kernels' PTX: one line of synchronisation is dropped or changed, and none may be proved by mistake.

``python -m tools.ptx_mutants kernel.ptx ... [--most N] [--without-inval]`` prints a line for each mutant that is
proved, and a table: kind of change, refuted, unknown, proved. A mutant that is proved is either equivalent to the
kernel, because what was dropped is redundant, or a mistake of ours; which of them has to be argued for each.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipesim.errors import PipesimError
from pipesim.model.finding import Verdict
from pipesim.model.strictness import LENIENT
from pipesim.prove.check import check
from pipesim.ptx.extract import extract
from pipesim.ptx.launch.file import read_launch
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.text.read import read_module

_GUARD = r"(?P<guard>@!?[\w%$]+\s+)?"
_DROPPED = {
    "arrive": r"mbarrier\.arrive(?!\.expect_tx)[\w.:]*\s",
    "expect": r"mbarrier\.(arrive\.)?expect_tx[\w.:]*\s",
    "commit": r"(tcgen05\.commit|wgmma\.commit_group|cp\.async\.(bulk\.)?commit_group)",
    "wait_group": r"(wgmma|cp\.async\.bulk|cp\.async)\.wait_(group|all)",
    "copy": r"cp\.async\.bulk\.[\w.:]*mbarrier",
    "fence": r"fence\.",
    "barrier": r"(bar|barrier)\.(cta\.)?(sync|arrive)",
    "cluster": r"barrier\.cluster\.",
    "tensor_wait": r"tcgen05\.wait",
}
_TRY = re.compile(
    rf"^\s*{_GUARD}(?P<op>mbarrier\.(?:try|test)_wait[\w.:]*)\s+(?P<p>[\w%$]+)\s*,\s*(?P<at>\[[^\]]*\])\s*,"
    r"\s*(?P<parity>[\w%$]+)(?P<rest>[^;]*);"
)
_INIT = re.compile(rf"^\s*{_GUARD}(?P<op>mbarrier\.init[\w.:]*)\s+(?P<at>\[[^\]]*\])\s*,\s*(?P<count>[\w%$]+)\s*;")
_EXPECT = re.compile(
    rf"^\s*{_GUARD}(?P<op>mbarrier\.(?:arrive\.)?expect_tx[\w.:]*)\s+(?P<to>_\s*,|[\w%$]+\s*,)?\s*(?P<at>\[[^\]]*\])\s*,"
    r"\s*(?P<bytes>[\w%$]+)\s*;"
)


@dataclass(frozen=True)
class Mutant:
    """A changed text, what was changed, and the line."""

    kind: str
    line: int
    text: str


def mutants(text: str) -> Iterator[Mutant]:
    """Every mutant of a PTX text, in the order of its lines."""
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        for kind, changed in _changes(line):
            yield Mutant(kind, number, "\n".join((*lines[: number - 1], changed, *lines[number:])))


def _changes(line: str) -> Iterator[tuple[str, str]]:
    for kind, pattern in _DROPPED.items():
        if re.match(rf"^\s*{_GUARD}{pattern}", line) and line.rstrip().endswith(";"):
            yield f"{kind} dropped", "// dropped"
    if found := _TRY.match(line):
        g, op, p, at, parity, rest = (found[n] or "" for n in ("guard", "op", "p", "at", "parity", "rest"))
        yield "wait dropped", f"{g}setp.eq.u32 {p}, 0, 0;"
        if ".parity" in op:
            flipped = f"{{ .reg .b32 mutant; xor.b32 mutant, {parity}, 1; {g}{op} {p}, {at}, mutant{rest}; }}"
            yield "wrong parity", flipped
    if found := _INIT.match(line):
        g, op, at, count = (found[n] or "" for n in ("guard", "op", "at", "count"))
        yield "count + 1", f"{{ .reg .b32 mutant; add.u32 mutant, {count}, 1; {g}{op} {at}, mutant; }}"
    if found := _EXPECT.match(line):
        g, op, to, at, nbytes = (found[n] or "" for n in ("guard", "op", "to", "at", "bytes"))
        yield "bytes + 128", f"{{ .reg .b32 mutant; add.u32 mutant, {nbytes}, 128; {g}{op} {to} {at}, mutant; }}"


def verdict_on(text: str, name: str, launch: Launch, states: int) -> tuple[str, str]:
    """What is said of a text, in a word, and why if it is not known."""
    try:
        program = extract(read_module(text, name), launch).program
        found = check(program.judged(LENIENT), states)
    except PipesimError as error:
        return "error", error.fact
    why = (program.coverage.stopped + program.coverage.blocked)[:1] if found.verdict is Verdict.UNKNOWN else ()
    return found.verdict.value, why[0] if why else found.how.value


def main() -> int:
    """Try the mutants of each kernel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="+", type=Path, help="PTX files with launch files beside them")
    parser.add_argument("--most", type=int, default=1000, help="mutants of one kernel, evenly over its lines")
    parser.add_argument("--states", type=int, default=2000, help="limit of the search for each mutant")
    parser.add_argument("--without-inval", action="store_true", help="leave the kernel's mbarrier.inval out first")
    parser.add_argument("--show", action="store_true", help="a line for each mutant, not only for those proved")
    options = parser.parse_args()
    table: Counter[tuple[str, str]] = Counter()
    for path in options.kernels:
        _kernel(path, options, table)
    kinds = sorted({kind for kind, _ in table})
    words = ("refuted", "unknown", "error", "proved")
    print(f"{'':18s}" + "".join(f"{word:>9s}" for word in words))
    for kind in kinds:
        print(f"{kind:18s}" + "".join(f"{table[kind, word]:9,d}" for word in words))
    print(f"{'together':18s}" + "".join(f"{sum(table[k, word] for k in kinds):9,d}" for word in words))
    return 0


def _kernel(path: Path, options: argparse.Namespace, table: Counter[tuple[str, str]]) -> None:
    text = path.read_text(encoding="utf-8")
    if options.without_inval:
        text = re.sub(r"^\s*(@\S+\s+)?mbarrier\.inval[^;]*;", "", text, flags=re.MULTILINE)
    launch = read_launch(path.with_suffix(".json").read_text(encoding="utf-8"), path.name)
    original, why = verdict_on(text, path.name, launch, options.states)
    every = list(mutants(text))
    chosen = every[:: max(len(every) // options.most, 1)][: options.most]
    print(
        f"{path.stem}: {original}{f' ({why})' if original != 'proved' else ''}; {len(chosen)} of {len(every)} mutants"
    )
    begun = time.perf_counter()
    for mutant in chosen:
        found, why = verdict_on(mutant.text, path.name, launch, options.states)
        table[mutant.kind, found] += 1
        if found in ("proved", "error") or options.show:
            line = text.split("\n")[mutant.line - 1].strip()
            print(
                f"  {found:8s} {mutant.kind}, line {mutant.line}: {line[:90]}  {why if found != 'proved' else ''}"[:230]
            )
        sys.stdout.flush()
    print(f"  {time.perf_counter() - begun:.1f} s")


if __name__ == "__main__":
    sys.exit(main())
