"""Whether the program of a kernel reaches the hang that a core dump shows, and whether ``check`` finds it.

The agents of the program go as far as they can. Where that is not a hang, or another one, one of them stays for a while
at one of its waits until the others stand still, as a warp does that misses a phase. An agent whose warp spins on a
word of global memory, where the program does not wait, stays for good.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from pipesim.answers.autopsy.barrier_names import renamed, with_names
from pipesim.answers.autopsy.standing import WaitsFor
from pipesim.answers.budget import Budget, BudgetSpentError
from pipesim.answers.checking.failures import CheckQuestion, Failures
from pipesim.answers.views.autopsy import DumpedCtas, DumpedLaunch, PredictedHang
from pipesim.answers.views.check import CheckReport, Counterexample
from pipesim.explain.blocked_agents import blocked_agents, explain
from pipesim.model.coverage import Assumption
from pipesim.model.ending import Ending
from pipesim.model.finding import BlockedAgent, Deadlock, Finding, Verdict
from pipesim.model.groups import PARITY_WAITS
from pipesim.prove.check import How, unknown
from pipesim.prove.counterexample.play import Play
from pipesim.prove.refutation import Refutation
from pipesim.targets import Target

_Warp = tuple[int, int]  #: the rank of its CTA in the cluster, and its number
_MOST_MOVES, _MOST_TRIED = 300_000, 500_000  #: of all tries, and operations of corrections: some seconds
_WARP = re.compile(r"(?:warp/|lanes of warp )(\d+)(?: from \d+)?(?:@(\d+))?")
#: What a hang on a word of global memory contradicts.
_ABOUT_WORDS = (Assumption.GLOBAL_LOOPS, Assumption.GLOBAL_WORDS, Assumption.POLICIES)


class DumpedProgram:
    """The program of a kernel, compared with CTAs of a dump that hang; ``folder``: of its PTX, which no line names."""

    def __init__(self, group: DumpedCtas, target: Target, folder: str) -> None:
        self.group, self.target, self._folder = group, target, folder
        self.program = target.build()
        self._warps = {self.program.agent_name(n): (a.cta, a.warp) for n, a in enumerate(self.program.agents)}
        self._waits: defaultdict[_Warp, list[BlockedAgent]] = defaultdict(list)
        self._spins: set[_Warp] = set()
        for each in group.deadlock.blocked:
            found = _WARP.fullmatch(each.agent)
            if found is not None and each.barrier.startswith(WaitsFor.GLOBAL.value):
                self._spins.add((int(found[2] or 0), int(found[1])))
            elif found is not None and not each.barrier.startswith("the lanes of "):
                self._waits[int(found[2] or 0), int(found[1])].append(each)

    def replayed(self) -> PredictedHang:
        """The hang that the program reaches which is most like the dump's, and why what is missing did not come."""
        order, made = range(len(self.program.agents)), 0
        best, shown = PredictedHang(Verdict.UNKNOWN, of=len(self._waits), spins=bool(self._spins)), None
        for hold in self._stays() if self._waits else ():
            play = Play(self.program, passes=lambda _: True)
            play.go_on(order, hold=hold)
            if not self._spins:
                play.go_on(order)
            held = Deadlock(blocked_agents(self.program, play.state) if self._spins else (), ())
            found = explain(self.program, play.state) or held
            alike, names = self._alike(found)
            others = {self._warps[each.agent] for each in found.blocked} - alike - self._spins
            whole = alike == set(self._waits) and not others and len(set(names.values())) == len(names)
            if whole or (len(alike) > best.same and found is not held):
                best = replace(best, same=len(alike), names=names if whole else {}, replayed=whole)
                shown = Refutation(Ending.DEADLOCK, tuple(play.moves), deadlock=found)
            made += len(play.moves)
            if whole or made > _MOST_MOVES:
                break
        return replace(best, shown=self._explained(shown)) if shown is not None else best

    def _stays(self) -> Iterator[tuple[int, int]]:
        """Where an agent stays while the others continue; first nowhere, if no warp of the dump missed a phase."""
        missed = {warp for warp, mine in self._waits.items() if any(each.missed >= 0 for each in mine)}
        if not (self._spins or missed):
            yield -1, -1
        for agent, code in enumerate(self.program.code):
            mine = self.program.agents[agent].cta, self.program.agents[agent].warp
            if mine in (self._spins or missed or self._waits):
                yield from ((agent, pc) for pc, op in enumerate(code) if self._spins or op[0] in PARITY_WAITS)

    def _explained(self, refuted: Refutation) -> Counterexample:
        """With its causes, and what corrects them, as check has them of a hang that it finds."""
        asked = CheckQuestion(self.target, {}, self.program, None, 1, quick=True)
        failures = Failures(asked, replace(unknown(self.program, How.STOPPED), refutations=(refuted,)))
        budget, operations = Budget(work=_MOST_TRIED), sum(map(len, self.program.code))
        with suppress(BudgetSpentError):
            if not self._spins:  # else nothing of the program is wrong
                failures.correct(lambda _done, _of: budget.ask(operations))
        shown = next(each for _, each in failures.shown(()))
        mine = self._folder  # its files are gone when the report is read, and ``said`` has the line of the PTX
        corrections = tuple(replace(c, line="" if c.line.startswith(mine) else c.line) for c in shown.corrections)
        assert isinstance(shown.finding, Deadlock)
        past = (p._replace(agent=f"{p.agent} (warp {self._warps[p.agent][1]})") for p in shown.finding.led_past)
        return replace(shown, finding=replace(shown.finding, led_past=tuple(past)), corrections=corrections)

    def _alike(self, found: Finding) -> tuple[set[_Warp], dict[str, str]]:
        """The warps that wait in both for what lacks the same, and the program's names of barriers of the dump."""
        alike: set[_Warp] = set()
        names: dict[str, str] = {}
        for each in found.blocked if isinstance(found, Deadlock) else ():
            for theirs in self._waits.get(self._warps.get(each.agent, (-1, -1)), ()):
                if _is_same(theirs, each) and names.setdefault(theirs.barrier, each.barrier) == each.barrier:
                    alike.add(self._warps[each.agent])
        return alike, names

    def compared(self, found: PredictedHang, report: CheckReport) -> PredictedHang:
        """With what a check says."""
        same = any(self._alike(each.finding)[0] == set(self._waits) for each in report.refutations)
        about = [each.what for each in report.scope.assuming if each.kind in _ABOUT_WORDS and self._spins]
        return replace(found, verdict=report.verdict, by_check=same and found.of > 0, assumes=tuple(about))


def with_prediction(launch: DumpedLaunch, found: PredictedHang) -> DumpedLaunch:
    """The launch with what its check says; barriers have one name in both, that of the source if the dump has it."""
    better = {theirs: mine for mine, theirs in found.names.items() if not mine.startswith(("mbarrier ", "ring at "))}
    names = {mine: theirs for mine, theirs in found.names.items() if theirs not in better}
    return replace(with_names(launch, names), predicted=renamed(found, better))


def _is_same(*both: BlockedAgent) -> bool:
    """Whether a warp of the dump waits for what an agent waits for: in the same phase, where the dump tells it."""
    told = both[0].phase_now >= 0
    rows = {(b.parity, b.count, b.arrivals_missing, b.bytes_missing, b.phase_now if told else 0) for b in both}
    return len(rows) == 1
