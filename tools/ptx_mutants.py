"""Mutants of kernels' PTX: one line of synchronisation is dropped or changed, and none may be proved by mistake.

``python -m tools.ptx_mutants [kernel.ptx ...] [--most N] [--without-inval]`` prints a line for each mutant that is not
refuted, and a table: kind of change, refuted, with the right line, unknown, equivalent. Without kernels it takes
pipesim's own for Hopper, compiled by NVRTC, and those of ``tests/ptx/kernels`` that are proved.

A mutant that is proved has to be equivalent to the kernel in this launch, because what was dropped is redundant or is
not executed. The tool says why: its program is that of the kernel, operation for operation; or its inits reach their
own CTA without the fence; or its report states what it rests on; or an engine that knows the machine and nothing of the
proof follows every schedule of it, or, of a large one, draws some, and finds nothing wrong. Any other proved mutant is
counted as wrong, and the exit code is 1. The line is right if the counterexample names the changed line, or a warp that
executes it.
"""

import argparse
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from hwkernels.twins import REGISTRY
from pipesim.errors import PipesimError
from pipesim.model.coverage import LENIENT
from pipesim.model.finding import Verdict
from pipesim.model.groups import ON_BARRIER
from pipesim.model.machine import finished, initial_state
from pipesim.model.moves import canonical, make, moves
from pipesim.model.ops import operand
from pipesim.model.program import Program
from pipesim.prove.assumed import assumed_by
from pipesim.prove.check import check
from pipesim.prove.refutation import Refutation
from pipesim.ptx.emit.names import source_of
from pipesim.ptx.extract import extract
from pipesim.ptx.launch.file import read_launch
from pipesim.ptx.launch.values import Launch, TensorMap
from pipesim.ptx.text.read import read_module
from tools.corpus.kernel_list import hopper
from tools.corpus.mutations import mutants
from tools.fuzz.naive import explore

#: Kernels that are taken beside ours if none is named.
_COMMITTED = ("gemm_clc-sm_100a", "scale_pipelined_s3-sm_90a")
_MOST_NAIVE = 5_000  #: states that the naive engine follows of a mutant that is proved
_SPARED = "the proof does not decide; without this wait the kernel is proved, and random schedules show nothing wrong"
_DRAWN = 10  #: random schedules of a larger one


@dataclass(frozen=True)
class Judged:
    """What is said of a text: a word of the table, why, its program, and what its counterexamples name."""

    word: str
    why: str
    program: Program | None = None
    named: frozenset[str] = frozenset()


def verdict_on(text: str, name: str, launch: Launch, states: int) -> Judged:
    """The verdict on a text."""
    try:
        program = extract(read_module(text, name), launch).program.with_strictness(LENIENT)
        found = check(program, states)
    except PipesimError as error:
        return Judged("error", error.fact)
    why = (program.coverage.stopped + program.coverage.blocked)[:1] if found.verdict is Verdict.UNKNOWN else ()
    named = frozenset(word for each in found.refutations for word in _named(program, each))
    return Judged(found.verdict.value, why[0] if why else found.how.value, program, named)


def _named(program: Program, found: Refutation) -> Iterator[str]:
    """Warps and lines that a counterexample is about."""
    if (fault := found.fault) is not None:
        places = ((fault.agent, fault.pc), (fault.other_agent, fault.other_pc), (fault.cause_agent, fault.cause_pc))
        for agent, pc in places:
            if agent >= 0:
                yield from (_warp(program, agent), program.line(agent, pc))
        yield from _users(program, fault.barrier)
    if found.deadlock is not None:
        warps = {program.agent_name(agent): _warp(program, agent) for agent in range(len(program.agents))}
        for blocked in found.deadlock.blocked:
            yield warps[blocked.agent]
            for supplier in blocked.suppliers:
                yield from (warps[supplier.agent], supplier.next_line, supplier.last_line)


def _warp(program: Program, agent: int) -> str:
    """What a warp is called here: what its mutant does may give it another role."""
    return f"warp {program.agents[agent].warp} of CTA {program.agents[agent].cta}"


def _users(program: Program, barrier: int) -> Iterator[str]:
    """The warps with operations on the mbarrier of a fault."""
    for agent, code in enumerate(program.code):
        if barrier >= 0 and any(op[0] in ON_BARRIER and operand(op, "barrier") == barrier for op in code):
            yield _warp(program, agent)


def executing(text: str, name: str, launch: Launch) -> Mapping[int, frozenset[str]]:
    """For each line of a kernel's PTX the author's line and the warps that execute something from there."""
    module = read_module(text, name)
    program = extract(module, launch).program
    warps: dict[str, set[str]] = {}
    for agent, code in enumerate(program.code):
        for pc in range(len(code)):
            warps.setdefault(program.line(agent, pc), set()).add(_warp(program, agent))
    found: dict[int, frozenset[str]] = {}
    for function in module.functions:
        ahead = frozenset[str]()  # of an instruction without an operation: where the next one after it is executed
        for each in reversed(function.body):
            source = source_of(each, module)
            ahead = frozenset(warps.get(source, ())) or ahead
            found[each.line] = ahead | {source}
    return found


def equivalence(original: Program, changed: Program, line: str) -> str:
    """Why a mutant that is proved does what its kernel does, "" if nothing says so."""
    if original.code == changed.code and original.accesses == changed.accesses:
        return "the same program: what was changed is not executed in this launch, or repeats what was said"
    if "fence.mbarrier_init" in line and original.ctas == 1:
        return "the CTA meets at a barrier after its inits, and no other CTA uses them"
    known = {(each.kind, _words(each.what)) for each in (*original.coverage.assumed, *assumed_by(original))}
    for each in (*changed.coverage.assumed, *assumed_by(changed)):
        if (each.kind, _words(each.what)) not in known:
            return f"the report states it: {each.kind.switch}, {each.what}"
    seen = explore(changed, _MOST_NAIVE)
    if seen.wrong:
        return ""
    if seen.complete:
        return "the naive engine followed every schedule and found nothing wrong"
    for seed in range(_DRAWN):
        if wrong := drawn(changed, seed):
            print(f"    a random schedule ({seed}) shows: {wrong}")
            return ""
    return f"redundant: {_DRAWN} random schedules of the naive engine, copies in pieces and late, show nothing wrong"


def _operands(line: str) -> str:
    """What follows the name of an instruction."""
    return line.removesuffix(";").partition(" ")[2]


def _words(sentence: str) -> str:
    """A sentence of a report without its places."""
    return re.sub(r"\S*\d\S*", "", sentence)


def _nothing_drawn(program: Program) -> bool:
    """Whether random schedules of a program that was followed to its end show nothing wrong."""
    return program.coverage.complete and not any(drawn(program, seed) for seed in range(_DRAWN))


def drawn(program: Program, seed: int) -> str:
    """What is wrong in a random schedule, "" if nothing does."""
    chance, state = random.Random(seed), canonical(initial_state(program))
    while possible := moves(program, state):
        after = make(program, state, chance.choice(possible))
        if after.faults:
            return after.faults[0].kind.value
        state = after.state
    return "" if all(finished(program, state, agent) for agent in range(len(program.agents))) else "a deadlock"


def own_kernels(folder: Path) -> list[Path]:
    """PTX and launch files of pipesim's kernels for Hopper, written there, and those of the tests that are proved."""
    found = []
    for built in hopper():
        if built.name in REGISTRY:
            built.save(folder)
            found.append(folder / f"{built.stem}.ptx")
    kernels = Path(__file__).resolve().parents[1] / "tests" / "ptx" / "kernels"
    return [*found, *(kernels / f"{name}.ptx" for name in _COMMITTED)]


def main() -> int:
    """Try the mutants of each kernel."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", type=Path, help="PTX files with launch files beside them")
    parser.add_argument("--most", type=int, default=1000, help="mutants of one kernel, evenly over its lines")
    parser.add_argument("--states", type=int, default=2000, help="limit of the search for each mutant")
    parser.add_argument("--without-inval", action="store_true", help="leave the kernel's mbarrier.inval out first")
    parser.add_argument("--without-boxes", action="store_true", help="leave the boxes of tensor maps out of the launch")
    parser.add_argument("--show", action="store_true", help="a line for each mutant, also for those refuted")
    options = parser.parse_args()
    table: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for path in options.kernels or own_kernels(Path(folder)):
            _kernel(path, options, table)
    kinds = sorted({kind for kind, _ in table})
    words = ("refuted", "right line", "unknown", "error", "equivalent", "wrong")
    print(f"{'':22s}" + "".join(f"{word:>11s}" for word in words))
    for kind in kinds:
        print(f"{kind:22s}" + "".join(f"{table[kind, word]:11,d}" for word in words))
    totals = {word: sum(table[k, word] for k in kinds) for word in words}
    print(f"{'together':22s}" + "".join(f"{totals[word]:11,d}" for word in words))
    others = totals["refuted"] + totals["unknown"] + totals["error"] + totals["wrong"]
    print(f"refuted of those that are not equivalent: {100 * totals['refuted'] / max(others, 1):.1f} %")
    return int(totals["wrong"] + totals["error"] > 0)


def without_boxes(launch: Launch) -> Launch:
    """The launch of a user who does not know what its tensor maps hold."""
    maps = [
        each._replace(content=TensorMap()) if isinstance(each.content, TensorMap) else each
        for each in launch.parameters
    ]
    return replace(launch, parameters=tuple(maps))


def _kernel(path: Path, options: argparse.Namespace, table: Counter[tuple[str, str]]) -> None:
    text = path.read_text(encoding="utf-8")
    if options.without_inval:
        text = re.sub(r"^\s*(@\S+\s+)?mbarrier\.inval[^;]*;", "", text, flags=re.MULTILINE)
    launch = read_launch(path.with_suffix(".json").read_text(encoding="utf-8"), path.name)
    if options.without_boxes:
        launch = without_boxes(launch)
    original = verdict_on(text, path.name, launch, options.states)
    every = list(mutants(text))
    chosen = every[:: max(len(every) // options.most, 1)][: options.most]
    said = f" ({original.why})" if original.word != "proved" else ""
    print(f"{path.stem}: {original.word}{said}; {len(chosen)} of {len(every)} mutants", flush=True)
    if original.program is None:
        return
    begun, places = time.perf_counter(), executing(text, path.name, launch)
    redundant: set[str] = set()  # operands of waits that may be dropped: one wait is several tries of the same
    for mutant in chosen:
        found = verdict_on(mutant.text, path.name, launch, options.states)
        line = text.split("\n")[mutant.line - 1].strip()
        word, why = found.word, found.why
        if word == "proved" and found.program is not None:
            why = equivalence(original.program, found.program, line)
            word = "equivalent" if why else "wrong"
            redundant |= {_operands(line)} if why and mutant.kind == "wait dropped" else set()
        elif (
            word == "unknown"
            and _operands(line) in redundant
            and found.program is not None
            and _nothing_drawn(found.program)
        ):
            word, why = "equivalent", _SPARED
        table[mutant.kind, word] += 1
        right = not places.get(mutant.line, frozenset()).isdisjoint(found.named)
        table[mutant.kind, "right line"] += word == "refuted" and right
        if word != "refuted" or not right or options.show:
            shown = "refuted elsewhere" if word == "refuted" and not right else word
            print(f"  {shown:10s} {mutant.kind}, line {mutant.line}: {line[:90]}  {why}"[:300], flush=True)
    print(f"  {time.perf_counter() - begun:.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
