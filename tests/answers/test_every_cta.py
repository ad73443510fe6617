"""Which CTAs do the same, against reading every one; kernels that are right in the first CTA and wrong in another."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pipesim.answers.check import check
from pipesim.answers.every_cta import kinds
from pipesim.answers.every_cta.conditions import broken
from pipesim.answers.every_cta.kinds import EveryCta
from pipesim.answers.views.check import CheckReport
from pipesim.cli.main import main
from pipesim.findings.waivers import place_of
from pipesim.launches.checks import check_launch
from pipesim.model.finding import Verdict
from pipesim.prove.check import How
from pipesim.ptx.extract import extract
from pipesim.ptx.free.varying import FreeInputs
from pipesim.ptx.kernel import read_kernel
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.text.read import read_module
from pipesim.report.pages.checks.check import check_lines
from pipesim.report.sentences.check import check_sentence, ctas_words, kinds_words
from pipesim.targets import find
from tests.support.kernel_files import written
from tests.support.random_cta_kernels import random_cta_kernel, ring_of_cta
from tools.judge_ctas import by_force, kinds_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.sampled(4, 5)
@pytest.mark.parametrize("seed", range(8))
def test_the_kinds_are_those_of_reading_every_cta(seed: int) -> None:
    text, launch = random_cta_kernel(seed)
    first = extract(read_module(text, "random.ptx"), launch)
    assert kinds_of(first, range(30))[1] == by_force(first, range(30)), seed


def checked(folder: Path, text: str, launch: Launch, *settings: str, quick: bool = False) -> CheckReport:
    return check(find(written(folder / "ring.ptx", text, launch), sets=settings), {}, quick=quick)


#: A stage for each tile of 7 that this CTA of ``width`` has, and for the tiles that it takes.
SHARE = " sub.u32 %r30, 7, %r20;\n add.u32 %r30, %r30, 3;\n shr.u32 %r30, %r30, 2;"


def test_a_right_kernel_is_proved_for_every_cta(tmp_path: Path) -> None:
    """CTAs 0 to 2 of 4 have two tiles, and CTA 3 has one."""
    report = checked(tmp_path, *ring_of_cta(SHARE, (4, 1, 1), trips=30, other=30))
    assert (report.verdict, ctas_words(report.scope)) == (Verdict.PROVED, "every CTA")
    assert kinds_words(report) == ["3 like CTA 0 proved", "CTA 3 proved (blockIdx.x > 2 at ring.ptx:49)"]
    assert any("4 CTAs of 2 kinds" in line for line in check_lines(report, 100))


def test_a_kernel_that_hangs_in_its_last_cta_is_refuted_there(tmp_path: Path) -> None:
    """The consumer of the last CTA waits for a tile more than are loaded."""
    late = SHARE + "\n mov.u32 %r31, 2;"
    report = checked(tmp_path, *ring_of_cta(late, (4, 1, 1), trips=30, other=31))
    assert (report.verdict, ctas_words(report.scope)) == (Verdict.REFUTED, "CTA 3 of 4")
    assert kinds_words(report)[-1] == "CTA 3 refuted (blockIdx.x > 2 at ring.ptx:50)"
    (found,) = report.refutations
    assert "--set cta=3" in found.command
    again = checked(tmp_path, *ring_of_cta(late, (4, 1, 1), trips=30, other=31), "cta=3", quick=True)
    assert (again.verdict, again.kinds) == (Verdict.REFUTED, ())
    first = checked(tmp_path, *ring_of_cta(late, (4, 1, 1), trips=30, other=31), "cta=0", quick=True)
    assert (first.verdict, ctas_words(first.scope)) == (Verdict.PROVED, "CTA 0 of 4")


#: CTA 0 of 5 waits for a tile more than is loaded, and CTA 3 loads one more than are taken.
APART = """ setp.eq.u32 %p9, %r20, 0;
 setp.eq.u32 %p10, %r20, 3;
 selp.b32 %r30, 3, 2, %p10;
 selp.b32 %r32, 3, 2, %p9;
 selp.b32 %r31, 0, %r32, %p10;"""


@pytest.mark.slow
def test_each_kind_has_its_findings(tmp_path: Path) -> None:
    """A finding that is waived in one CTA hides none of another."""
    report = checked(tmp_path, *ring_of_cta(APART, (5, 1, 1), trips=30, other=31), quick=True)
    first, second = report.refutations
    assert [place_of(each.finding) for each in (first, second)] == ["ring.ptx:64", "ring.ptx:59"]
    assert [[kind.cta for kind in each.kinds] for each in (first, second)] == [[0], [3]]
    assert (first.settings, second.settings) == ({}, {"cta": 3})
    assert [kind.verdict.value for kind in report.kinds] == ["refuted", "proved", "refuted"]
    file = str(tmp_path / "ring.ptx")
    for waived, code in ((["compute_2"], 1), (["compute"], 1), (["compute", "compute_2"], 0)):
        assert main(["check", file, "--quick", *(f"--ignore=deadlock:{role}" for role in waived)]) == code


@pytest.mark.slow
def test_the_kernel_of_the_front_page_hangs_in_its_last_cta() -> None:
    """The last tile of 1,250 elements is not whole: it is not loaded, and waited for."""
    kernel = str(ROOT / "tests" / "ptx" / "cta_kinds" / "scale_tail.ptx")
    report = check(find(kernel), {}, quick=True)
    assert (report.verdict, ctas_words(report.scope)) == (Verdict.REFUTED, "CTA 9 of 10")
    assert kinds_words(report) == ["9 like CTA 0 proved", "CTA 9 refuted (blockIdx.x > 8 at scale_tail.cu:42)"]
    verdict = check_launch(Path(kernel), Path(kernel).with_suffix(".json"))  # that of launches --check
    assert verdict == (Verdict.REFUTED, "refuted: scale_tail: deadlock: 1 of 2 agents waits indefinitely in CTA 9")
    whole = check(find(kernel, sets=("20=1280",)), {}, quick=True)
    assert (whole.verdict, ctas_words(whole.scope), whole.kinds) == (Verdict.PROVED, "every CTA", ())


@pytest.mark.sampled(0, 4)
@pytest.mark.parametrize(
    ("name", "number"),
    [("early_exit", 2), ("causal", 6), ("stream_k", 7), ("varlen", 4), ("grouped", 8), ("scale_tail", 2)],
)
def test_the_kinds_of_kernels_are_those_of_reading_every_cta(name: str, number: int) -> None:
    """CTAs that leave at once, tiles of a triangle, equal shares of uneven tiles, sequences and groups by arrays."""
    folder = ROOT / "tests" / "ptx" / "cta_kinds"
    file = "scale_tail" if name == "scale_tail" else "kinds"
    launch = None if file == name else folder / f"kinds-{name}.json"
    first = read_kernel(folder / f"{file}.ptx", launch)
    clusters = range(EveryCta(first).clusters)
    assert kinds_of(first, clusters) == (number, by_force(first, clusters))


X, Y = "blockIdx.x", "blockIdx.y"


@pytest.mark.parametrize(
    ("asked", "here", "words"),
    [
        (lambda x, y: 4 * x + y > 20, (9, 0), "4 * blockIdx.x + blockIdx.y > 20"),
        (lambda x, y: x * 128 + 128 <= 1000, (7, 0), "blockIdx.x > 6"),
        (lambda x, y: x < y, (0, 1), "blockIdx.x < blockIdx.y"),
        (lambda x, y: x + 3 == y, (1, 4), "blockIdx.x + 3 == blockIdx.y"),
        (lambda x, y: x // 2 == 3, (6, 0), "blockIdx.x / 2 == 3"),
        (lambda x, y: x % 4 == 2, (6, 0), "blockIdx.x % 4 == 2"),
        (lambda x, y: (5 * x + 2) % 8 + 1 > 4, (1, 0), "(5 * blockIdx.x + 2) % 8 > 3"),
        (lambda x, y: ((x - 4) & 255) == 4, (8, 0), "(blockIdx.x - 4) % 256 == 4"),
        (lambda x, y: (x & 5) > 3, (4, 0), "(blockIdx.x & 5) > 3"),
    ],
)  # fmt: skip
def test_conditions_have_the_words_of_the_kernel(
    asked: Callable[[int, int], bool], here: tuple[int, int], words: str
) -> None:
    """What another CTA breaks is said with what the kernel computes."""
    inputs = FreeInputs()
    bool(asked(inputs.free(X, 0, 0, 99), inputs.free(Y, 0, 0, 99)))
    found = broken(inputs, {name: np.array([value]) for name, value in zip((X, Y), here, strict=True)})
    assert found is not None
    assert found.words == words


def test_equal_findings_are_one(tmp_path: Path) -> None:
    """CTAs 0 to 2 load one tile less than they wait for, and CTA 3, which has fewer tiles, as well."""
    more = SHARE + "\n add.u32 %r31, %r30, 1;"
    report = checked(tmp_path, *ring_of_cta(more, (4, 1, 1), trips=30, other=31), quick=True)
    (found,) = report.refutations
    assert [(kind.cta, kind.ctas) for kind in found.kinds] == [(0, 3), (3, 1)]
    assert "in 3 like CTA 0 and CTA 3 (blockIdx.x > 2)" in "\n".join(check_lines(report, 100))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check looks at 6 kinds of CTAs."""
    monkeypatch.setattr(kinds, "MOST_KINDS", 6)


@pytest.mark.usefixtures("few")
def test_waivers_agree_with_nothing_that_is_not_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All that is found is waived, but there are more kinds of CTAs than are looked at."""
    written(tmp_path / "ring.ptx", *ring_of_cta(OWN, (200, 1, 1), trips=30, other=32))
    assert main(["check", str(tmp_path / "ring.ptx"), "--quick", "--ignore=deadlock"]) == 3
    assert "not all CTAs and sizes of kernel are proved or refuted" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_the_picture_is_of_the_cta_that_fails(tmp_path: Path) -> None:
    late = SHARE + "\n mov.u32 %r31, 2;"
    written(tmp_path / "ring.ptx", *ring_of_cta(late, (4, 1, 1), trips=30, other=31))
    told = []
    for n, more in enumerate(((), ("--set", "cta=3"))):
        file = tmp_path / f"{n}.html"
        asked = ["export", str(tmp_path / "ring.ptx"), *more, "--to", "html", "--picture", "counterexample"]
        assert main([*asked, "-o", str(file)]) == 0
        told.append(file.read_text().partition('"story":')[2].partition("again")[0])
    assert told[0] == told[1] != ""


def test_the_diagram_names_the_kinds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The last CTA of 4 has no tile, and so uses no barrier: it is drawn for itself."""
    few = " mov.u32 %r30, 0;\n setp.lt.u32 %p9, %r20, 3;\n @%p9 add.u32 %r30, %r20, 1;"
    written(tmp_path / "ring.ptx", *ring_of_cta(few, (4, 1, 1), trips=30, other=30))
    capsys.readouterr()
    assert main(["show", str(tmp_path / "ring.ptx")]) == 0
    shown = capsys.readouterr().out
    assert "CTA 1 ((blockIdx.x < 3 ? blockIdx.x + 1 : 0) % 4 > 1" in shown
    assert shown.count("totals of a CTA") == 3, "the stage that CTA 0 does not use, and none in CTA 3"
    assert main(["show", str(tmp_path / "ring.ptx"), "--json"]) == 0
    kinds = json.loads(capsys.readouterr().out)["kinds"]
    assert [(each["cta"], bool(each["other"])) for each in kinds] == [(0, False), (1, True), (2, True), (3, True)]


def test_a_million_ctas_that_do_the_same_are_read_once() -> None:
    text, launch = ring_of_cta(" mov.u32 %r30, 2;", (1_000_000, 1, 1), trips=30, other=30)
    first = extract(read_module(text, "ring.ptx"), launch)
    every = EveryCta(first)
    assert list(every) == []
    assert (every.complete, every.kinds[0].clusters, first.inputs.conditions) == (True, 1_000_000, {})


#: A CTA initialises its barrier with a count of its own: no two do the same.
OWN = """ mov.u32 %r30, 2;
 mov.u32 %r32, 3;
 add.u32 %r31, %r20, 5;
 setp.ne.u32 %p9, %r0, 0;
 @!%p9 mbarrier.init.shared::cta.b64 [%r3+48], %r31;"""


@pytest.mark.usefixtures("few")
def test_of_more_kinds_than_are_looked_at_nothing_is_proved(tmp_path: Path) -> None:
    report = checked(tmp_path, *ring_of_cta(OWN, (200, 1, 1), trips=30, other=30))
    assert (report.verdict, report.how) == (Verdict.UNKNOWN, How.SOME_CTAS)
    assert "proved for 6 CTAs" in check_sentence(report)
    assert len(report.kinds) == 6
    assert "200 CTAs of 6 kinds" in "\n".join(check_lines(report, 100))


def test_the_document_names_the_kinds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path / "ring.ptx", *ring_of_cta(SHARE, (4, 1, 1), trips=30, other=30))
    assert main(["check", str(tmp_path / "ring.ptx"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)["report"]
    first = {"cta": 0, "ctas": 3, "contents": {}, "differs": "", "line": "", "verdict": "proved"}
    assert report["kinds"][0] == first
    assert (report["scope"]["ctas"], report["scope"]["grid"]) == ([], 4)


EQUAL = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry equal()
{
 .reg .pred %p<4>;
 .reg .b32 %r<8>;
 .shared .align 8 .b64 bar;
 .shared .align 4 .b8 cell[1024];
 mov.u32 %r0, %tid.x;
 mov.u32 %r1, %ctaid.x;
 mov.u32 %r2, bar;
 setp.ne.u32 %p0, %r0, 0;
 @!%p0 mbarrier.init.shared::cta.b64 [%r2], 1;
 bar.sync 0;
 mul.lo.u32 %r3, %r0, %r1;
 DECIDES
 or.pred %p2, %p1, %p0;
 @!%p2 mbarrier.arrive.shared::cta.b64 _, [%r2];
wait:
 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2], 0;
 @!%p3 bra wait;
 ret;
}
"""
STORED = """mov.u32 %r4, cell;
 mad.lo.u32 %r5, %r3, 4, %r4;
 st.shared.u32 [%r5], %r0;
 bar.sync 0;
 ld.shared.u32 %r6, [%r4];
 setp.eq.u32 %p1, %r6, 7;"""


@pytest.mark.parametrize(
    ("decides", "verdict"),
    [
        ("match.all.sync.b32 %r4|%p1, %r3, 0xffffffff;", Verdict.REFUTED),  # all lanes have 0 in the first CTA alone
        ("match.all.sync.b32 %r4|%p1, %r0, 0xffffffff;", Verdict.PROVED),
        (STORED, Verdict.UNKNOWN),  # all lanes store to one place in the first CTA, and any of them may be last
        (STORED.replace("%r3, 4", "%r0, 4"), Verdict.PROVED),
    ],
)
def test_lanes_that_are_alike_in_one_cta(tmp_path: Path, decides: str, verdict: Verdict) -> None:
    launch = Launch("equal", (3, 1, 1), (32, 1, 1))
    assert checked(tmp_path, EQUAL.replace("DECIDES", decides), launch, quick=True).verdict is verdict
