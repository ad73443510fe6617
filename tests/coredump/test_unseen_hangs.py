"""What is said of hangs that were dumped on an NVIDIA H200 after it was written down what has to be said of them.

Their kernels are in ``sources``; of ``multicast_ring`` the dump has its lines.
"""

import pytest

from pipesim.answers.autopsy.autopsy import autopsy, autopsy_of
from pipesim.coredump.dump import DumpSection, open_dump
from pipesim.coredump.elf import ElfFile
from pipesim.model.finding import Deadlock
from pipesim.report.pages.programs.autopsy import autopsy_lines
from tests.coredump.test_dump import RING

#: By dump: what its page says, and what would be false.
SAID = {
    "multicast_ring": (
        (  # each lane arrives in another CTA, none in the last one
            ("warp/0@3 waits for phase 0 of ring at 0x1c18 [0 of 3]@3 (parity 0, now in phase 0): it has 0 of 16 "
            "arrivals (k03_multicast.cu:31) no operation of the program could send what is missing"),
            ("warp/0@2 waits for phase 1 of ring at 0x1c18 [0 of 3]@2 (parity 1, now in phase 1): it has 0 of 16 "
            "arrivals (k03_multicast.cu:31) warp/1@0 to warp/4@0 would send the arrival next (k03_multicast.cu:45)"),
        ),
        ("now in phase 3",),
    ),
    "relax": (  # the table of grids says that this cooperative launch has one CTA
        (
            "relax grid 8 CTAs",
            "warp/0 of CTAs 0 to 4, 6 to 7 wait for it to be at least 2,147,483,648 (relax+0x540) CTA 5 could store",
        ),
        ("circular wait",),
    ),
    "two_buffers": (("circular wait: warp/0 → warp/2 → warp/0",), ()),
    "cp_async_ring": (  # a loop that asks sleeps longer and longer: a register changes in it
        ("it has 0 of 64 arrivals (k05_cp_async.cu:32) no operation of the program could send what is missing",),
        (),
    ),
    "queue": (  # that warp 1 comes back to its loop by the loop around it does not say that it was not left
        (
            ("warp/1 waits for a value in shared memory (0x600), which is 4 (queue+0x330) warp/0 could store it next "
            "(queue+0x6d0), but waits for a value in shared memory (0x604), which is 0"),
            "circular wait: warp/0 → warp/1 → warp/0",
        ),
        (),
    ),
    "stream_k": (
        (
            ("warp/0 of CTA 3 waits for it to be at least 3 (stream_k+0x12b0) CTAs 4 to 5 have ended, and did store "
            "(stream_k+0xfa0): if the word was 0 at first, that is all that was added"),
        ),
        ("only 32 threads ever come there", "have not begun"),
    ),
    "rebalance": (
        ("warp/0@0 and warp/1@0 would send the arrival next (rebalance+0x7b0), but wait for the cluster barrier",),
        ("agents of one role do not all do the same",),
    ),
    "call_wait": (  # the wait is in a function that another one calls; neither is inlined
        (
            "warp/0 waits for phase 2 of ring at 0xc10 [0 of 2] (parity 0, now in phase 2): it has 2 of 3 arrivals",
            "do not all do the same: warp/1 and warp/3 arrive on ring at 0xc10 [0 of 2] 3 times, warp/2 2 times",
        ),
        ("was not read",),
    ),
    "local_barriers": (  # an array in local memory has the addresses of the barriers
        ("warp/2 arrives on ring at 0x1408 [1 of 4] 2 times, warp/1 once", "circular wait: warp/0 → warp/1 → warp/0"),
        ("was not read",),
    ),
    "remote_word": (
        ("warp/0@1 waits for a value in shared memory (0x404@0), which is 0, to be at least 5 (dsmem+0x280)",),
        ("global memory",),
    ),
    "peers": (  # each lane asks for a word of its own: the twelfth is the one that is waited for
        ("the word param_1 + 1408 in global memory, which is 1 warp/0 of CTA 0 waits for it to be at least 2",),
        ("it runs",),
    ),
    "notify": (  # it did store, and that does not end the wait
        ("CTA 0 could store 0 (stdatomic.cu:6); whether it did is not known",),
        ("has not begun",),
    ),
    "inlined_roles": (  # the kernel is one call of a function that has all roles
        (
            "(parity 0, now in phase 0): it has 1 of 2 arrivals (templ.cu:15)",
            "warp/1 would send the arrival next (templ.cu:21)",
        ),
        ("templ.cu:28",),
    ),
    "debug_build": (  # nvcc -G: the driver says where the function that waits was called
        ("3 arrivals (callwait.cu:11)", "warp/1 to warp/3 wait for mbarrier 0xc00", "1 arrivals (callwait.cu:15)"),
        ("h.cuh",),
    ),
    "triton_grid_barrier": (  # CTAs whose warps have all come to the barrier above ask for the word as well
        ("warp/0 of CTAs 0 to 11 wait for it to be at least 13 (tri.py:26)",),
        ("it runs", "warp/1 of CTAs"),
    ),
    "over_arrive": (
        (
            "? an exception stopped the kernels: whether these waits would have ended is not known",
            "✗ stopped by an exception, and no hang: x_overarrive: illegal instruction: an mbarrier gets more arrivals",
        ),
        ("deadlock",),
    ),
    # by -G a register of a named barrier is used again, and a loop of waits calls functions
    "unoptimised_barriers": (
        ("warp/4 to warp/11: it waits for what its registers do not say any more (h.cuh:45)",),
        ("deadlock", "it runs", "named barrier"),
    ),
    "unoptimised_waits": (
        ("warp/0 to warp/3: it waits for what its registers do not say any more (h.cuh:9)", "? unknown"),
        ("deadlock", "it runs"),
    ),
    "trap": (("warp/1: stopped by an exception: trap (x_trap+0x340)", "and no hang: x_trap: trap"), ("deadlock",)),
}  # fmt: skip


@pytest.mark.sampled(4, 10)
@pytest.mark.parametrize("name", sorted(SAID))
def test_what_is_said_of_a_hang_that_was_not_seen_before(name: str) -> None:
    there, false = SAID[name]
    report = autopsy(RING.with_name(f"{name}.h200.elf.xz"))
    page = " ".join(" ".join(str(line) for line in autopsy_lines(report, 100)).split())
    assert [each for each in there if each not in page] == []
    assert [each for each in false if each in page] == []


def test_a_grid_of_which_the_size_is_not_in_the_dump_is_as_large_as_its_ctas_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dump = open_dump(RING.with_name("relax.h200.elf.xz"))
    of_kind = ElfFile.of_kind
    monkeypatch.setattr(
        ElfFile, "of_kind", lambda elf, kind: iter(()) if kind == DumpSection.GLOBAL_MEMORY else of_kind(elf, kind)
    )
    assert dump.grids[0].grid == (8, 1, 1)
    assert dump.notes == ("the size of a grid is not known: it has CTAs in 8 x 1 x 1",)


def test_words_of_shared_memory_are_without_values_where_the_report_is_anonymous() -> None:
    page = autopsy_of(open_dump(RING.with_name("queue.h200.elf.xz")), "", anonymous=True)
    blocked = [each for found in page.findings if isinstance(found, Deadlock) for each in found.blocked]
    assert [each.barrier for each in blocked[:2]] == [
        "a value in shared memory (0x604)",
        "a value in shared memory (0x600)",
    ]
