"""What a verdict on a kernel is about besides the CTA that was read: the other CTAs, and fewer tiles left for them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import fields

from pipesim.answers.every_cta.kinds import EveryCta
from pipesim.answers.views.check import CtaKindVerdict
from pipesim.model.finding import Verdict
from pipesim.model.ops import AT, Operation
from pipesim.model.program import Program
from pipesim.targets import Target


class OtherLaunches:
    """The same kernel in other CTAs, and where other CTAs leave fewer tiles; each as a target, until one is not proved.

    Nothing is asked about other CTAs where the launch names one. ``complete``: every CTA was looked at, if all targets
    were proved. ``policies``: with which values the kernel was checked.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._every: list[EveryCta] = []
        self._seen: set[Hashable] = set()
        self._with: dict[str, int] = {}  # the policy of the target that is being checked
        self.policies: dict[str, tuple[int, ...]] = {}

    def __iter__(self) -> Iterator[Target]:
        kernel = self._target.kernel
        if kernel is None:
            return
        yield from self._other_ctas(self._target)
        for name, value, used in kernel.fewer_tiles:
            fewer, self._with = self._target.with_setting(name, value), {name: value}
            yield fewer
            yield from self._other_ctas(fewer)
            self.policies[name] = tuple(sorted({value, used, *self.policies.get(name, ())}))
        self._with = {}

    @property
    def complete(self) -> bool:
        """Whether every CTA was looked at."""
        return bool(self._every) and all(each.complete for each in self._every)

    @property
    def left_out(self) -> bool:
        """Whether there are more kinds of CTAs than were looked at."""
        return bool(self._every) and not self.complete

    @property
    def checked_with(self) -> dict[str, tuple[int, ...]]:
        """The policies: of the target that was not proved only its own."""
        return {name: (value,) for name, value in self._with.items()} or self.policies

    def kinds(self, last: Verdict) -> tuple[CtaKindVerdict, ...]:
        """The kinds of CTAs that were looked at with the policies of the last target, whose verdict this is."""
        if not self._every or len(self._every[-1].kinds) == 1:
            return ()
        ctas = self._target.program.ctas if self._target.program is not None else 1
        *others, end = self._every[-1].kinds
        found = [CtaKindVerdict(each.cta, each.clusters * ctas, Verdict.PROVED, each.differs) for each in others]
        return (*found, CtaKindVerdict(end.cta, end.clusters * ctas, last, end.differs))

    def _other_ctas(self, target: Target) -> Iterator[Target]:
        assert target.kernel is not None
        if target.kernel.kernel.launch.cta is not None:
            return
        every = EveryCta(target.kernel)
        self._every.append(every)
        self._is_new(target.kernel.program)
        for made in every:
            if self._is_new(made.program):
                yield target.with_setting("cta", made.kernel.launch.cta or 0, made)

    def _is_new(self, program: Program) -> bool:
        """Whether no such program was checked."""
        known = hash(shape_of_program(program))
        new = known not in self._seen
        self._seen.add(known)
        return new


def shape_of_program(program: Program) -> Hashable:
    """What two programs have in common that differ in the numbers of their items, and in words of their coverage, only.

    A verdict depends on which sentences there are, and not on the addresses in them.
    """
    numbers: dict[int, int] = {}
    code = tuple(tuple(_renumbered(op, numbers) for op in agent) for agent in program.code)
    coverage = program.coverage
    kinds = tuple(sorted(each.kind.name for each in coverage.assumed))
    said = tuple(
        len(getattr(coverage, each.name)) for each in fields(coverage) if each.name not in ("extracted", "ctas")
    )
    others = [getattr(program, each.name) for each in fields(program) if each.name not in ("code", "coverage")]
    return code, kinds, said, coverage.forbidden, coverage.not_judged, repr(others)


def _renumbered(op: Operation, numbers: dict[int, int]) -> Operation:
    at = AT["item"].get(op[0])
    if at is None or op[at] < 0:
        return op
    return (*op[:at], numbers.setdefault(op[at], len(numbers)), *op[at + 1 :])
