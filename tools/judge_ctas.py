"""Which CTAs do the same: what the kinds of a launch say, compared with reading every CTA of it.

``python tools/judge_ctas.py KERNEL.ptx ...`` for kernels with their launch files. Of a grid with more clusters than
``--most`` some are read, the last one among them. ``--mutants N`` instead leaves an arrive out in one CTA alone, until
N are refuted in each kernel where only that CTA is read, and says whether a check of the launch names it.

Random kernels are families of ``judge_proof.py``: *CTAs*; *free contents*, with a free array, or that are handed out
tiles: with all of these; *words*: the verdicts on random CTAs, and warps of one, that talk by words, compared with all
their schedules; and what is claimed of any number of CTAs, with those of grids of 2 to 6; grids of 5 and 6 CTAs are
followed whole; *global memory*: what is said of it, by brute force over all threads.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from pipesim.answers.budget import states_of
from pipesim.answers.check import check
from pipesim.answers.every_cta import contents
from pipesim.answers.every_cta.conditions import Evaluation, covered, words_of
from pipesim.answers.every_cta.kinds import EveryCta
from pipesim.answers.every_cta.launches import shape_of_program
from pipesim.model.coverage import Assumption
from pipesim.model.finding import Verdict
from pipesim.ptx.emulate.cluster import EmulationLimits
from pipesim.ptx.emulation import emulate
from pipesim.ptx.extract import Extraction, emit, extract
from pipesim.ptx.free.forms import Form
from pipesim.ptx.kernel import read_kernel
from pipesim.ptx.text.read import read_module
from pipesim.targets import find
from tests.support.elsewhere_mutants import arrives, in_another_cta
from tests.support.random_cta_kernels import random_cta_kernel, random_free_kernel
from tests.support.random_global_kernels import GlobalKernel, random_kernel
from tests.support.random_meetings import MEETING, judged_meeting
from tests.support.random_words import judged, judged_inside, judged_talk, judged_warps, judged_weak, judged_whole
from tests.support.tile_kernels import random_kernel_of_tiles

_MOST = 64


def kinds_of(first: Extraction, clusters: Sequence[int]) -> tuple[int, list[object]]:
    """How many kinds the launch has, and what each of some clusters does as they say; None for one of no kind."""
    every = EveryCta(first)
    shapes = [shape_of_program(each.program) for each in (first, *every)]
    found: list[object] = [None] * len(clusters)
    for kind, made in reversed(list(zip(every.kinds, shapes, strict=True))):
        for at, holds in enumerate(covered(kind.inputs, every.places(np.array(clusters)))):
            found[at] = made if holds else found[at]
    return len(every.kinds), found


def by_force(first: Extraction, clusters: Sequence[int]) -> list[object]:
    """What each of them does, read as if it were the only one."""
    every, found = EveryCta(first), []
    for number in clusters:
        kernel = first.kernel.with_setting("cta", every.first_cta_of(number))
        found.append(shape_of_program(emit(kernel, emulate(kernel, EmulationLimits(one_cta=True))).program))
    return found


def by_contents(first: Extraction) -> tuple[int, int, list[str]]:
    """Kinds of a launch with free arrays, the cases that were read one by one, and those where the kinds are wrong.

    A case is a CTA with values of all elements that decide, of six or fewer.
    """
    every = EveryCta(first)
    shapes = [shape_of_program(each.program) for each in (first, *every)]
    wrong, cases = [], 0
    if not (every.complete and every.any_tiles):
        return len(shapes), 0, []
    for cluster in range(every.clusters):
        place = every.places(np.array([cluster]))
        terms = {terms for kind in every.kinds for terms in kind.inputs.conditions}
        words = sorted({word for each in terms for word in words_of(Form(0, each), Evaluation(place))})
        numbers = [every.arrays[name].numbers(index) for name, index in words]
        if prod(map(len, numbers)) > _MOST_CONTENTS:
            continue
        values = [value for value in product(*numbers) if _fits(every, words, value)]
        given = {w: np.array([v[n] for v in values]) for n, w in enumerate(words)}
        holds = [covered(kind.inputs, place, given) for kind in every.kinds]
        for n, value in enumerate(values):
            cases += 1
            chosen = dict(zip(words, value, strict=True))
            said = {shape for shape, each in zip(shapes, holds, strict=True) if each[n]}
            found = _with_contents(first, every, cluster, chosen)
            if said != {found}:
                wrong.append(f"cluster {cluster} with {chosen}: {len(said)} kinds")
    return len(shapes), cases, wrong


_MOST_CONTENTS = 1000


def _fits(every: EveryCta[Extraction], words: Sequence[tuple[str, int]], value: Sequence[int]) -> bool:
    """Whether elements that rise do."""
    for (one, a), (two, b) in pairwise(zip(words, value, strict=True)):
        rises = every.arrays[one[0]].rises
        far = two[1] - one[1]
        if rises is not None and not rises[0] * far <= b - a <= rises[1] * far:
            return False
    return True


def _with_contents(
    first: Extraction, every: EveryCta[Extraction], cluster: int, given: dict[tuple[str, int], int]
) -> object:
    values, rng = [], random.Random(repr((cluster, given)))
    for name, array in every.arrays.items():  # what the conditions do not name may be anything
        mine = {index: number for (of, index), number in given.items() if of == name}
        others = tuple(rng.choice(array.numbers(n)) for n in range(array.count))
        done = replace(array, usual=others).completed(mine) if array.rises else dict(enumerate(others)) | mine
        values += [(name, n, array.low + array.step * number) for n, number in done.items()]
    launch = replace(first.kernel.launch, cta=every.first_cta_of(cluster), contents=tuple(values))
    kernel = replace(first.kernel, launch=launch)
    return shape_of_program(emit(kernel, emulate(kernel, EmulationLimits(one_cta=True))).program)


def _judge_mutants(ptx: Path, count: int) -> Counter[str]:
    """What became of kernels each of which has one arrive less in one CTA, where that CTA then fails."""
    first, rng, found, seen = read_kernel(ptx), random.Random(1), Counter[str](), set[tuple[int, int]]()
    launch = first.kernel.launch
    for _ in range(4 * count if prod(launch.grid) > 1 and arrives(ptx.read_text(), launch.entry)[1] else 0):
        text, line, cta = in_another_cta(ptx.read_text(), launch, rng)
        if (line, cta) in seen:
            continue
        seen.add((line, cta))
        with TemporaryDirectory() as folder:
            file, given = Path(folder) / ptx.name, str(ptx.with_suffix(".json"))
            file.write_text(text)
            one = find(str(file), launch=given, sets=(f"cta={cta}",))
            states = states_of(None, one.build())
            alone = check(one, {}, quick=True, max_states=states)
            if alone.verdict is not Verdict.REFUTED:  # the CTA does not come there, or can do without the arrive
                found["not refuted alone"] += 1
                continue
            every = check(find(str(file), launch=given), {}, quick=True, max_states=states)
        refuted = [each.cta for each in every.kinds if each.verdict is Verdict.REFUTED]
        named = every.verdict is Verdict.REFUTED and set(alone.scope.ctas) <= set(refuted)  # none of one cluster
        found["named" if named else "MISSED"] += 1
        said = f"{every.verdict.value} in {refuted[:9]}"
        print(f"{ptx.parent.name}/{ptx.stem}: line {line} not in CTA {cta}: {said}", flush=True)
        if found["named"] + found["MISSED"] == count:
            break
    return found


def _judge(first: Extraction, most: int) -> list[str]:
    """In words what the kinds say of the clusters that are read; in capitals where they are wrong."""
    total = EveryCta(first).clusters
    clusters = sorted({*range(0, total, max(total // most, 1)), total - 1})
    (kinds, said), forced = kinds_of(first, clusters), by_force(first, clusters)
    wrong = [n for n, one, other in zip(clusters, said, forced, strict=True) if one != other]
    return ["several kinds" if kinds > 1 else "one kind", *[f"WRONG FOR CLUSTERS {wrong[:8]}"] * bool(wrong)]


def judge_random(seed: int) -> list[str]:
    """The same of the random kernel of a seed."""
    text, launch = random_cta_kernel(seed)
    return _judge(extract(read_module(text, "random.ptx"), launch), _MOST)


def judge_contents(seed: int) -> list[str]:
    """The same of a random kernel with a free array, or that is handed out tiles, with all of these."""
    text, launch = (random_free_kernel, random_kernel_of_tiles)[seed % 2](seed)
    contents.EACH = 1 if seed % 4 < 2 else 1 << 16  # by parts, or by combinations
    first, found = extract(read_module(text, "random.ptx"), launch), list[str]()
    for each in (first, *map(first.with_fewer, (fewer for fewer in first.fewer_tiles if fewer.tiles <= 2))):
        _, cases, wrong = by_contents(each)
        found += ["contents are read"] * bool(cases) + [f"WRONG FOR {wrong[:3]}".upper()] * bool(wrong)
    return found or ["nothing is claimed"]


def judge_words(seed: int) -> list[str]:
    """What is said of the random CTAs of a seed that talk by words, by each way to ask; in capitals contradictions."""
    judges = judged, judged_inside, judged_whole, judged_talk, judged_weak, judged_warps, judged_meeting
    said = [each(seed) for each in judges]
    return [each if each in ("decided", "not decided", *MEETING) else each.upper() for each in said]


def said_of_global_memory(kernel: GlobalKernel) -> str:
    """That it is right or wrong, that something is not judged, or assumed; in capitals a contradiction."""
    report, races = check(kernel.target(), {}, quick=True), kernel.races()
    if report.verdict is Verdict.REFUTED:
        return "wrong" if races else "REFUTED, AND NO BYTES MEET"
    if report.scope.not_judged:
        return "not judged"
    if races and Assumption.EQUAL_STORES in report.scope.kinds:
        return "assumed"
    return "PROVED, AND BYTES MEET" if races else "right"


def judge_global(seed: int) -> list[str]:
    """The same of the kernel of a seed."""
    return [said_of_global_memory(random_kernel(seed))]


def main() -> int:
    """1 if a CTA does something else than is said."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="+", type=Path)
    parser.add_argument("--most", type=int, default=_MOST)
    parser.add_argument("--mutants", type=int, default=0, metavar="N")
    options = parser.parse_args()
    if options.mutants:
        noticed = sum((_judge_mutants(each, options.mutants) for each in options.kernels), Counter[str]())
        print(", ".join(f"{number} {what}" for what, number in noticed.items()))
        return 1 if noticed["MISSED"] else 0
    wrong = False
    for each in options.kernels:
        said = _judge(read_kernel(each), options.most)
        print(f"{each}: {', '.join(said)}", flush=True)
        wrong |= any(word.isupper() for word in said)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
