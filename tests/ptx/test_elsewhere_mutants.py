"""What is wrong at another size alone, or for a tile that is handed out alone, is refuted there, and named."""

import random
from pathlib import Path

import pytest

from pipesim.answers.check import check
from pipesim.answers.every_size.classes import AnyWord
from pipesim.model.finding import Verdict
from pipesim.ptx.launch.file import read_launch
from pipesim.ptx.launch.values import HANDED_OUT, Launch, Policies
from pipesim.targets import Target, find
from tests.support.counted_rings import judged, random_ring
from tests.support.elsewhere_mutants import at_another_size, for_a_tile, named
from tests.support.kernel_files import written
from tests.support.random_cta_kernels import ring_of_cta
from tests.support.tile_kernels import RIGHT, TAIL, kernel_of_tiles

_ROWS = Path("docs/examples/row_max.ptx")
#: A stage for every two of n, and one more in each third CTA.
_STAGES = " shr.u32 %r30, %r22, 1;\n rem.u32 %r31, %r20, 3;\n add.u32 %r30, %r30, %r31;\n"


def target_of(folder: Path, text: str, launch: Launch) -> Target:
    return find(written(folder / "mutant.ptx", text, launch))


def sized(seed: int) -> tuple[str, Launch, str, int, str]:
    """A kernel, the name of a word and its step, and the parameter in PTX."""
    if seed % 2:
        text, launch = ring_of_cta(_STAGES, (4, 1, 1), n=5, trips=30, other=30, most=0x7FFFFFFF)
        return text, launch, "n", 2, "n"
    launch = read_launch(_ROWS.with_suffix(".json").read_text().replace("1280", "2048"), _ROWS.name)
    return _ROWS.read_text(), launch, "rows", 1, "row_max_param_2"


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize("seed", range(40))
def test_an_arrive_that_lacks_at_one_size_is_missed_there(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    text, launch, word, step, parameter = sized(seed)
    value = step * rng.randrange(2, 8)
    mutant, _ = at_another_size(text, launch, (parameter, 0), value, rng)
    target = target_of(tmp_path, mutant, launch)
    assert check(target, {}, quick=True).verdict is Verdict.PROVED
    alone = check(target.with_setting(word, value), {}, quick=True)
    report = check(target, {}, quick=True, any_words=(AnyWord(word, step, 12 * step, step),))
    assert report.verdict is alone.verdict
    if alone.verdict is Verdict.REFUTED:
        assert named(report.refutations[0].settings, word, value)


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize("seed", range(40))
def test_an_arrive_that_lacks_for_one_tile_is_missed_there(tmp_path: Path, seed: int) -> None:
    """A tile that others precede in the launch as it is: tiles 1 to 7, or each second from 8 on."""
    rng, counter = random.Random(seed), seed % 2 == 0
    policies = Policies(tile_counter=8 if counter else 0)
    text, launch = kernel_of_tiles(TAIL.format(tail=3), RIGHT, counter=counter, policies=policies)
    given = rng.choice([(10, 12, 14, 16), (12, 14, 16, 20), (14, 16, 18, 20)] if counter else [(2, 4, 5), (5, 6)])
    mutant, _ = for_a_tile(text, launch, "%r20", given[0], 2 if counter else 1, rng)
    target = target_of(tmp_path, mutant, launch)
    file = str(tmp_path / "mutant.ptx")
    alone = check(find(file, sets=tuple(f"{HANDED_OUT}:{n}={tile}" for n, tile in enumerate(given))), {}, quick=True)
    report = check(target, {}, quick=True)
    if alone.verdict is Verdict.REFUTED:
        assert report.verdict is Verdict.REFUTED
        settings = report.refutations[0].settings  # the counter begins with this tile, or CTAs have taken others
        first = named(settings, HANDED_OUT, given[0]) or settings.get("tile_counter") == given[0]
        assert first or settings["together"] > 1


@pytest.mark.sampled(2, 4)
@pytest.mark.parametrize("seed", range(110))  # 68 kernels that differ
def test_a_count_that_is_wrong_elsewhere_is_refuted_there(seed: int) -> None:
    """Tails, the last CTA or tile, odd sizes, prefetches, causal bounds, windows, groups: another number in one count,
    of steps, of the bytes of a box, or of the steps before the last tile.

    CTA 0 of the launch is right: a check of the launch names a CTA that hangs, or one of every size names the size.
    """
    ring = random_ring(seed, wrong=True)
    assert judged(ring, sizes=not any(n == ring.n for _, n in ring.places)) == ""
