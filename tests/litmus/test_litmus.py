"""Litmus tests of PTX's memory model: their table, its axioms, what pipesim says of them, and what two GPUs did."""

import json
import random
from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from pipesim.answers.check import check
from pipesim.model.coverage import ON_GLOBAL
from pipesim.model.finding import FaultKind, Verdict
from tests.litmus.axioms import Outcome
from tests.litmus.kernels import target
from tests.litmus.run import asked
from tests.litmus.table import Litmus, LitmusStep, litmus_tests
from tests.support.paths import TRACES

#: Of each family what is proved, refuted, and not judged: of tests whose outcome is forbidden, then of the others.
SAID = {
    "mp": ((42, 1, 1), (0, 37, 4)),
    "size": ((0, 0, 1), (0, 2, 1)),
    "proxy": ((1, 0, 4), (0, 3, 5)),
    "sb": ((0, 1, 4), (0, 0, 7)),
    "lb": ((0, 1, 3), (0, 1, 4)),
    "iriw": ((0, 0, 1), (0, 0, 6)),
    "corr": ((0, 1, 5), (0, 2, 0)),
    "coww": ((1, 0, 1), (0, 0, 0)),
    "cowr": ((1, 0, 1), (0, 1, 0)),
    "corw": ((1, 0, 1), (0, 1, 0)),
    "wrc": ((2, 0, 1), (3, 1, 0)),
    "isa2": ((10, 0, 1), (0, 9, 0)),
    "chain": ((3, 0, 0), (0, 2, 1)),
    "r": ((0, 0, 1), (0, 0, 3)),
    "s": ((2, 0, 0), (0, 2, 0)),
    "2+2w": ((0, 0, 1), (0, 1, 3)),
    "atomic": ((1, 0, 6), (0, 3, 0)),
    "lock": ((2, 0, 0), (0, 3, 0)),
}
#: Of strong accesses alone, which are no race: each value that the last load may see is followed, and none hangs.
EACH_VALUE = {"wrc+relaxed", "wrc+release+relaxed", "wrc+fence.cta"}
AGAIN = ("ld", "ld", "ld.volatile", "ld.relaxed.gpu", "ld.acquire.gpu", "ld.acquire.cta")
SCOPES = ("cta", "cluster", "gpu", "sys")
RUNS = 10_000_000
NOT_RUN = {
    "proxy+flag", "isa2.cta+sc.then.bar", "isa2.cta+sc.bar+bar.sc", "isa2.cta+acq_rel.then.bar",
    "isa2.cta+sc.then.bar+acquire",
}  # fmt: skip


@cache
def by_family() -> dict[str, list[Litmus]]:
    found: dict[str, list[Litmus]] = {}
    for test in litmus_tests():
        found.setdefault(test.family, []).append(test)
    return found


def said(test: Litmus) -> str:
    """What pipesim says of the kernel: that words are not judged beyond CTAs that are followed together is no doubt."""
    report = check(target(test), {}, quick=True)
    if report.verdict is Verdict.REFUTED:
        return "refuted" if any(isinstance(each.finding.kind, FaultKind) for each in report.refutations) else "hangs"
    left_open = {each.kind for each in report.scope.not_judged}
    judged = not left_open or (report.scope.together and left_open <= {*ON_GLOBAL})
    return "proved" if report.verdict is Verdict.PROVED and judged else "open"


@pytest.mark.slow
@pytest.mark.parametrize("family", by_family())
def test_pipesim_says_no_more_than_the_axioms(family: str) -> None:
    """A race of some execution is not proved to be none, nor an outcome that is allowed; and no other is refuted."""
    found: tuple[Counter[str], Counter[str]] = Counter(), Counter()
    for test in by_family()[family]:
        outcome, verdict = Outcome(test), said(test)
        assert outcome.allowed != test.forbidden, test.name
        assert verdict != "proved" or not outcome.races, test.name
        assert verdict != "proved" or not outcome.allowed or test.name in EACH_VALUE, test.name
        assert verdict != "refuted" or outcome.races, test.name
        found[not test.forbidden][verdict] += 1
    assert tuple(tuple(each[name] for name in ("proved", "refuted", "open")) for each in found) == SAID[family]


@pytest.mark.parametrize("name", ["mp+release+acquire", "mp+release.cta+acquire", "mp+ld.nc", "sb+relaxed", "wrc+weak"])
def test_a_verdict_on_a_litmus_test(name: str) -> None:
    test = next(each for each in litmus_tests() if each.name == name)
    assert Outcome(test).allowed != test.forbidden
    assert said(test) == {"mp+release+acquire": "proved", "mp+ld.nc": "open", "sb+relaxed": "open"}.get(name, "refuted")


def varied(seed: int) -> Litmus:
    """A test with some other orders, scopes, words and fences, and loads of words that have been waited for."""
    rng = random.Random(seed)
    test = rng.choice([each for each in litmus_tests() if len(each.threads) < 4])
    threads = [list(each) for each in test.threads]
    for _ in range(rng.randrange(1, 4)):
        mine = rng.choice(threads)
        at = rng.randrange(len(mine))
        kind, *others = mine[at].parts
        scoped = f"{rng.choice(['relaxed', 'release' if kind in ('st', 'red') else 'acquire'])}.{rng.choice(SCOPES)}"
        match rng.randrange(4), kind:
            case 0, _ if mine[at].place[0]:
                mine[at] = replace(mine[at], place=(rng.choice("xyz"), mine[at].place[1]))
            case 1, _:
                mine.insert(at, LitmusStep(f"fence.{rng.choice(['acq_rel', 'sc'])}.{rng.choice(SCOPES)}"))
            case _, "ld" | "st" if others[-1:] not in (["b64"], ["v2"], ["nc"]):
                mine[at] = replace(mine[at], opcode=rng.choice((kind, f"{kind}.volatile", f"{kind}.{scoped}")))
            case _, "atom" | "red":
                mine[at] = replace(mine[at], opcode=f"{kind}.{scoped}.{others[-1]}")
    for mine in threads:
        for at in reversed([at for at, each in enumerate(mine) if each.waits and each.size == 4]):
            if sum(map(len, threads)) < 9 and rng.random() < 0.4:
                again = LitmusStep(rng.choice(AGAIN), mine[at].place, (), mine[at].found)
                mine.insert(rng.randrange(at + 1, len(mine) + 1), again)
    return replace(test, threads=tuple(map(tuple, threads)), final=())


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize("first", range(0, 1_000, 50))
def test_of_random_variants_no_verdict_is_wrong(first: int) -> None:
    found = Counter[str]()
    for test in map(varied, range(first, first + 50)):
        verdict, outcome = said(test), Outcome(test)
        found[verdict] += 1
        assert verdict != "proved" or not outcome.races, test
        assert verdict != "refuted" or outcome.races or not outcome.ends, test
    assert min(found["proved"], found["refuted"]) > 3


@pytest.mark.parametrize("device", ["h100", "h200"])
def test_no_gpu_did_what_the_text_forbids(device: str) -> None:
    stored = json.loads((TRACES / device / "litmus.json").read_text())["outcomes"]
    assert stored.keys() | NOT_RUN == {test.name for test in litmus_tests()}
    assert all(sum(each.values()) >= RUNS for each in stored.values())
    assert not [test.name for test in litmus_tests() if test.forbidden and asked(test) in stored.get(test.name, ())]
    weak = [test.name for test in litmus_tests() if not test.forbidden and asked(test) in stored.get(test.name, ())]
    assert len(weak) == {"h100": 10, "h200": 46}[device]
