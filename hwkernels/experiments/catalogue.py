"""Every experiment: what it asked of the hardware, how, and its cases. A list of data.

A case's ``arguments`` are numbers by name: how the kernel was launched. A case that may trap ran in processes of its
own, because a trap takes the CUDA context with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hwkernels.experiments.latency import latency_cases
from hwkernels.experiments.sequences import SEQUENCES
from pipesim.errors import ParameterError


@dataclass(frozen=True)
class Case:
    """One setting of an experiment; its name is unique in it."""

    name: str
    arguments: dict[str, int] = field(default_factory=dict)
    may_trap: bool = False
    text: str = ""  #: of a sequence: its operations


@dataclass(frozen=True)
class Experiment:
    """A question that was put to the hardware with one small kernel."""

    name: str
    question: str
    how: str
    cases: tuple[Case, ...]

    def case(self, name: str) -> Case:
        """The case of this name. Raises ParameterError if there is none."""
        for case in self.cases:
            if case.name == name:
                return case
        raise ParameterError(f"the experiment {self.name} has no case {name!r}")


def experiment(name: str) -> Experiment:
    """The experiment of this name. Raises ParameterError, which lists them all, if there is none."""
    for each in EXPERIMENTS:
        if each.name == name:
            return each
    known = ", ".join(each.name for each in EXPERIMENTS)
    raise ParameterError(f"there is no experiment {name!r}", correction=f"use one of {known}")


_TOGETHER = ((1, 1), (31, 31), (32, 32), (16, 32), (2, 1), (3, 2), (5, 3), (32, 31), (32, 16), (32, 1))
_APART = ((2, 1), (3, 2), (32, 16), (32, 1), (32, 31))
_RUNS = 100


def _lanes() -> tuple[Case, ...]:
    together = tuple(
        Case(f"{n} on {m}", {"n": n, "m": m, "apart": 0, "runs": 1 if n > m else _RUNS}, may_trap=n > m)
        for n, m in _TOGETHER
    )
    apart = tuple(
        Case(f"{n} on {m}, one after the other", {"n": n, "m": m, "apart": 1, "runs": _RUNS}) for n, m in _APART
    )
    return together + apart


_SIZES = (1024, 4096, 16384, 65536)
_SHARES = (("all", 4, 4, 0), ("all but 16", 4, 4, 16), ("3/4", 3, 4, 0), ("1/2", 1, 2, 0), ("1/4", 1, 4, 0))


def _copies() -> tuple[Case, ...]:
    return tuple(
        Case(f"{size // 1024} KB, {label} expected", {"bytes": size, "expected": size * a // b - less, "runs": 2000})
        for size in _SIZES
        for label, a, b, less in _SHARES
    )


def _pieces() -> tuple[Case, ...]:
    return tuple(
        Case(f"{size // 1024} KB in steps of {step}", {"bytes": size, "step": step, "runs": 200})
        for size, step in ((1024, 16), (4096, 16), (16384, 64), (65536, 512))
    )


def _laps() -> tuple[Case, ...]:
    held = tuple(
        Case(f"held back, {done} phases complete, waits for parity {parity}",
             {"phases": done, "parity": parity, "gap": 0, "held": 1, "runs": 50})
        for done in range(5)
        for parity in (0, 1)
    )  # fmt: skip
    waiting = tuple(
        Case(f"waiting, {done} phases, {gap} cycles apart",
             {"phases": done, "parity": 0, "gap": gap, "held": 0, "runs": 200})
        for done in (1, 2, 3)
        for gap in ((0,) if done == 1 else (0, 50, 100, 200, 400, 1000, 4000))
    )  # fmt: skip
    return held + waiting


#: What accesses the slot, and whose copy then overwrites it.
_ACCESSES = ("ld", "ld, arrive by one lane", "ldmatrix", "st")
_OVERWRITERS = ("the CTA's copy", "the other CTA's copy", "a multicast copy")
_PRODUCTS = ("wgmma read, then st by the same threads", "wgmma read, arrive, then st by another warp")
_FINISHED_LAPS = 100_000  # of each CTA: half a second


def _finished() -> tuple[Case, ...]:
    rings = tuple(
        (f"{access}, then {overwriter}", {"kind": kind, "whose": whose})
        for kind, access in enumerate(_ACCESSES)
        for whose, overwriter in enumerate(_OVERWRITERS)
        if kind != 1 or whose == 0
    )
    products = tuple((name, {"kind": len(_ACCESSES) + n, "whose": 0}) for n, name in enumerate(_PRODUCTS))
    early = ("control: arrive first", "control: no wait_group")
    return tuple(
        Case(f"{name} ({early[case['kind'] >= len(_ACCESSES)]})" if control else name,
             case | {"control": control, "laps": _FINISHED_LAPS})
        for name, case in rings + products
        for control in (0, 1)
    )  # fmt: skip


EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment(
        "mbarrier",
        "What effect has one thread's sequence of operations on one barrier?",
        "One thread carries out the operations, tests both parities after each, and reads the word after inval.",
        tuple(Case(s.text, may_trap=s.may_trap, text=s.text) for s in SEQUENCES),
    ),
    Experiment(
        "lanes",
        "What happens if n lanes of a warp arrive together on a count of m?",
        "n lanes execute one arrive, or one each in sequence, on a fresh barrier; the word is read after inval.",
        _lanes(),
    ),
    Experiment(
        "copies",
        "When does a bulk copy complete the phase, if the barrier expects fewer bytes than the copy has?",
        "A poisoned tile, one arrive.expect_tx, one bulk copy; on completion every word is checked immediately.",
        _copies(),
    ),
    Experiment(
        "pieces",
        "In which pieces are the bytes of a copy counted?",
        "The same copy with every expected number of bytes: where it completes early, tx touched zero between pieces.",
        _pieces(),
    ),
    Experiment(
        "laps",
        "What does a wait see if later phases lap it?",
        "One thread completes phases; the other waits for one parity, started after they are complete or before.",
        _laps(),
    ),
    Experiment(
        "remote",
        "What happens if an agent arrives on the barrier of a CTA of the cluster that has exited?",
        "CTA 0 of a cluster of 2 arrives on the barrier of CTA 1, which waits for it or ended a millisecond before.",
        (
            Case("alive", {"exited": 0, "launches": 20}),
            Case("exited", {"exited": 1, "launches": 1}, may_trap=True),
        ),
    ),
    Experiment(
        "finished",
        "Is an access finished when the arrive after it lets the other proxy's access go, without a proxy fence?",
        "On every SM, a slot of 32 KB whose words hold the number of their tile. Four warps access it with 32-way bank "
        "conflicts, so that accesses are still in the pipe at the arrive, which lets the slot be overwritten; a word "
        "of another tile is torn. A control, which arrives first or does not wait for the products, must tear.",
        _finished(),
    ),
    Experiment(
        "timer_step",
        "By how much does %globaltimer move when it moves?",
        "One thread reads until it changes.",
        (Case("one thread", {"count": 20000}),),
    ),
    Experiment(
        "reading_cost",
        "How many cycles does reading a clock cost?",
        "One thread, 32 readings in a row, each used, between two readings of %clock, minus the same without them.",
        (Case("32 readings", {"count": 200}),),
    ),
    Experiment(
        "quarters",
        "How far apart are the %clock of the four quarters of an SM?",
        "8 warps, warp w in quarter w % 4: timestamps directly after a CTA barrier, and timestamps of flags sent back "
        "and forth in shared memory, of which the fastest each way bound the difference.",
        (
            Case("after a barrier", {"mode": 2, "count": 2000}),
            Case("back and forth", {"mode": 3, "count": 500}),
        ),
    ),
    Experiment(
        "timer_agreement",
        "How far apart are the %globaltimer of the SMs?",
        "A CTA on every SM takes a timestamp, arrives at a counter, and takes another when CTA 0 releases it; the "
        "fastest message each way bounds the difference to CTA 0's timer.",
        (Case("all SMs", {"count": 300}),),
    ),
    Experiment(
        "pingpong",
        "Do placed times agree across SMs with the order that messages prove?",
        "A token runs around a cluster by remote arrives: %clock64 before each arrive and after each wait, anchors.",
        (
            Case("clusters of 2", {"cluster": 2, "ctas": 8, "rounds": 200}),
            Case("clusters of 4", {"cluster": 4, "ctas": 8, "rounds": 200}),
        ),
    ),
    Experiment(
        "latency",
        "How soon can a wait return after the operation that releases it?",
        "%clock before the operation and after the wait's return, on every SM; one lane of any of 8 warps does each, "
        "with try_wait or test_wait. Where bytes are copied (from the L2 cache), one SM after the other is alone.",
        tuple(Case(name, arguments) for name, arguments in latency_cases()),
    ),
)
