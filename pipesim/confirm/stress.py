"""Launches of a kernel in which warps are late, at random and directed: what differs from those in which none is."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random

from pipesim.answers.views.check import CheckReport
from pipesim.confirm.choose import DelayPlan, Sign
from pipesim.confirm.confirm import ConfirmOptions, Trial, require_kernel
from pipesim.confirm.delays import Delay
from pipesim.confirm.launches import Chip, ChipOutcome, ManySeen
from pipesim.confirm.many import MOST_BATCH
from pipesim.confirm.plans import LatePlan, LateWay, PlanMaker
from pipesim.confirm.report import ChipDevice, StressReport, StressSeen, Tries
from pipesim.confirm.rewrite import DelayedPtx
from pipesim.confirm.table import TablePtx, table_ptx
from pipesim.ptx.extract import Extraction
from pipesim.targets import Target

_CHUNK_BYTES = 1 << 26  #: of the tables of one process
_CHUNK = 20_000  #: launches of one process
_HOST_S = 8.0  #: more than its own limit a launch may take, and a batch in which none hangs
_MOST_SEEN = 3  #: launches that differ and whose repetition does not, after which no more are made


def stress(
    target: Target, checked: CheckReport, chip: Chip | None, options: ConfirmOptions, *, many: int, seed: int
) -> StressReport:
    """``many`` launches of a kernel, or as many as show something three times, or once and again."""
    require_kernel(target)
    if target.kernel is not None and target.kernel.program.laps:
        target = target.followed
    assert target.kernel is not None
    lines = frozenset(line for each in checked.scope.assuming for line in each.lines)
    trial = _StressTrial(target, target.kernel, lines, chip, options)
    return trial.report(StressReport(checked.heading, checked.verdict, ChipDevice(), seed), many)


class _StressTrial(Trial):
    """Its kernels are one, with different tables."""

    def __init__(
        self, target: Target, read: Extraction, lines: frozenset[str], chip: Chip | None, options: ConfirmOptions
    ) -> None:
        assert target.editable is not None
        self._maker = PlanMaker(read.kernel, read.program, read.streams, lines)
        limit_ns = options.deadline_ms * 1_000_000
        self._table: TablePtx = table_ptx(target.editable.text, read.kernel, self._maker.begins, limit_ns)
        super().__init__(target, read, DelayPlan(Sign.NONE), chip, options, limit_ns)
        self._limit_s = _HOST_S + 2e-9 * limit_ns

    def _rewritten(self, delays: Sequence[Delay]) -> DelayedPtx:
        return self._table.with_table(self._table.table(self._maker.rows(delays)))

    def _saved(self, delays: Sequence[Delay]) -> DelayedPtx:
        table = self._table.table(self._maker.rows(delays))
        return replace(self._table.kernel, text=self._table.text_with(table))

    def report(self, none: StressReport, many: int) -> StressReport:
        """What the launches show."""
        chip = self._chip
        if chip is None:
            plan = next(p for n in range(4, 4 + many) if (p := self._planned(none.seed, n)).delays)
            return replace(none, reason="no launch was asked for", files=self._save(1, plan.delays))
        control = self._control(chip)
        fails = [each for each in control if each.outcome not in (ChipOutcome.SAME, ChipOutcome.DIFFERS)]
        none = replace(none, device=chip.device, zeros=self._zeros)
        if fails:
            self._set_plan(DelayPlan(_sign_of(fails[0].outcome)))
            return replace(none, control=self._tries(control), reason="it fails without delays")
        done, varies, ways, seen = 0, False, Counter[LateWay](), list[StressSeen]()
        rows = max(1, min(_CHUNK, _CHUNK_BYTES // self._table.nbytes))
        while done < many and len(seen) < _MOST_SEEN and not any(each.again.seen for each in seen):
            plans = [self._planned(none.seed, n) for n in range(done, min(done + rows, many))]
            found, shown = self._many(chip, plans)
            varies = varies or found.varies
            made = min(found.done + bool(found.ended), len(plans))
            ways.update(each.way for each in plans[:made])
            for n, sign in shown[: _MOST_SEEN - len(seen)]:
                again = self._again(chip, done + n, plans[n], sign)
                varies = varies or bool(again.control.seen)
                if sign is not Sign.DATA or not varies:
                    seen.append(again)
                if again.again.seen:
                    break
            done += made
        return replace(
            none, launches=done, ways=dict(ways), seen=tuple(seen), varies=varies, device=chip.device,
            control=Tries(len(control)),
        )  # fmt: skip

    def _planned(self, seed: int, number: int) -> LatePlan:
        return self._maker.plan(Random(f"{seed}/{number}"), number)  # noqa: S311

    def _many(self, chip: Chip, plans: Sequence[LatePlan]) -> tuple[ManySeen, list[tuple[int, Sign]]]:
        """Launches of these plans, and the numbers of those that show something, a hang first."""
        plain, *tables = [self._rewritten(each.delays).table for each in (LatePlan(LateWay.NONE), *plans)]

        def launched(first: int, batch: int) -> ManySeen:
            """From a number on; the launch without delays, with which the others are compared, is not counted."""
            given = b"".join((plain, *tables[first:][: MOST_BATCH if batch == 1 else None]))
            found = chip.many(self._plain, given, self._kernel.launch, self._memory, self._limit_s, batch=batch)
            seen = tuple((max(first + n - 1, 0), hangs) for n, hangs in found.seen)
            return replace(found, done=first + max(found.done - 1, 0), seen=seen)

        found, shown = launched(0, MOST_BATCH), list[tuple[int, Sign]]()
        if found.ended:
            sign, found = Sign.TRAP if found.ended == "trap" else Sign.HANG, launched(found.done, 1)
            shown = [(min(found.done, len(tables) - 1), sign)]
        ordered = sorted(found.seen, key=lambda each: not each[1])
        return found, shown + [(n, Sign.HANG if hangs else Sign.DATA) for n, hangs in ordered]

    def _again(self, chip: Chip, number: int, plan: LatePlan, sign: Sign) -> StressSeen:
        """What launches with the delays of one show, or with one of these alone that shows it, beside some without."""
        self._set_plan(DelayPlan(sign))
        delays, times, plain = plan.delays, self._options.launches, self._plain
        if len(delays) > 1 and sign is not Sign.TRAP:
            alone = [(self._rewritten([each]), 2) for each in delays]
            _, *left = chip.launch(((plain, 1), *alone), self._kernel.launch, self._memory, self._limit_s)
            shows = [each for each, seen in zip(delays, left, strict=True) if self._tries(seen).seen == 2]
            delays = (shows[0],) if shows else delays
        again = self._tries(self._launches(chip, (plain, 1), (self._rewritten(delays), times)))
        control = self._tries(self._launches(chip, (plain, times)))
        return StressSeen(number, plan.way, sign, delays, again, control, self._save(1, delays))


def _sign_of(outcome: ChipOutcome) -> Sign:
    return {ChipOutcome.TRAP: Sign.TRAP, ChipOutcome.DIFFERS: Sign.DATA}.get(outcome, Sign.HANG)
