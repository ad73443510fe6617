"""What is claimed of every value of a word of random kernels' parameters, against values that are read one by one.

Families of ``judge_proof.py``. *Kernel sizes*: kernels whose loops mostly grow with ``n``; a value that was not looked
at is read, in a CTA of its own, and compared with the class and the laps more that the claim says, operation by
operation. *Nearby*: what a check without ``--any`` says of values nearby, in the same way. *Laps*: kernels with loops
in loops, read without laps that are like others and in full: the operations of each CTA for which the run holds, and
the verdict. *Counts*: kernels that are right, or wrong in some CTA or at some size: whether that which is named hangs,
and none does of which it is proved, by arithmetic.
"""

import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from pipesim.answers.every_cta.conditions import covered
from pipesim.answers.every_cta.kinds import CtaKind, EveryCta
from pipesim.answers.every_cta.launches import shape_of_program
from pipesim.answers.every_size.claims import EverySize, WordClaim
from pipesim.answers.every_size.classes import AnyWord
from pipesim.answers.every_size.nearby import values_nearby
from pipesim.model.finding import Verdict
from pipesim.model.program import Program
from pipesim.prove.any_size.laps import Outline
from pipesim.prove.check import check
from pipesim.ptx.emulate.cluster import EmulationLimits
from pipesim.ptx.emulation import emulate, emulate_without_laps
from pipesim.ptx.extract import emit
from pipesim.ptx.hand_outs import all_left
from pipesim.ptx.launch.file import launch_json
from pipesim.ptx.launch.values import LAUNCH_CONTROL, TILE_COUNTER, TYPES, Array, Launch, Number, Parameter
from pipesim.ptx.prepare import Kernel, prepare
from pipesim.ptx.text.read import read_module
from pipesim.targets import Target, find
from tests.support.counted_rings import judged, random_ring
from tests.support.nested_loops import random_nested_kernel, with_all_laps
from tests.support.random_cta_kernels import random_cta_kernel, random_sized_kernel
from tests.support.tile_kernels import RIGHT, random_kernel_of_tiles, sized_kernel_of_tiles

Judge = Callable[[Target, random.Random], tuple[str, int, list[str]]]
_LARGEST, _READ = 400, 60  #: of the values that are read, and how many
_ALL = 1 << 26  #: instructions and operations, of a run in full


def by_size(target: Target, rng: random.Random) -> tuple[str, int, list[str]]:
    """What is claimed of the word ``n``, the sizes that were read one by one, and those that do something else.

    A size is read in a CTA of its own; what the claim says of it is a class that was looked at, and laps more.
    """
    asked = rng.choice(("n", "params+0"))  # as the launch file has it, and by its place
    if target.kernel is not None and target.kernel.launch_control is not None and rng.random() < 0.5:
        asked = LAUNCH_CONTROL
    elif target.kernel is not None and all_left(target.kernel.fewer_tiles) is not None and rng.random() < 0.5:
        asked = TILE_COUNTER
    every = EverySize(target, [AnyWord(asked)])
    list(every)
    (range_,), grid = every.ranges, prod(target.kernel.kernel.launch.grid) if target.kernel else 1
    if not range_.is_every:
        return "nothing", 0, []
    most = min(range_.most + 1, _LARGEST)
    wrong, sizes = [], rng.sample(range(1, most), min(_READ, most - 1))
    for number, value in enumerate(sizes):
        word, cta = every.words[number % len(every.words)], rng.randrange(grid)
        settings = {asked: word.classes.setting(value), **word.settings}
        made, program = every.target({**settings, "cta": cta}), None
        tiles = _some_tiles(target, settings, grid, rng)
        if tiles and made.kernel is not None:
            program = made.kernel.with_tiles(tuple(tiles)).program.with_strictness(target.strictness)
        if not _is_claimed(word, value, cta, program or made.build()):
            wrong.append(f"n={value} cta={cta} tiles={tiles}")
    numbers = f" with {len(every.words)} numbers of tiles" if every.words[1:] else ""
    return ("every size, by code" if range_.lap else "all") + numbers, len(sizes), wrong


def random_sized_kernel_of_tiles(seed: int) -> tuple[str, Launch]:
    """One whose steps for each tile that launch control hands out grow with ``n``, and for some with the tile."""
    rng = random.Random(seed)
    each = rng.choice((1, 3, 20, 300))  # the number of the tile decides
    number = rng.choice((f" setp.eq.u32 %p7, %r10, {each};", " rem.u32 %r47, %r10, 3;\n setp.eq.u32 %p7, %r47, 1;"))
    sums = f" add.u32 %r48, %r48, %r20;\n setp.gt.u32 %p7, %r48, {rng.choice((900, 20_000))};"  # of tiles
    apart = " sub.u32 %r49, %r20, %r50;\n mov.u32 %r50, %r20;\n min.u32 %r49, %r49, 6;\n"
    apart += f" add.u32 %r48, %r48, %r49;\n setp.gt.u32 %p7, %r48, {rng.choice((40, 300))};"
    one = rng.choice((" setp.eq.u32 %p7, %r20, 5;", " setp.eq.u32 %p7, %r45, 2;"))
    skip = rng.choice((sums, apart, " setp.ne.u32 %p7, %r20, %r20;", one, number))
    more = rng.choice((0, 0, 1, 3))
    steps = f" add.u32 %r45, %r22, {more};\n shr.u32 %r45, %r45, {rng.randrange(3)};\n"
    steps += rng.choice(("", " min.u32 %r45, %r45, 90;\n", " and.b32 %r46, %r20, 1;\n add.u32 %r45, %r45, %r46;\n"))
    text, launch = sized_kernel_of_tiles(steps, skip, rng.choice(("", RIGHT)), counter=rng.random() < 0.5)
    text = text.replace(" mov.u32 %r30, 0;", " mov.u32 %r30, 0;\n mov.u32 %r48, 0;\n mov.u32 %r50, 0;", 1)
    text = text.replace("%r20, 20;", f"%r20, {rng.choice((20, 20, 150))};")  # the counter's end
    return text, replace(launch, grid=(rng.choice((8, 500)), 1, 1))


def _some_tiles(target: Target, settings: Mapping[str, int], grid: int, rng: random.Random) -> list[int]:
    """Any tiles, as many as settings say: of a counter also one after the last."""
    if TILE_COUNTER not in settings:
        return sorted(rng.sample(range(1, grid), settings.get(LAUNCH_CONTROL, 0)))
    assert target.kernel is not None
    last, before = (each.value for each in target.kernel.fewer_tiles[:2])
    step, low = last - before, target.kernel.fewer_tiles[0].used
    count = (last - settings[TILE_COUNTER]) // step
    return [*sorted(rng.sample(range(low, last, step), count)), last + step * rng.randrange(grid)]


def _class_of(word: WordClaim, value: int) -> int:
    """The number of the class that has a value; the next one where it was not looked at."""
    known = word.classes.known
    return next((n for n, each in enumerate(known) if value <= each.last), len(known))


def _is_claimed(word: WordClaim, value: int, cta: int, program: Program) -> bool:
    """Whether a program is what is claimed of a size and a CTA."""
    known, places = word.classes.known, word.classes.places_of(cta)
    number = _class_of(word, value)
    if number < len(known):
        there = known[number].program_of(cta, places)
        return there is not None and shape_of_program(there) == shape_of_program(program)
    rows = [(of, found) for of, found in word.found.items() if found.lap]
    for first_cta, found in rows:
        lap = known[found.first + found.lap].value - known[found.first].value
        laps = (value - known[found.first].value) // lap
        near = _class_of(word, value - laps * lap)
        mine, theirs = (_kind_of(word, near, each) for each in (cta, first_cta))
        if mine is theirs and mine is not None:
            return word.families[first_cta].covers(found, near + laps * found.lap, program)
    return False


def _kind_of(word: WordClaim, number: int, cta: int) -> CtaKind | None:
    places, kinds = word.classes.places_of(cta), word.classes.known[number].kinds
    return next((kind for kind, _ in kinds if kind.cta == cta or covered(kind.inputs, places)[0]), None)


def nearby(target: Target, rng: random.Random) -> tuple[str, int, list[str]]:
    """What is said of values near one of ``n``, values that were read in a CTA, and those that do something else."""
    now = rng.choice((rng.randrange(9), rng.randrange(300)))
    target = target.with_setting("n", now)
    assert target.kernel is not None
    first, wrong, cases = target.kernel, [], 0
    looked = [EveryCta(each) for each in (first, *map(first.with_fewer, first.fewer_tiles[:2]))]
    if not all(list(each) is not None and each.complete for each in looked):
        return "not all CTAs", 0, []
    found = values_nearby(first.kernel, looked)
    for each in found:
        high = 2 * _LARGEST if each.is_every else each.most
        some = range(each.least, min(high, each.least + 9 * _LARGEST) + 1, each.step)
        for value in {each.least, high, *rng.sample(some, min(len(some), _READ))}:
            cta, cases = rng.randrange(looked[0].clusters), cases + 1
            here = first.kernel.with_setting("cta", cta)
            if _alone(here.with_setting(each.parameter, value)) != _alone(here):
                wrong.append(f"{each.parameter}={value} cta={cta} not as n={now}")
    return "values nearby" if found else "n as it is", cases, wrong


def _alone(kernel: Kernel) -> Hashable:
    return shape_of_program(emit(kernel, emulate(kernel, EmulationLimits(one_cta=True))).program)


def judge_laps(seed: int) -> list[str]:
    """Read a random kernel without laps that are like others, and each CTA that does the same in full."""
    text, launch = random_nested_kernel(seed)
    kernel = prepare(read_module(text, "random.ptx"), launch)
    run = emulate_without_laps(kernel, launch, EmulationLimits())
    if not run.left_out or run.cut:
        return ["cut" if run.cut else "no lap is left out"]
    program, said = emit(kernel, run).program, ["laps are left out"]
    whole = with_all_laps(program)
    for cta in (0, seed % 3):
        place = {launch.place_name(axis): np.array([cta if axis == 0 else 0]) for axis in range(3)}
        if not covered(run.cluster.inputs, place)[0]:
            continue
        there = launch.with_setting("cta", cta)
        full = emulate(replace(kernel, launch=there, leaves_laps_out=False), EmulationLimits(_ALL, _ALL))
        theirs = emit(kernel, full).program
        if whole != Outline(theirs).code or run.instructions + run.left_out != full.instructions:
            said.append(f"WRONG FOR CTA {cta}")
        verdicts = full.cut or (check(program).verdict, check(theirs).verdict)
        if cta == 0 and verdicts == (Verdict.PROVED, Verdict.REFUTED):
            said.append("THE VERDICT IS WRONG")
        elif cta == 0 and verdicts == (Verdict.UNKNOWN, Verdict.PROVED):
            said.append("not shown")
    return said


def judge_verdict(seed: int) -> list[str]:
    """The verdict on a random kernel in every CTA, of each eighth also at every size."""
    said = judged(random_ring(seed, wrong=seed % 2 == 0), sizes=seed % 8 == 0) or "decided"
    return [said if said in ("decided", "unknown", "proved elsewhere") else said.upper()]


def judge_size(seed: int) -> list[str]:
    """What is claimed of every size of the kernel of a seed; a word in capitals is a mistake."""
    return _judged(by_size, seed, (*[random_sized_kernel] * 7, random_sized_kernel_of_tiles))


def judge_nearby(seed: int) -> list[str]:
    """The same of sizes nearby."""
    return _judged(nearby, seed, (random_sized_kernel, random_cta_kernel, random_kernel_of_tiles))


def _judged(judge: Judge, seed: int, kinds: Sequence[Callable[[int], tuple[str, Launch]]]) -> list[str]:
    text, launch = kinds[seed % len(kinds)](seed)
    content = launch.parameters[0].content
    if seed % 4 == 3 and isinstance(content, Number) and isinstance(content.value, int):
        content = Array(content.type, (content.value,))  # as the launches have it that are recorded
        if seed % 8 == 7 and TYPES[content.type] == 4:  # the lower half of a register
            content = Array("u16", (content.values[0] & 0xFFFF, content.values[0] >> 16))
    launch = replace(launch, parameters=(Parameter("n", content), *launch.parameters[1:]))
    with TemporaryDirectory() as folder:
        file = Path(folder) / "random.ptx"
        file.write_text(text)
        file.with_suffix(".json").write_text(launch_json(launch))
        said, cases, wrong = judge(find(str(file)), random.Random(seed))
    return [said, *["values are read"] * bool(cases), *[f"WRONG FOR {', '.join(wrong[:3])}".upper()] * bool(wrong)]
