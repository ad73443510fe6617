"""Who could store the word of global memory that CTAs spin on: whoever holds a lock, led past a store, or waits itself.

Each dump has its hang planted, so that what is said of it is known; and who does as he should is not named.
"""

import re
from dataclasses import replace

import pytest

from pipesim.answers.autopsy.autopsy import autopsy_of
from pipesim.answers.views.autopsy import AutopsyReport, WriterState
from pipesim.coredump.dump import CoreDump, open_dump
from pipesim.report.pages.programs.autopsy import autopsy_lines
from tests.coredump.test_hangs import DUMPS

HOLDS, SKIPPED, WOULD, MAY, NOT_BEGUN = (
    WriterState.HOLDS, WriterState.SKIPPED, WriterState.WOULD, WriterState.MAY, WriterState.NOT_BEGUN,
)  # fmt: skip
#: By dump: each word with its value, what is wanted by whom, and who could store it.
WORDS = {
    "lock_kept": [("param_1", "5", {"0": [1, 2, 3, 5, 6, 7, 8, 11, 12, 13]}, [(HOLDS, (4,), "")])],
    "lock_kept_bare": [("param_1", "16", {"0": [0, 2, 3, 6, 7, 8, 11, 12, 13, 14]}, [(HOLDS, (15,), "")])],
    "triton_lock_kept": [
        ("param_1", "1", {"another value than 1": [1, 2, 3, 5, 7]}, [(WriterState.MAY_HOLD, (0, 4, 6), "")])
    ],
    "two_locks": [
        ("param_1 + 4", "1", {"0": [0]}, [(HOLDS, (1,), "a value in global memory (param_1)")]),
        ("param_1", "1", {"0": [1, 2]}, [(HOLDS, (0,), "a value in global memory (param_1 + 4)")]),
    ],
    "flag_not_set": [
        ("param_2", "2", {str(n): [n] for n in range(3, 8)},
         [(SKIPPED, (2,), ""), (WOULD, (3, 4, 5, 6), "a value in global memory (param_2)")]),
    ],
    "grid_barrier": [("param_1", "7", {"at least 8": [0, 1, 2, 3, 4, 6, 7]}, [(SKIPPED, (5,), "")])],
    "wrong_flag": [
        ("param_2 + 24", "0", {"3": [3]}, []),
        ("param_2 + 32", "0", {"3": [4]}, [(WOULD, (3,), "a value in global memory (param_2 + 24)")]),
    ],
    "two_kernels": [("param_1", "0", {"not 0": [0, 1]}, [(WOULD, (0,), "ring at 0xc00 [1 of 2]")])],
    "graph": [("param_1", "0", {"not 0": [0, 1]}, [])],  # by a kernel behind `ring` in the graph, which is not begun
    "triton_in_graph": [
        ("param_1", "2", {str(n): [n] for n in range(3, 8)},
         [(SKIPPED, (2,), ""), (WOULD, (3, 4, 5, 6), "a value in global memory (param_1)")]),
    ],
    "split_k": [("param_1 + 12", "0", {"1": [7], "2": [11]}, [(SKIPPED, (3,), "")])],
    "grid_laps": [("param_1", "18", {"at least 20": [0, 1]}, [(MAY, (2, 3), "")])],
    "last_block": [
        ("param_3", "0", {"not 0": [n // 2 for n in range(16)]},
         [(SKIPPED, tuple(range(8)), "a value in global memory (param_3)")]),
    ],
    "dependent": [
        ("param_1", "0", {"at least 2": [0, 1]}, [(WOULD, (0, 1), "the launch before (griddepcontrol.wait)")]),
    ],
    "gluon_turn": [
        ("param_1", "1", {"2": [2], "3": [3]}, [(SKIPPED, (1,), ""), (WOULD, (2,), "mbarrier 0x420")]),
    ],
}  # fmt: skip


def dump_of(name: str) -> CoreDump:
    return open_dump(next(iter(sorted(DUMPS.glob(f"{name}.h*.elf.xz"), reverse=True))))


def found(report: AutopsyReport) -> list[tuple[object, ...]]:
    """The words of a report as :data:`WORDS` has them."""
    return [
        (
            word.name,
            word.value,
            {
                w.wanted: sorted(n for each in word.waits if each.wanted == w.wanted for n in each.ctas)
                for w in word.waits
            },
            [(each.state, each.ctas, each.waits_for) for each in word.writers],
        )
        for word in report.words
    ]


@pytest.mark.sampled(3, 6)
@pytest.mark.parametrize("name", sorted(WORDS))
def test_who_could_store_the_word_that_is_waited_for(name: str) -> None:
    assert found(autopsy_of(dump_of(name), name)) == WORDS[name]


def test_two_ctas_have_what_the_other_one_waits_for() -> None:
    report = autopsy_of(dump_of("two_locks"), "")
    assert [word.cycle for word in report.words] == [((0, 0), (0, 1))] * 2
    text = " ".join(" ".join(autopsy_lines(report, 80)).split())
    assert "CTA 1 has it since two_locks.cu:21, and could give it back (two_locks.cu:28), but waits for" in text
    assert "circular wait: CTA 0 → CTA 1 → CTA 0" in text


@pytest.mark.sampled(1, 3)
@pytest.mark.parametrize(
    ("name", "line", "branch"),
    [
        ("flag_not_set", 14, 6),
        ("grid_barrier", 11, 6),
        ("lock_kept", 10, 9),
        ("split_k", 18, 13),
        ("last_block", 21, 15),
    ],
)
def test_the_branch_that_leads_past_the_store(name: str, line: int, branch: int) -> None:
    writer = autopsy_of(dump_of(name), name).words[0].writers[0]
    assert (writer.line, writer.branch) == (f"{name}.cu:{line}", f"{name}.cu:{branch}")


@pytest.mark.slow
def test_who_waits_for_a_launch_is_in_no_circle_with_a_store_that_was_passed() -> None:
    for name in ("last_block", "split_k"):
        assert [word.cycle for word in autopsy_of(dump_of(name), "").words] == [()]
    text = " ".join(" ".join(autopsy_lines(autopsy_of(dump_of("last_block"), ""), 80)).split())
    assert "CTAs 0 to 7 did not store (last_block.cu:21): the branch at last_block.cu:15 leads past it" in text


def test_without_memory_the_branch_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    dump = dump_of("flag_not_set")
    monkeypatch.setattr(dump, "memory_from", lambda _address, _most: b"")
    (word,) = autopsy_of(dump, "").words
    assert (word.value, [(each.state, each.ctas) for each in word.writers]) == (
        "2", [(WOULD, (3, 4, 5, 6)), (MAY, (2,))],
    )  # fmt: skip


def test_a_cta_that_would_wait_too_has_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    dump = dump_of("grid_barrier")  # of more CTAs than the GPU has room for, as after a launch that is not cooperative
    more = [
        replace(each, grid=(12, 1, 1), parameters=each.parameters[:16] + bytes([20, 0, 0, 0])) for each in dump.grids
    ]
    monkeypatch.setattr(dump, "grids", tuple(more))
    (word,) = autopsy_of(dump, "").words
    states = {cta: each.state for each in word.writers for cta in each.ctas}
    assert states == {5: SKIPPED, 8: NOT_BEGUN, 9: NOT_BEGUN, 10: NOT_BEGUN, 11: NOT_BEGUN}


def test_a_flag_that_is_taken_back_may_have_been_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """CTA 1 has stored what CTA 1 waits for: whether it has begun is not known where other stores replace that."""
    dump = dump_of("flag_not_set")
    memory, n = dump.memory_from, dump.grids[0].parameters[24:32]
    at = int.from_bytes(n, "little") + 8

    def changed(address: int, most: int) -> bytes:
        return (7).to_bytes(4, "little")[:most] if address == at else memory(address, most)

    monkeypatch.setattr(dump, "memory_from", changed)
    (word,) = autopsy_of(dump, "").words
    assert [(each.state, each.ctas) for each in word.writers] == [(WOULD, (3, 4, 5, 6)), (MAY, (2,))]


def test_a_word_that_is_as_it_should_be_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    dump = dump_of("grid_barrier")
    at, memory = int.from_bytes(dump.grids[0].parameters[8:16], "little"), dump.memory_from
    monkeypatch.setattr(dump, "memory_from", lambda a, most: b"\x08\0\0\0" if a == at else memory(a, most))
    report = autopsy_of(dump, "")
    assert not report.findings
    assert not report.words


def test_what_is_hidden_of_an_anonymous_one() -> None:
    report = autopsy_of(dump_of("lock_kept"), "", anonymous=True)
    assert [(word.value, [each.wanted for each in word.waits]) for word in report.words] == [("", [""])]
    assert not re.search(r"lock_kept\.cu|\b5\b which", " ".join(autopsy_lines(report, 80)))
