"""`check --fix`: the correction as a diff of one source line, and written where the file is the user's."""

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipesim.answers.kernel.lines import KernelLines
from pipesim.answers.kernel.slip_sentences import changed_token
from pipesim.answers.kernel.slips import Slip
from pipesim.model.ops import Fence, Op, Operation
from pipesim.prove.repair.correction import OTHER_PARITY, ChangedToken, Correction
from pipesim.prove.repair.kinds import Repair, RepairKind
from pipesim.prove.repair.wording.added_line import AddedLine, beside
from pipesim.ptx.text.instruction import Frame
from pipesim.report.text.source_fix import source_fix
from tests.support.fixture_types import Call

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
RING = """from pipesim import Protocol, Warp


def ring() -> Protocol:
    p = Protocol("ring")
    full = p.mbarriers("full", 1, count=3)  # of 1 producer

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            full[0].arrive()

    @p.role("consumer")
    def consumer(_: Warp) -> None:
        full[0].wait(0)

    return p
"""


def test_a_number_of_one_line_is_shown_and_written(call: Call) -> None:
    Path("ring.py").write_text(RING)
    answer = call("check", "ring.py", "--fix")
    assert answer.code == 1
    said = answer.out
    assert (
        '-    full = p.mbarriers("full", 1, count=3)  # of 1 producer\n+    full = p.mbarriers("full", 1, count=1)'
        in said
    )
    assert Path("ring.py").read_text() == RING
    assert call("check", "ring.py", "--fix", "--write").code == 1
    assert Path("ring.py").read_text() == RING.replace("count=3", "count=1")
    assert call("check", "ring.py", "--quick").code == 0


def test_a_file_elsewhere_is_shown_and_not_written(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "library").mkdir()
    file = tmp_path / "library" / "ring.py"
    file.write_text(RING)
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    assert "is not written" in call("check", str(file), "--fix", "--write").err
    assert file.read_text() == RING


@pytest.mark.slow
def test_a_line_of_a_kernel_that_leads_past_an_arrive_is_deleted(call: Call, tmp_path: Path) -> None:
    for end in ("cu", "ptx", "json"):
        shutil.copy(EXAMPLES / f"row_max.{end}", tmp_path)
    call("check", "row_max.ptx", "--fix", "--write")
    before, after = (path.read_text().splitlines() for path in (EXAMPLES / "row_max.cu", Path("row_max.cu")))
    assert after == before[:55] + before[56:]


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("init(s.full[i], 1), init(s.empty[i], 3);", "init(s.full[i], 1), init(s.empty[i], 2);"),
        ("init(s.full[i], 3), init(s.empty[i], 3);", None),
        ("init(s.empty[i], kReaders);  // 3", None),
        ("init(s.empty3[i], 3u);", None),
        ("init(3, 3);", None),
        ("init(s.empty[3], kReaders);", None),  # of an element
        ("init(s.empty + 3, kReaders);", None),
        ("init(s.empty[3], 3);", "init(s.empty[3], 2);"),
        ("if (i >= 3) init(empty, kReaders);", None),
        ('asm("mbarrier.init.b64 [%3], %4;");', None),  # of inline assembly
        ('asm("mbarrier.init.b64 [%1], 3;");', 'asm("mbarrier.init.b64 [%1], 2;");'),
        ("wait<kN - 1>();  // 3", "wait<kN - 2>();  // 3"),  # of a constant that the file defines
        ("wait(2 * kN - 1, kM - 1), both(kN - 1, kN - 1);", None),
    ],
)
def test_only_a_number_that_is_written_once_is_replaced(text: str, after: str | None, tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(f"{text}\nconstexpr int kN = 4, kM = 5;\n")
    count = Correction(Repair(RepairKind.COUNT, "", "empty", 2, 3), "", "", f"{tmp_path / 'k.cu'}:1")
    fix = source_fix(count)
    assert (fix.after if fix is not None else None) == after


STORES = """from pipesim import Engine, Fence, Protocol, Warp


def stores(tiles: int = 3) -> Protocol:
    p = Protocol("stores")
    out = p.smem("out", slots=1, nbytes=4096)

    @p.role("epilogue")
    def epilogue(warp: Warp) -> None:
        with warp.elect_one():
            for i in range(tiles):
                warp.write(out[0], i)
                warp.fence(Fence.PROXY_ASYNC)
                warp.async_read(
                    Engine.BULK, out[0], i
                )
                warp.commit(Engine.BULK)
                warp.wait_group(Engine.BULK)

    return p
"""
PROPOSED = {
    "commit": "                )\n+                warp.commit(Engine.BULK)  # proposed by pipesim\n",
    "fence": ", i)\n+                warp.fence(Fence.PROXY_ASYNC)  # proposed by pipesim\n                 warp.asy",
    "wait_group": "(Engine.BULK)\n+                warp.wait_group(Engine.BULK)  # proposed by pipesim\n",
}


@pytest.mark.parametrize("left_out", PROPOSED)
def test_a_statement_that_is_missing_is_proposed_and_not_written(left_out: str, call: Call) -> None:
    """It stands in the block of the statement before it, is a call of the same warp, and is marked."""
    text = "".join(line for line in STORES.splitlines(keepends=True) if f"warp.{left_out}(" not in line)
    Path("stores.py").write_text(text)
    answer = call("check", "stores.py", "--fix", "--write")
    assert answer.code == 1
    assert PROPOSED[left_out] in answer.out
    assert Path("stores.py").read_text() == text


FENCE_OP, SYNC = (int(Op.FENCE), int(Fence.PROXY_ASYNC), 0), (int(Op.BAR_SYNC), 0, 128, 32)


@pytest.mark.parametrize(
    ("op", "number", "line", "before", "after"),
    [
        (SYNC, 0, 4, True, "        __syncthreads();  // proposed by pipesim"),
        (FENCE_OP, -1, 2, False, '        asm volatile("fence.proxy.async;" ::: "memory");  // proposed by pipesim'),
        (SYNC, 3, 4, True, '        asm volatile("bar.sync 3, 128;" ::: "memory");  // proposed by pipesim'),
        ((int(Op.FENCE), int(Fence.SC), 0), -1, 2, False, None),
    ],
)
def test_a_proposal_in_cuda(op: Operation, number: int, line: int, before: bool, after: str, tmp_path: Path) -> None:
    lines = ["    if (mine) {", "        put(tile,", "            value);", "        arrive(full);", "    }"]
    (tmp_path / "k.cu").write_text("\n".join(lines))
    added = AddedLine(op, number, (), f"{tmp_path / 'k.cu'}:{line}", before)
    said = "__syncthreads()" * ("__syncthreads" in (after or ""))
    fix = source_fix(Correction(Repair(RepairKind.FENCE, "", ""), said, "", added=added))
    expected = "\n".join((*lines[:3], after, *lines[3:])) if after else None
    assert (fix.texts[1] if fix is not None else None) == expected


def test_the_line_is_that_in_the_function_of_both_operations() -> None:
    """Of two operations in one call of a function its own line, of two in the kernel the line of the call."""
    put = [Frame("k.cu", 20, "kernel", 1), Frame("k.cu", 5, "put", 1)]
    frames = [
        put,
        [put[0], Frame("k.cu", 7, "put", 1)],
        [Frame("k.cu", 21, "kernel", 1), Frame("k.cu", 9, "arrive", 1)],
    ]
    body = [SimpleNamespace(line=n, source=SimpleNamespace(frames=each)) for n, each in enumerate(frames)]
    reading: Any = SimpleNamespace(program=None, lines=[(0, 1, 2)], offsets=(), function=SimpleNamespace(body=body))
    line: Any = KernelLines(reading, reading).line_in_function
    added = AddedLine(FENCE_OP, -1, ((0, 1),))
    found = [beside(replace(added, places=((0, at),)), line) for at in (1, 2, 3)]
    assert [each and (each.line, each.before) for each in found] == [("k.cu:5", False), ("k.cu:20", False), None]


def test_write_needs_fix_and_fix_prints_text(call: Call) -> None:
    assert call("check", "producer_consumer", "--write").err.startswith("pipesim: --write without --fix")
    assert call("check", "producer_consumer", "--fix", "--json").out.count("--fix prints text") == 1


@pytest.mark.parametrize(
    ("token", "file", "inner", "after"),
    [
        (("1", "0"), "k.cu", "arrive(empty, pred=i > 1)", "arrive(empty, pred=i > 0)"),
        (("1", "0"), "k.cu", "wait(s, parity)", None),  # the number is in neither line, or twice
        (("1", "0"), "k.cu", "state(1, 1)", None),
        (("1", "0"), "k.py", "arrive(1, pred=i > 1, count=1)", "arrive(1, pred=i > 0, count=1)"),  # at the column
        (("", ""), "k.cu", "for (int i = 0; i < tiles; i += 2)  // <", "for (int i = 0; i <= tiles; i += 2)  // <"),
        (("", ""), "k.cu", "if (n >= 4) return;", "if (n > 4) return;"),
        (("", ""), "k.cu", "s->run<3>(n < 4);", None),
        (("3", "0"), "k.cu", 'asm("copy [%0], [%1], %2, [%3];");', None),
    ],
)
def test_a_slip_is_the_edit_of_the_line_that_has_the_number(
    token: tuple[str, str], file: str, inner: str, after: str | None, tmp_path: Path
) -> None:
    (tmp_path / file).write_text(f"{inner}\nrole();\n")
    lines = tuple(f"{tmp_path / file}:{number},16" for number in (1, 2))
    slip = Repair(RepairKind.SLIP, "", "")
    fix = source_fix(Correction(slip, "", "", token=ChangedToken(*token, lines)))
    assert (fix and (fix.number, fix.after)) == (after and (1, after))


@pytest.mark.parametrize(
    ("was", "now"),
    [("setp.ne.s32 %p1, %r1, 0;", "setp.ne.s32 %p1, %r1, -1;"), ("setp.lt.s32 %p1, 0;", "setp.le.s32 %p1, 0;")],
)
def test_what_several_instructions_of_a_line_have_is_not_known_to_be_the_one_that_is_written_there(
    was: str, now: str
) -> None:
    """As ``if (lane == 0 && i != 2)`` has only one 0, though the copies of an unrolled loop compare with 0, too."""
    source = SimpleNamespace(frames=[Frame("k.cu", 20, "kernel", 1)])
    body: Any = [SimpleNamespace(line=n, opcode="setp", source=source) for n in (1, 2)]
    kernel: Any = SimpleNamespace(text=f"{was}\nsetp.eq.s32 %p2, %r2, 0;")
    alone = changed_token(Slip(1, 0, ((1, now),)), kernel, body)
    both = changed_token(Slip(1, 0, ((1, now), (2, now))), kernel, body)
    assert (alone and alone.lines, both and both.lines) == ((), ("k.cu:20,1",))


def test_a_number_that_is_proved_in_one_of_several_ctas_is_not_written(tmp_path: Path) -> None:
    """In those that do something else it may be the right one: ``n + (blockIdx.x == 5)``."""
    (tmp_path / "k.cu").write_text("init(empty, 3);\n  if (n < 4) continue;\n")
    count = Correction(Repair(RepairKind.COUNT, "", "empty", 2, 3), "", "", f"{tmp_path / 'k.cu'}:1")
    past = Correction(Repair(RepairKind.NOT_PAST, "", ""), "", "", f"{tmp_path / 'k.cu'}:2")
    fixes = [source_fix(each, of_some_ctas=True) for each in (count, past)]
    assert [fix and fix.proposed for fix in fixes] == [True, False]


@pytest.mark.parametrize(
    ("text", "after", "proposed"),
    [
        ("  if (n < (limit))\n    copy(x,\n         y);\n  next();", "    copy(x,\n         y);\n  next();", False),
        ("  if (n < 4) arrive(full);  // mine\n}", "  arrive(full);  // mine\n}", False),
        ("  if (n < 4) {\n    arrive(full);\n  }\n}", "  {\n    arrive(full);\n  }\n}", False),
        ("  if (n < 4 && mine) arrive(full);\n}", "  arrive(full);\n}", True),  # of which one was left out
        ("  if (n < 4 || late) continue;\n}", "}", True),
        ("  if (n < 4) { arrive(full); }  // as\n  else wait(full);", None, False),
        ("  if (n < 4)\n    arrive(full);\n  else\n    wait(full);", None, False),
        ("  } else if (n < 4) arrive(full);\n}", None, False),
    ],
)
def test_a_condition_that_leads_past_an_arrive_is_left_out(
    text: str, after: str | None, proposed: bool, tmp_path: Path
) -> None:
    (tmp_path / "k.cu").write_text(text)
    fix = source_fix(Correction(Repair(RepairKind.NOT_PAST, "", ""), "", "", f"{tmp_path / 'k.cu'}:1"))
    assert (fix and (fix.texts[1], fix.proposed)) == (after and (after, proposed))


@pytest.mark.parametrize(
    ("call", "after"),
    [
        ("set_up(ring, 3, 3);", "set_up(ring, 3, 2);"),
        ("set_up<3>(f(ring, 3), 3, 3), set_up(0);", "set_up<3>(f(ring, 3), 3, 2), set_up(0);"),
        ("set_up(ring, 3, kReaders + 3);", None),
        ("set_down(ring, 3, 3);", None),
    ],
)
def test_a_number_that_a_function_is_given_is_proposed_in_its_call(
    call: str, after: str | None, tmp_path: Path
) -> None:
    head = (
        "void set_up(Ring &ring, unsigned full, int empty) {\n  if (threadIdx.x == 0) {\n    init(&ring.e[i], empty);"
    )
    (tmp_path / "k.cu").write_text(f"{head}\n  }}\n}}\n{call}")
    where = [f"{tmp_path / 'k.cu'}:{n}" for n in (3, 6)]
    fix = source_fix(Correction(Repair(RepairKind.COUNT, "", "empty", 2, 3), "", "", where[0], call=where[1]))
    assert (fix and (fix.number, fix.after, fix.proposed)) == (after and (6, after, True))


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("wait(full[s], n / 3 % 2);", "wait(full[s], n / 3 % 2 ^ 1);"),
        ("  wait(f(full, s), n / 3 % 2 ^ 1);", "  wait(f(full, s), n / 3 % 2);"),
        ("full[s].wait(phase & 1);  // all", "full[s].wait((phase & 1) ^ 1);  // all"),
        ("full[s].wait(0);", "full[s].wait(1);"),
        ("while (!try_wait(full[s], phase)) {", None),
    ],
)
def test_the_other_parity_of_a_wait_is_proposed(text: str, after: str | None, tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(text)
    token = ChangedToken("", OTHER_PARITY, (f"{tmp_path / 'k.cu'}:1",))
    fix = source_fix(Correction(Repair(RepairKind.PHASES, "", ""), "", "", token=token))
    assert (fix and fix.after) == after


def test_a_barrier_within_an_assignment_is_after_what_is_computed(tmp_path: Path) -> None:
    lines = ["    sum[t] = n >= 2 ? sum[t - 1] : 0;", "    f(sum[t], sum[t - 1]);"]
    (tmp_path / "k.cu").write_text("\n".join(lines))
    added = [AddedLine(SYNC, 0, (), f"{tmp_path / 'k.cu'}:{n}", within=True) for n in (1, 2)]
    fixes = [source_fix(Correction(Repair(RepairKind.SYNC, "", ""), "__syncthreads()", "", added=a)) for a in added]
    assert fixes[0] is not None
    assert fixes[1] is None
    assert fixes[0].texts[1].split("\n") == [
        "    const auto computed = n >= 2 ? sum[t - 1] : 0;  // proposed by pipesim",
        "    __syncthreads();",
        "    sum[t] = computed;",
        lines[1],
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("if (t < half) part[t] += part[t + half];\nnext();", 1),
        ("if (t < half) {\n  f(part);\n}\nnext();", 3),
        ("if (t < half)\n  f(part,\n    t);\nnext();", 3),
        ("if (t < half) f(part);\nelse g(part);\nnext();", 0),
        ("for (int i = 0; i < t; ++i) f(part);\nnext();", 0),
    ],
)
def test_a_barrier_after_a_branch_is_after_its_whole_statement(text: str, line: int, tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(text)
    added = AddedLine(SYNC, 0, (), f"{tmp_path / 'k.cu'}:1")
    fix = source_fix(Correction(Repair(RepairKind.SYNC, "", ""), "__syncthreads()", "", added=added))
    assert (fix.number if fix is not None else 0) == line
    assert fix is None or fix.texts[1].split("\n")[line] == "__syncthreads();  // proposed by pipesim"
