"""Copies by tensor maps without a box: no proof rests on them, and no refutation on bytes that are inferred."""

import json
import random
from fractions import Fraction
from itertools import product
from operator import mul
from pathlib import Path

import pytest

from pipesim.cli.main import main
from pipesim.errors import LaunchFileError
from pipesim.model.coverage import NotJudgedKind
from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.program import Program
from pipesim.prove.check import How, check
from pipesim.ptx.emulate.boxless import solve_boxes
from pipesim.ptx.launch.values import Launch, Parameter, TensorMap
from pipesim.targets import find
from tests.support.kernel_files import written
from tests.support.small_ptx import SET_UP, program_of, text_of

PARAMS = ".param .align 64 .b8 kernel_param_0[128], .param .align 64 .b8 kernel_param_1[128]"
A, B = TensorMap("u8", box=(64, 16)), TensorMap("f32", box=(16, 8))  # of 1,024 and 512 bytes
START = SET_UP.format(first=1, count=1) + " mov.u32 %r4, tile;\n mov.u64 %rd5, 268435456;\n"
START += " mov.u64 %rd1, kernel_param_0;\n mov.u64 %rd2, kernel_param_1;\n"
TO_SHARED = "shared::cluster.global.mbarrier::complete_tx::bytes"


def load(name: str, at: int, bar: str = "%r3") -> str:
    return f" cp.async.bulk.tensor.2d.{TO_SHARED} [%r4+{at}], [{name}, {{0, 0}}], [{bar}];\n"


def bulk(at: int, bar: str = "%r3") -> str:
    return f" cp.async.bulk.{TO_SHARED} [%r4+{at}], [%rd5], 256, [{bar}];\n"


def expect(nbytes: int, bar: str = "%r3") -> str:
    return f" mbarrier.arrive.expect_tx.shared::cta.b64 _, [{bar}], {nbytes};\n"


def wait(label: str, bar: str = "%r3") -> str:
    return f"{label}:\n mbarrier.try_wait.parity.shared::cta.b64 %p9, [{bar}], 0;\n @!%p9 bra {label};\n"


def by_one(body: str, label: str = "issued") -> str:
    """By thread 0 alone."""
    return f" @%p0 bra {label};\n{body}{label}:\n"


def stored(first: str = "", second: str = "") -> str:
    """Both warps fill 1,024 bytes; thread 0 stores them. ``second``: fence after the bytes beyond the first 512."""
    text = " shl.b32 %r20, %r0, 3;\n add.u32 %r21, %r4, %r20;\n st.shared.u64 [%r21], %rd5;\n" + first
    text += " st.shared.u64 [%r21+512], %rd5;\n" + second + " bar.sync 0;\n"
    text += by_one(
        " cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {0, 0}], [%r4];\n"
        " cp.async.bulk.commit_group;\n cp.async.bulk.wait_group 0;\n"
    )
    return text + " bar.sync 0;\n"


FENCE = " fence.proxy.async.shared::cta;\n"
READ = " ld.shared.u32 %r30, [%r4];\n ld.shared.u32 %r31, [%r4+{0}];\n"
ONE = by_one(expect(1024) + load("%rd1", 0)) + wait("full") + READ.format(1020)
TWO = by_one(expect(1536) + load("%rd1", 0) + load("%rd2", 1024)) + wait("full") + READ.format(1532)
#: A bulk copy, whose 256 bytes are known, lies right behind the boxless one and counts on the same mbarrier.
MIXED = by_one(expect(1280) + load("%rd1", 0) + bulk(1024)) + wait("full") + READ.format(1276)
#: The same, where the bulk copy is issued only after another phase of a boxless copy is complete.
LATER = by_one(
    expect(1280) + expect(512, "%r3+8") + load("%rd1", 0) + load("%rd2", 2048, "%r3+8")
    + wait("other", "%r3+8") + bulk(1024)
) + wait("full") + READ.format(1276)  # fmt: skip
#: What A has follows from another phase as well, by another instruction: also where B is left out beside each A.
TWICE = by_one(
    expect(1024) + load("%rd1", 0) + expect(2048, "%r3+8") + load("%rd1", 1024, "%r3+8") + load("%rd1", 2048, "%r3+8")
) + wait("full") + wait("both", "%r3+8") + READ.format(3068)  # fmt: skip
REDUCED = stored("", FENCE).replace(
    "cp.async.bulk.tensor.2d.global.shared::cta", "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add"
)
PREFETCHED = by_one(" cp.async.bulk.prefetch.tensor.2d.L2.global [%rd1, {0, 0}];\n")  # moves no bytes of the CTA
RIGHT = {
    "store": stored("", FENCE),
    "reduction": REDUCED,
    "prefetch": PREFETCHED,
    "load": ONE,
    "two loads": TWO,
    "beside a bulk copy": MIXED,
    "later": LATER,
    "twice": TWICE,
}
RACE, UNFENCED, UNWRITTEN = FaultKind.RACE, FaultKind.MISSING_PROXY_FENCE, FaultKind.UNINITIALISED_READ
#: What is wrong with boxes, None for a deadlock; and what is wrong whatever the boxes are.
WRONG: dict[str, tuple[str, FaultKind | None, FaultKind | None]] = {
    "a store without a fence": (stored(), UNFENCED, UNFENCED),
    "a store of which some bytes are not fenced": (stored(FENCE), UNFENCED, None),
    "a reduction without a fence": (REDUCED.replace(FENCE, ""), UNFENCED, UNFENCED),
    "one of two copies dropped": (TWO.replace(load("%rd2", 1024), ""), None, None),
    "the one dropped that lies before": (TWO.replace(load("%rd1", 0), ""), None, UNWRITTEN),
    "one dropped beside each of another map": (TWICE.replace("2048;", "3072;").replace("1024;", "1536;"), None, None),
    "a bulk copy dropped": (MIXED.replace(bulk(1024), ""), None, None),
    "copies to the same bytes": (by_one(expect(1536) + load("%rd1", 0) + load("%rd2", 0)) + wait("full"), RACE, RACE),
    "read before the wait": (TWO.replace(wait("full"), ""), RACE, RACE),
}


def with_boxes(body: str, first: TensorMap = A, second: TensorMap = B) -> Program:
    return program_of(START + body, params=PARAMS, values=(first, second))


def found(body: str, first: TensorMap, second: TensorMap) -> tuple[Verdict, How, set[FaultKind | None]]:
    said = check(with_boxes(body, first, second))
    return said.verdict, said.how, {each.fault.kind if each.fault else None for each in said.refutations}


def random_body(seed: int) -> str:
    """Copies by two maps and without one, which one or two mbarriers count: right, or one dropped or moved."""
    rng = random.Random(seed)
    issued, after, at = "", "", 0
    for bar, label in (("%r3", "full"), ("%r3+8", "other"))[: rng.choice([1, 1, 2])]:
        copies, total = list[str](), 0
        for _ in range(rng.randint(1, 3)):
            nbytes = rng.choice([1024, 512, 256])
            place = at if rng.random() < 0.9 else max(at - rng.choice([16, 256]), 0)
            name = {1024: "%rd1", 512: "%rd2"}.get(nbytes)
            copies.append(bulk(place, bar) if name is None else load(name, place, bar))
            total, at = total + nbytes, at + nbytes
        if rng.random() < 0.25:
            copies.remove(rng.choice(copies))
        if rng.random() < 0.1:
            total += rng.choice([-256, 256])
        if rng.random() < 0.2:
            rng.shuffle(copies)
        issued += expect(total, bar) + "".join(copies)
        after += wait(label, bar) if rng.random() < 0.9 else ""
        after += READ.format(at - 4) if rng.random() < 0.5 else ""
    return by_one(issued) + after


def random_phases(seed: int) -> str:
    """Several phases of one mbarrier, whose copies may be issued a phase ahead: right, or one dropped or delayed."""
    rng = random.Random(seed)
    issued: list[list[str]] = []
    totals, at = list[int](), 0
    for _ in range(rng.choice([2, 2, 3])):
        copies, total = list[str](), 0
        for _ in range(rng.randint(1, 2)):
            size = rng.choice([1024, 512, 256])
            at = 0 if at + size > 4096 else at
            name = {1024: "%rd1", 512: "%rd2"}.get(size)
            copies.append(bulk(at) if name is None else load(name, at))
            total, at = total + size, at + size
        issued.append(copies)
        totals.append(total)
    if rng.random() < 0.4:
        k = rng.randrange(len(issued))
        match rng.choice(["drop", "bytes", "delay"]):
            case "drop":
                issued[k].pop(0)
            case "bytes":
                totals[k] += rng.choice([-256, 256, 512])
            case _ if k + 1 < len(issued):
                issued[k + 1].append(issued[k].pop())
    text, ahead = "", rng.random() < 0.3
    for k, total in enumerate(totals):
        if ahead and issued[k + 1 : k + 2] and issued[k + 1]:
            issued[k].append(issued[k + 1].pop(0))
        parts = [expect(total), "".join(issued[k])]
        text += by_one("".join(parts if rng.random() < 0.8 else parts[::-1]), f"issued{k}")
        text += wait(f"full{k}").replace("], 0;", f"], {k & 1};") + " bar.sync 0;\n"
    return text


def contradicts(body: str) -> bool:
    """Whether it is proved with boxes and refuted without, or the other way round."""
    return {found(body, A, B)[0], found(body, TensorMap(), TensorMap())[0]} == {Verdict.PROVED, Verdict.REFUTED}


@pytest.mark.parametrize("seed", range(4))
def test_no_answer_without_boxes_is_another_with_them(seed: int) -> None:
    assert not contradicts(random_body(seed))
    assert not contradicts(random_phases(seed))


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_a_right_kernel_is_proved_with_boxes_and_unknown_without(body: str) -> None:
    assert found(body, A, B)[0] is Verdict.PROVED
    verdict, how, _ = found(body, TensorMap(), TensorMap())
    if body is PREFETCHED:
        assert (verdict, how) == (Verdict.PROVED, How.CERTIFICATE)
    else:
        assert (verdict, how) == (Verdict.UNKNOWN, How.UNSIZED)


@pytest.mark.parametrize(("body", "kind", "certain"), WRONG.values(), ids=WRONG)
def test_a_wrong_kernel_is_refuted_with_boxes_and_never_proved_without(
    body: str, kind: FaultKind | None, certain: FaultKind | None
) -> None:
    verdict, _, kinds = found(body, A, B)
    assert (verdict, kind in kinds) == (Verdict.REFUTED, True)
    verdict, how, kinds = found(body, TensorMap(), TensorMap())
    if certain is None:
        assert (verdict, how) == (Verdict.UNKNOWN, How.UNSIZED)
    else:
        assert (verdict, certain in kinds) == (Verdict.REFUTED, True)


AGAIN = wait("full") + " bar.sync 0;\n"
LAST = "last:\n mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], 1;\n @!%p9 bra last;\n"


def phases(first: str, second: str) -> str:
    """Two phases of one mbarrier."""
    return by_one(first, "one") + AGAIN + by_one(second, "two") + LAST


HALF = load("%rd1", 1024) + load("%rd1", 2048)
#: Kernels that no box makes right.
NEVER = {
    "the same copy, less expected before": phases(expect(1024) + load("%rd1", 0), expect(2048) + load("%rd1", 0)),
    "the same copy, more expected before": phases(expect(2048) + load("%rd1", 0), expect(1024) + load("%rd1", 0)),
    "less is expected than known": by_one(expect(128) + load("%rd1", 0) + bulk(1024)) + wait("full"),
    "boxes of no whole row": phases(expect(1000) + 3 * load("%rd1", 0), expect(1000) + load("%rd1", 0)),
    "one of two by one map dropped": TWICE.replace(load("%rd1", 2048, "%r3+8"), ""),
}
#: What the boxes A and B make right.
SOME = {
    "the same bytes": phases(expect(1024) + load("%rd1", 0), expect(1024) + load("%rd1", 0)),
    "two maps": phases(expect(1024) + load("%rd1", 0), expect(1536) + load("%rd1", 0) + load("%rd2", 1024)),
    "twice as many": phases(expect(1024) + load("%rd1", 0), expect(2048) + HALF),
    "a copy ahead": phases(expect(1024) + load("%rd1", 0) + load("%rd1", 1024), expect(1024)),
    "nobody waits for the last": by_one(expect(1024) + load("%rd1", 0)) + wait("full") + by_one(expect(2048), "two"),
}


@pytest.mark.parametrize("body", NEVER.values(), ids=NEVER)
def test_a_kernel_that_no_box_makes_right_is_refuted(body: str) -> None:
    assert found(body, TensorMap(), TensorMap())[0] is Verdict.REFUTED
    first, *_ = program_of(START + body, params=PARAMS, values=(TensorMap(), TensorMap())).coverage.unsized
    assert first.endswith(": no box fits all of their phases") is (bulk(1024) not in body)
    for rows in (1, 8, 16, 32, 64, 128):
        assert found(body, TensorMap("u8", box=(16, rows)), B)[0] is Verdict.REFUTED


@pytest.mark.parametrize("body", SOME.values(), ids=SOME)
def test_a_kernel_that_a_box_makes_right_is_not(body: str) -> None:
    assert found(body, A, B)[0] is Verdict.PROVED
    assert found(body, TensorMap(), TensorMap())[:2] == (Verdict.UNKNOWN, How.UNSIZED)


def test_a_box_has_a_size_for_each_dimension() -> None:
    for box in ((1024,), (8, 16, 8)):
        with pytest.raises(
            LaunchFileError, match=f"parameter 0, .* has {len(box)} dimensions?, and .* copies 2"
        ) as told:
            found(ONE, TensorMap("u8", box=box), B)
        assert told.value.place.startswith("line ")


def test_known_bytes_are_subtracted_and_a_determined_size_is_inferred() -> None:
    for body in (MIXED, LATER):
        coverage = program_of(START + body, params=PARAMS, values=(TensorMap(), B)).coverage
        assert [each.partition(": ")[2] for each in coverage.inferred] == [
            "1,024 bytes of a copy, from the phases of its mbarriers"
        ]
    not_judged = program_of(START + TWICE, params=PARAMS, values=(TensorMap(), B)).coverage.not_judged
    assert {each.kind: each.count for each in not_judged}[NotJudgedKind.INFERRED_BYTES] == 3


@pytest.mark.parametrize("seed", range(20))
def test_bytes_solve_every_phase_and_are_open_unless_each_choice_gives_the_same(seed: int) -> None:
    rng = random.Random(seed)
    sizes = [rng.randrange(1, 6) for _ in range(rng.randrange(1, 4))]
    boxes = [[rng.randrange(3) for _ in sizes] for _ in range(rng.randrange(4))]
    totals = [sum(map(mul, row, sizes)) for row in boxes]
    every = [
        each for each in product(range(1, 40), repeat=len(sizes))
        if all(sum(map(mul, row, each)) == total for row, total in zip(boxes, totals, strict=True))
    ]  # fmt: skip
    rows = [tuple(map(Fraction, (*row, total))) for row, total in zip(boxes, totals, strict=True)]
    keys = list(range(len(sizes)))
    said = solve_boxes(keys, rows, sizes)
    assert said is not None
    found, unknown = said
    assert tuple(found.values()) in every
    assert all(len({each[key] for each in every}) == 1 for key in set(keys) - unknown)
    wrong = (*rows[0][:-1], rows[0][-1] + 1) if rows else (*map(Fraction, sizes), Fraction(0))
    assert solve_boxes(keys, [*rows, wrong], sizes) is None


def test_all_missing_boxes_are_named_at_once_and_given_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parameters = (Parameter("a", TensorMap()), Parameter("", TensorMap()))
    launch = Launch("kernel", (1, 1, 1), (64, 1, 1), parameters=parameters)
    ptx = written(tmp_path / "two.ptx", text_of(START + TWO, PARAMS), launch)
    assert main(["check", ptx, "--quick", "--json"]) == 3
    coverage = json.loads(capsys.readouterr().out)["report"]["heading"]["coverage"]
    a, b, give = coverage["unsized"]
    assert a.startswith("parameter 0 (a), byte 0 of the parameters, copied at two.ptx:")
    assert b.startswith("parameter 1, byte 128 of the parameters, copied at two.ptx:")
    assert give == "give them with --box a=TYPE:SIZE,SIZE --box 128=TYPE:SIZE,SIZE; TYPE:SIZE,SIZE as bf16:64,128"
    boxes = ("--box", "a=u8:64,16", "--box", "128=f32:16,8")
    assert main(["check", ptx, "--quick", *boxes]) == 0
    assert find(ptx, sets=[f"--box {each}" for each in boxes[1::2]]).launch_words == boxes


@pytest.mark.parametrize(
    ("given", "corner", "verdict"),
    [
        (TensorMap("u8", (64, 16), (80, 16)), "{0, 0}", "proved"),  # the last 16 bytes of each row are padding
        (TensorMap("u8", (64, 16), (80, 16)), "{%r20, 0}", "unknown"),
        (TensorMap("u8", (80, 16), (80, 16)), "{0, 0}", "refuted"),
        (TensorMap("u8", (64, 16), (80, 16)), "{-16, 0}", "refuted"),
        (TensorMap("u8", box=(80, 16)), "{0, 0}", "unknown"),
        (TensorMap("u8", (80, 18), (80, 16)), "{0, 3}", "refuted"),
        (TensorMap("u8", (80, 3), (80, 16), swizzle="128B"), "{0, 0}", "unknown"),  # rows are 128 bytes apart
    ],
)
def test_bytes_of_a_box_outside_of_the_tensor_need_not_be_written(given: TensorMap, corner: str, verdict: str) -> None:
    """Rows of 64 bytes at every 80th, which one store copies by a box of 80 bytes a row; %r20 is not known."""
    text = " shr.u32 %r20, %r0, 2;\n mad.lo.u32 %r20, %r20, 80, %r4;\n and.b32 %r21, %r0, 3;\n"
    text += " shl.b32 %r21, %r21, 4;\n add.u32 %r21, %r21, %r20;\n st.shared.v2.u64 [%r21], {%rd5, %rd5};\n"
    text += " fence.proxy.async.shared::cta;\n bar.sync 0;\n ld.global.u32 %r20, [%rd5];\n"
    copy = f" cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {corner}], [%r4];\n"
    body = START + text + by_one(copy + " cp.async.bulk.commit_group;\n cp.async.bulk.wait_group 0;\n")
    assert check(program_of(body, params=PARAMS, values=(given, A))).verdict.value == verdict
