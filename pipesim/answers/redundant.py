"""Which synchronisation of a proved program could go: each edit alone, and a maximal set, every one proved again.

An edit is proved at the parameters given; at the first values of every trip count; and at a lap's worth of values
after the last one at which the whole program starts to repeat, so that what holds only while the stages are new is not
offered. The set is proved for every value by the argument of the whole program where that has one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pipesim.answers.any_size import Families, build_by, trip_counts
from pipesim.answers.budget import Budget, BudgetSpentError
from pipesim.answers.global_memory.grid_memory import may_order
from pipesim.answers.global_memory.judge import judge
from pipesim.answers.progress import SILENT, Progress, Unit
from pipesim.answers.views.check import CutBy
from pipesim.answers.views.conclusion import heading
from pipesim.answers.views.redundant import CutStep, RedundantReport, RedundantStep, Removable, Sizes
from pipesim.model.coverage import RULES, switches
from pipesim.model.finding import Verdict
from pipesim.model.program import Program
from pipesim.process.limits import Limit, LimitReachedError
from pipesim.process.watch import current
from pipesim.prove.any_size.family import Build, Family, ProvedRange
from pipesim.prove.check import MOST_STATES
from pipesim.prove.redundant.candidates import candidates
from pipesim.prove.redundant.kept_proof import KeptProof, OpenRules, Withheld, kept_proof, may_guard_more
from pipesim.prove.redundant.removal import Removal, lines_of, said_of, without
from pipesim.targets import Target

_FIRST = 5  #: values of a trip count from its least on
_MOST_VALUES = 24  #: a lap's worth of them, at most
_WITHOUT_LAP = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24)  #: values where the whole is not known to repeat


def redundant(
    target: Target,
    params: Mapping[str, int],
    *,
    program: Program | None = None,
    ctas: int | None = None,
    max_states: int = MOST_STATES,
    budget: Budget | None = None,
    progress: Progress = SILENT,
) -> RedundantReport:
    """The removals of the program that ``target`` makes of these parameters. Raises as ``Target.build`` does.

    ``max_states`` are searched where one run does not decide. ``budget``: the time of each step.
    """
    program = target.build(params, grid=ctas) if program is None else program
    looking = _RemovalSearch(target, params, program, max_states, budget or Budget(), progress)
    return looking.carry_out()


@dataclass(frozen=True)
class _TriedSize:
    """A size at which every removal is proved again: the parameter and the program of the value.

    ``assumed``: what the proof of this size assumes, and a removal may not add to; None where that is not looked at.
    """

    parameter: str
    value: int
    program: Program
    assumed: OpenRules | None


class _RemovalSearch:
    """The work on one program, in steps."""

    def __init__(
        self, target: Target, params: Mapping[str, int], program: Program, max_states: int, budget: Budget,
        progress: Progress,
    ) -> None:  # fmt: skip
        self.target = target
        self.params = params
        self.program = program
        self.max_states = max_states
        self.budget = budget
        self._operations = sum(map(len, program.code))
        self.progress = progress
        self._standing: KeptProof | None = None
        self._verdict = Verdict.UNKNOWN
        self._withheld: Withheld | None = None
        self._ranges: tuple[ProvedRange, ...] = ()
        self._sizes: list[_TriedSize] = []
        self._alone: list[Removal] = []
        self._together: list[Removal] = []
        self._shown: dict[str, bool] = {}
        self._tried = self._unfit = self._guarding = 0
        self._cut: list[CutStep] = []
        self._unit: Unit = lambda _done, _of: None  # no step is under way

    def carry_out(self) -> RedundantReport:
        """Every step, as far as there is time; what is known then."""
        steps = (
            (RedundantStep.PROOF, self._prove),
            (RedundantStep.SIZES, self._look_at_sizes),
            (RedundantStep.ALONE, self._each_alone),
            (RedundantStep.TOGETHER, self._maximal_set),
        )
        for step, work in steps:
            if self._cut or self._withheld is not None:
                break
            self._step(step, work)
        return self._build_report()

    def _step(self, step: RedundantStep, work: Callable[[], None]) -> None:
        units = (0, 0)
        self.budget.start()
        with self.progress.check_step(self.program.name, step) as tell:

            def unit(done: int, of: int) -> None:
                nonlocal units
                units = done, of
                tell(done, of)
                self.budget.ask(self._operations)

            self._unit = unit
            try:
                work()
            except BudgetSpentError as spent:
                self._cut.append(CutStep(step, spent.by, *units))
            except KeyboardInterrupt:
                current().resume()
                self._cut.append(CutStep(step, CutBy.INTERRUPTED, *units))
            except LimitReachedError as reached:
                current().resume()
                why = CutBy.TIME if reached.limit is Limit.TIME else CutBy.MEMORY
                self._cut.append(CutStep(step, why, *units))

    # steps

    @property
    def _kept(self) -> KeptProof:
        """The proof of the whole, where there is one."""
        assert self._standing is not None
        return self._standing

    def _prove(self) -> None:
        found, kept = kept_proof(self.program, self.max_states, lambda: self._unit(0, 0))
        self._verdict = Verdict.UNKNOWN if found is None else found.verdict
        if isinstance(kept, Withheld):
            self._withheld = kept
        elif self.target.kernel is not None and may_order(judge(self.target.kernel.kernel)):
            self._withheld = Withheld.GLOBAL
        else:
            self._standing = kept

    def _look_at_sizes(self) -> None:
        """For which values of each trip count the whole is proved, and the programs at which removals are tried."""
        flat = self.target.program is not None  # it has one size
        names = () if flat else trip_counts(self.target, self.params, self.program)
        target = replace(self.target.with_strictness(self._kept.rules), watch=lambda _: self._unit(0, 0))
        families = Families(target, self.params, self.program)
        for n, name in enumerate(names, 1):
            self._unit(n - 1, len(names))
            self._ranges = families.ranges(n)
            if len(self._ranges) == n:
                self._sizes += self._at_sizes(name, _values(self._ranges[-1]))

    def _at_sizes(self, name: str, values: Sequence[int]) -> list[_TriedSize]:
        build, kept, found = build_by(self.target, self.params, name), self._kept, list[_TriedSize]()
        for value in values:
            program = build(value)
            if program is not None and kept.still_holds(program):
                assumed = kept.open_rules(program) if value == values[-1] else None
                found.append(_TriedSize(name, value, program, assumed))
        return found

    def _each_alone(self) -> None:
        tried = candidates(self.program)
        for n, removal in enumerate(tried):
            self._unit(n, len(tried))
            edited = without(self.program, removal)
            self._tried += 1
            if edited is None or not self._proved(edited):
                continue
            if may_guard_more(self.program, removal):
                self._guarding += 1
            elif self._at(self._sizes, removal):
                self._alone.append(removal)
            else:
                self._unfit += 1

    def _maximal_set(self) -> None:
        """Each in turn that can go with those before it; less, if the set is not proved for what the whole is."""
        offered = list(self._alone)
        largest = [size for size in self._sizes if size.assumed is not None]
        while True:
            chosen: list[Removal] = []
            for n, removal in enumerate(offered):
                self._unit(n, len(offered))
                if any(removal.within(other) for other in chosen):
                    continue
                edited = without(self.program, *chosen, removal)
                if edited is not None and self._proved(edited) and self._at(largest, *chosen, removal):
                    chosen.append(removal)
            if not chosen or (self._at(self._sizes, *chosen) and not self._not_for_every_value(chosen)):
                self._together = chosen
                return
            offered = chosen[:-1]

    # proofs

    def _proved(self, edited: Program) -> bool:
        return self._kept.still_holds(edited) and self._kept.adds_nothing(edited, self._kept.here)

    def _at(self, sizes: Sequence[_TriedSize], *removals: Removal) -> bool:
        """True if the removals are proved at these sizes, and add nothing to what is assumed there."""
        for size in sizes:
            self._unit(0, 0)
            edited = without(size.program, *removals)
            if edited is None:  # at this size nothing of it is executed
                continue
            adds = size.assumed is not None and not self._kept.adds_nothing(edited, size.assumed)
            if adds or not self._kept.still_holds(edited):
                return False
        return True

    def _not_for_every_value(self, removals: list[Removal]) -> bool:
        """True if the whole is proved for any number of iterations and the program without these is not."""
        self._shown = {}

        def rebuilt(build: Build, value: int) -> Program | None:
            self._unit(0, 0)
            made = build(value)
            return None if made is None else without(made, *removals) or made

        for every in (each for each in self._ranges if each.lap):
            build = build_by(self.target.with_strictness(self._kept.rules), self.params, every.parameter)
            found = Family(every.parameter, partial(rebuilt, build)).verdict()
            if not found.lap or found.least > every.least:
                return True
            self._shown[every.parameter] = True
        return False

    # what is known

    def _build_report(self) -> RedundantReport:
        rules = self._standing.rules if self._standing is not None else None
        names = switches(RULES)
        return RedundantReport(
            heading=heading(self.program),
            verdict=self._verdict,
            operations=self._operations,
            rules=switches(rules) if rules is not None else (),
            assumed=tuple(name for name in names if rules is not None and name not in switches(rules)),
            tried=self._tried,
            alone=tuple(Removable(each, said_of(self.program, each), lines_of(each)) for each in self._alone),
            together=tuple(self._alone.index(each) for each in self._together),
            sizes=tuple(self._size(each) for each in self._ranges),
            unfit=self._unfit,
            guarding=self._guarding,
            withheld=self._withheld,
            left_out=tuple(self._cut),
        )

    def _size(self, found: ProvedRange) -> Sizes:
        values = tuple(each.value for each in self._sizes if each.parameter == found.parameter)
        return Sizes(found.parameter, values, found.lap > 0, self._shown.get(found.parameter, False))


def _values(found: ProvedRange) -> list[int]:
    """The first values, and those of a lap after the first lap that repeats; without one, some."""
    if found.lap:
        behind = range(found.first + found.lap, found.first + found.lap + min(found.lap, _MOST_VALUES))
        return [*range(found.least, min(found.least + _FIRST, found.first)), *behind]
    return list(_WITHOUT_LAP)
