"""Random kernels that allocate, use and release columns of tensor memory in one or two CTAs: some right, some not."""

import random
from dataclasses import dataclass, replace

from pipesim.model.program import Program
from tests.support.small_ptx import SET_UP, program_of

_COLUMNS = 512


@dataclass(frozen=True)
class Step:
    """``alloc``, ``use`` or ``dealloc`` of the address in a slot, or ``permit``; of CTA ``cta`` alone, or -1."""

    what: str
    slot: int = 0
    columns: int = 0
    cta: int = -1


def random_allocations(seed: int) -> tuple[list[Step], int]:
    """The steps of one warp of each CTA, and how many CTAs there are."""
    rng = random.Random(seed)
    ctas = rng.choice([1, 1, 2])
    steps: list[Step] = []
    live: dict[int, int] = {}
    for slot in range(rng.randint(1, 3)):
        live[slot] = rng.choice([32, 64, 64, 128, 256, 512, 96])
        steps.append(Step("alloc", slot, live[slot]))
        steps += [Step("use", slot, rng.choice([0, 0, live[slot] - 2, live[slot] - 1]))] * rng.randint(0, 1)
        if rng.random() < 0.3:
            steps.append(Step("dealloc", slot, live.pop(slot)))
    steps += [Step("dealloc", slot, columns) for slot, columns in live.items() if rng.random() < 0.9]
    if rng.random() < 0.5:
        steps.insert(rng.randint(0, len(steps)), Step("permit"))
    if rng.random() < 0.2:
        steps.append(rng.choice([each for each in steps if each.what != "alloc"] or [Step("permit")]))
    if ctas == 2 and rng.random() < 0.3:
        slot, cta = rng.choice(steps).slot, rng.randrange(2)
        steps = [replace(each, cta=cta) if each.slot == slot else each for each in steps]
    return steps, ctas


def kernel_of(steps: list[Step], ctas: int) -> Program:
    """Its program, read from PTX."""
    group = f"cta_group::{ctas}"
    lines = ["setp.ne.u32 %p4, %r1, 0;", "@%p4 bra rest;", "mov.u32 %r40, %cluster_ctarank;"]
    lines += ["setp.eq.u32 %p5, %r40, 0;", "setp.eq.u32 %p6, %r40, 1;"]
    for each in steps:
        register, address = f"%r{41 + each.slot}", f"[tile+{4 * each.slot}]"
        match each.what:
            case "alloc":
                made = [f"tcgen05.alloc.{group}.sync.aligned.shared::cta.b32 {address}, {each.columns};"]
                made.append(f"ld.shared.u32 {register}, {address};")
            case "use":
                made = [f"tcgen05.st.sync.aligned.32x32b.x2.b32 [{register}+{each.columns}], {{%r20, %r21}};"]
                made.append("tcgen05.wait::st.sync.aligned;")
            case "dealloc":
                made = [f"tcgen05.dealloc.{group}.sync.aligned.b32 {register}, {each.columns};"]
            case _:
                made = [f"tcgen05.relinquish_alloc_permit.{group}.sync.aligned;"]
        lines += [f"@%p{5 + each.cta} {line}" if each.cta >= 0 else line for line in made]
    meet = ["barrier.cluster.arrive;", "barrier.cluster.wait;"] if ctas > 1 else []
    body = "\n ".join([*lines, "rest:", *meet])
    return program_of(SET_UP.format(first=1, count=1) + f" {body}\n", 2, cluster=ctas, target="sm_100a")


def allocations_are_right(steps: list[Step], ctas: int) -> bool:
    """Whether they are as PTX has it, said once more: column by column, and by both CTAs of a pair."""
    alone = any(step.cta >= 0 and step.what in ("alloc", "dealloc") for step in steps)
    return not alone and all(_is_right([step for step in steps if step.cta in (-1, cta)]) for cta in range(ctas))


def _is_right(steps: list[Step]) -> bool:
    owner, at = [-1] * _COLUMNS, dict[int, int]()
    permit = True
    for n, step in enumerate(steps):
        match step.what:
            case "alloc":
                starts = (a for a in range(0, _COLUMNS, 32) if owner[a : a + step.columns] == [-1] * step.columns)
                first = next(starts, -1)
                if first < 0 or not permit or step.columns not in (32, 64, 128, 256, 512):
                    return False
                at[step.slot] = first
                owner[first : first + step.columns] = [n] * step.columns
            case "use":
                used = range(at[step.slot] + step.columns, at[step.slot] + step.columns + 2)
                if any(column >= _COLUMNS or owner[column] < 0 for column in used):
                    return False
            case "dealloc":
                mine = [c for c in range(_COLUMNS) if owner[c] >= 0 and owner[c] == owner[at[step.slot]]]
                if not mine or mine[0] != at[step.slot] or len(mine) != step.columns:
                    return False
                for column in mine:
                    owner[column] = -1
            case _:
                permit = False
    return all(each < 0 for each in owner)
