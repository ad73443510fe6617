"""The smallest sizes at which a protocol still goes wrong: each trip parameter lowered as far as the fault stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipesim.errors import PipesimError
from pipesim.model.finding import Verdict

if TYPE_CHECKING:
    from pipesim.model.finding import FaultKind
    from pipesim.model.program import Program
    from pipesim.protocols.catalog import Target
    from pipesim.prove.check import Check
    from pipesim.prove.refutation import End

_MOST_TRIES = 12  #: values of one parameter


def smallest(
    target: Target, params: dict[str, int], program: Program, found: Check
) -> tuple[dict[str, int], Program, Check]:
    """What the loops of ``program`` are named after, made as small as it can be; as it was if nothing smaller fails.

    Only sizes that go wrong in one of the same ways count. A flat program has no parameters to lower.
    """
    kinds = {shown.kind for shown in found.refutations}
    sizes = dict(params)
    names = [n for n in dict.fromkeys(program.loops) if n in target.defaults]
    for name in names:
        asked = sizes.get(name, target.defaults[name])
        for value in range(min(asked, _MOST_TRIES)):
            smaller = _refuted(target, sizes | {name: value}, kinds)
            if smaller is not None:
                sizes[name] = value
                program, found = smaller
                break
    return sizes, program, found


def _refuted(target: Target, sizes: dict[str, int], kinds: set[FaultKind | End]) -> tuple[Program, Check] | None:
    from pipesim.prove.check import check

    try:
        program = target.build(sizes)
    except PipesimError:
        return None  # this size does not exist
    found = check(program, max_states=2_000)
    same = found.verdict is Verdict.REFUTED and kinds & {shown.kind for shown in found.refutations}
    return (program, found) if same else None
