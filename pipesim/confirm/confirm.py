"""Each finding of a kernel on a chip: its delays are chosen, launched beside a control without them, and reduced."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pipesim.answers.views.check import CheckReport, Counterexample
from pipesim.confirm.choose import Chooser, DelayPlan, Sign
from pipesim.confirm.delays import Delay
from pipesim.confirm.launches import Chip, ChipOutcome, LaunchSeen, request_of
from pipesim.confirm.memory import LaunchMemory, launch_memory
from pipesim.confirm.report import ChipDevice, ChipVerdict, ConfirmReport, FindingOnChip, Tries, WarpsAtWait
from pipesim.confirm.rewrite import STOP, WAITS, DelayedPtx, delayed_ptx
from pipesim.errors import EvidenceError, ParameterError, UsageError
from pipesim.model.finding import FaultReport
from pipesim.process.files import write_whole
from pipesim.ptx.emit.names import source_of
from pipesim.ptx.extract import Extraction
from pipesim.ptx.launch.values import Launch
from pipesim.targets import Target

_LONGER = 10  #: times as long delays, where the usual ones show nothing
_MOST_LIMIT_NS = 4_000_000_000  #: of the 32 bits of %globaltimer_lo
_HOST_S = 8.0  #: more than its own limit a launch may take
_FAR = "with buffers in memory of the host, beside large copies to and from it"
_MOST_ZEROED = 8  #: buffers that are filled with zeros, one at a time


@dataclass(frozen=True)
class ConfirmOptions:
    """``launches`` of each kernel. ``deadline_ms``: after which a wait gives up, besides the delays.

    ``delay_us``: the least delay. ``finding``: its number, from 1, 0: all. ``save``: the file of the first
    rewritten PTX. ``buffer_bytes``: of a pointer of which the launch file does not say more.
    """

    launches: int = 5
    deadline_ms: int = 250
    delay_us: int = 1_000
    finding: int = 0
    save: Path | None = None
    force: bool = False
    buffer_bytes: int = 1 << 24


def require_kernel(target: Target) -> None:
    """UsageError if a target was not read from a kernel's PTX."""
    if target.kernel is None or target.editable is None:
        raise UsageError(
            f"{target.name} is a described protocol, and a GPU runs kernels",
            correction="give the kernel's .ptx and its launch file: pipesim confirm kernel.ptx --launch kernel.json",
        )


def require_findings(report: CheckReport, options: ConfirmOptions) -> None:
    """EvidenceError or ParameterError if there is no finding to confirm."""
    if not report.refutations:
        raise EvidenceError(
            f"{report.heading.protocol} has no finding to confirm",
            cause=f"its verdict is: {report.verdict.value}",
            correction="`pipesim check` of the same kernel and launch says more",
        )
    if options.finding > (found := len(report.refutations)):
        raise ParameterError(f"--finding {options.finding}: check has {found}", correction="count them from 1")


def confirm(
    target: Target, report: CheckReport, chip: Chip | None, options: ConfirmOptions, memory: LaunchMemory | None = None
) -> ConfirmReport:
    """The findings of a check of the target, on a chip; without one the delays are chosen, and saved if asked for.

    ``memory``: of the launch, where it is known.
    """
    require_kernel(target)
    require_findings(report, options)
    numbered = [(n, each) for n, each in enumerate(report.refutations, 1) if options.finding in (0, n)]
    found = tuple(_on_chip(target, n, each, chip, options, memory) for n, each in numbered)
    return ConfirmReport(report.heading, report.verdict, chip.device if chip is not None else ChipDevice(), found)


def _on_chip(
    target: Target, number: int, shown: Counterexample, chip: Chip | None, options: ConfirmOptions,
    memory: LaunchMemory | None,
) -> FindingOnChip:  # fmt: skip
    """What is known of a finding afterwards."""
    none = FindingOnChip(number, shown.finding, ChipVerdict.NOT_TRIED)
    others = {name: value for name, value in shown.settings.items() if name not in ("cta", "together")} | {**shown.at}
    if others:
        said = ", ".join(f"{name}={value}" for name, value in others.items())
        return replace(none, reason=f"its schedule is one with {said}, which this launch does not decide")
    target = target.with_settings(shown.settings)
    if target.kernel is not None and target.kernel.program.laps:
        target = target.followed
    assert target.kernel is not None
    read, kind = target.kernel, shown.finding.kind if isinstance(shown.finding, FaultReport) else None
    try:
        chooser = Chooser(read.kernel, read.program, read.streams, options.delay_us * 1_000)
        plan = chooser.plan(shown.replay, kind)
        limit_ns = options.deadline_ms * 1_000_000 + 2 * _LONGER * sum(each.ns for each in plan.delays + plan.turns)
        return Trial(target, read, plan, chip, options, min(limit_ns, _MOST_LIMIT_NS), memory).result(none)
    except UsageError as error:
        return replace(none, reason=f"{error.fact}{f': {error.cause}' if error.cause else ''}")


class Trial:
    """The launches for one finding. ``_zeros``: the buffers that hold zeros, since the kernel talks by words of global
    memory, or its control traps with numbers in them.
    """

    def __init__(
        self, target: Target, read: Extraction, plan: DelayPlan, chip: Chip | None, options: ConfirmOptions,
        limit_ns: int, memory: LaunchMemory | None = None,
    ) -> None:  # fmt: skip
        assert target.editable is not None
        self._text, self._kernel, self._chip, self._options = target.editable.text, read.kernel, chip, options
        self._limit_ns = limit_ns
        self._plain = self._rewritten(())
        self._set_plan(plan)
        body, self._given, self._zeros = self._kernel.entry.body, memory, tuple[str, ...]()
        talks = any(each.opcode in ("atom", "red") and "shared" not in each.spaces for each in body)
        self._fill("" if talks else None)

    def _set_plan(self, plan: DelayPlan) -> None:
        """``_asked``: who waits where, in one way or another, in a launch that shows what is predicted."""
        self._plan = plan
        ends = (plan.waiting,) if plan.sign is Sign.HANG else plan.hangs
        self._asked = [{(each.cta, each.warp, each.position) for each in end} for end in ends]

    def _fill(self, zeroed: str | None) -> None:
        """The memory of the launches: of pointers numbers, or zeros in the buffer of this name ("": in all)."""
        if self._given is not None:
            self._memory = self._given
            return
        launch, entry, size = self._kernel.launch, self._kernel.entry, self._options.buffer_bytes
        self._memory, self._zeros = launch_memory(launch, entry, size, lambda name: zeroed in ("", name))

    def result(self, none: FindingOnChip) -> FindingOnChip:
        """What they show."""
        plan, chip = self._plan, self._chip
        asked = replace(none, sign=plan.sign, delays=plan.delays, waiting=plan.waiting, modelled=plan.modelled)
        if chip is None:
            return replace(asked, reason="no launch was asked for", files=self._save(none.number, plan.delays))
        without = tried = self._tries(self._control(chip))
        delays: tuple[Delay, ...] = ()
        if (plan.delays or plan.others) and not without.seen:
            delays, late = self._reduced(chip, alone=without.otherwise > 0)
            delays, tried = (delays, late) if late.seen or not without.otherwise else ((), tried)
        far = plan.sign is Sign.DATA and not (tried.seen or tried.otherwise or without.otherwise)
        delays, tried = self._with_late_copies(chip, delays, tried) if far else (delays, tried)
        verdict, reason = _verdict(plan.sign, tried, delayed=not without.seen)
        return replace(
            asked, verdict=verdict, delays=delays, tried=tried, control=without, reason=reason or _FAR * far,
            zeros=self._zeros, files=self._save(none.number, delays),
        )  # fmt: skip

    def _control(self, chip: Chip) -> list[LaunchSeen]:
        """The launches without delays, with zeros in a buffer, or in all, where they trap with numbers."""
        times = self._options.launches
        control = self._launches(chip, (self._plain, times), processes=1)
        fixed = self._zeros or self._given or self._plan.sign is Sign.TRAP
        names = () if fixed else (*self._memory.names[:_MOST_ZEROED], "")
        for name in names:
            if control[-1].outcome is not ChipOutcome.TRAP:
                break
            self._fill(name)
            control = self._launches(chip, (self._plain, times), processes=1) if self._zeros else control
        return control + self._launches(chip, (self._plain, times - len(control)))

    def _reduced(self, chip: Chip, *, alone: bool) -> tuple[tuple[Delay, ...], Tries]:
        """The delays, longer ones if those show nothing, or the smallest part that still shows it, and the launches.

        ``alone``: not beside a launch without delays, which fails.
        """

        def tries(delays: Sequence[Delay], times: int) -> Tries:
            plain = () if alone else ((self._plain, 1),)
            return self._tries(self._launches(chip, *plain, (self._rewritten(delays), times)))

        usual, plan = self._plan.delays or self._plan.others[0], self._plan
        longer = tuple(replace(each, ns=each.ns * _LONGER) for each in usual)
        once: list[tuple[tuple[Delay, ...], Tries]] = []
        for each in (usual, longer, *((plan.turns,) if plan.turns else ()), *plan.others[not plan.delays :]):
            once.append((each, tries(each, 1)))
            if once[-1][1].seen:
                break
        otherwise = next((each for each, found in once if found.otherwise), longer)
        chosen = next((each for each, found in once if found.seen), otherwise)
        for each in chosen if len(chosen) > 1 and chosen is not self._plan.turns else ():
            fewer = tuple(other for other in chosen if other != each)
            if fewer and tries(fewer, 1).seen:
                chosen = fewer
        return chosen, tries(chosen, self._options.launches)

    def _with_late_copies(self, chip: Chip, delays: tuple[Delay, ...], tried: Tries) -> tuple[tuple[Delay, ...], Tries]:
        """Beside busy memory, with buffers of the host, with the delays and with none: these, and all launches."""
        otherwise = list[tuple[tuple[Delay, ...], Tries]]()
        for each in dict.fromkeys((delays, ())):
            late = replace(self._rewritten(each), busy=True)
            found = self._tries(self._launches(chip, (self._plain, 1), (late, self._options.launches), processes=1))
            if found.seen:
                return each, found
            otherwise += [(each, found)] * bool(found.otherwise)
            tried = replace(tried, launches=tried.launches + found.launches)
        return otherwise[0] if otherwise else (delays, tried)

    def _rewritten(self, delays: Sequence[Delay]) -> DelayedPtx:
        return delayed_ptx(self._text, self._kernel, delays, self._limit_ns)

    def _saved(self, delays: Sequence[Delay]) -> DelayedPtx:
        """What is written: here what is launched."""
        return self._rewritten(delays)

    def _launches(self, chip: Chip, *kernels: tuple[DelayedPtx, int], processes: int = 1_000) -> list[LaunchSeen]:
        """The launches of the last kernel. After one that leaves no context, the others are made in another process."""
        (last, times), limit_s = kernels[-1], _HOST_S + 2e-9 * self._limit_ns
        found: list[LaunchSeen] = []
        while len(found) < times and processes:
            processes -= 1
            these = (*kernels[:-1], (last, times - len(found)))
            more = chip.launch(these, self._kernel.launch, self._memory, limit_s)[-1]
            found += more
            if not more or (more[-1].outcome is ChipOutcome.STUCK and not more[-1].waits):
                break
        return found

    def _save(self, number: int, delays: Sequence[Delay]) -> tuple[str, ...]:
        """Write the PTX, and beside it what others launch it with; the names of both."""
        path = self._options.save
        if path is None:
            return ()
        path = path if number == max(self._options.finding, 1) else path.with_stem(f"{path.stem}-{number}")
        made, body = self._saved(delays), self._kernel.function.body
        said = {"format": "pipesim-delays", "version": 1, "ptx": path.name, "limit_ns": self._limit_ns}
        said |= request_of(self._kernel.launch, self._memory)
        said["delays"] = [
            asdict(each.place) | {"ns": each.ns} | ({"until": asdict(each.until)} if each.until else {})
            for each in delays
        ]
        said["variables"] = {"stop": STOP, "waits": WAITS, "words": made.words, "threads": made.threads}
        said["sites"] = [source_of(body[position], self._kernel.module) for position in made.sites]
        text = json.dumps(said, indent=1) + "\n"
        for file, data in ((path, made.text.encode()), (path.with_suffix(".json"), text.encode("ascii"))):
            write_whole(file, data, force=self._options.force)
        return str(path), str(path.with_suffix(".json"))

    def _tries(self, launches: Sequence[LaunchSeen]) -> Tries:
        """What they showed. Where results are not what is predicted, they may vary."""
        results = self._plan.sign in (Sign.DATA, Sign.NONE)
        none = {ChipOutcome.SAME} if results else {ChipOutcome.SAME, ChipOutcome.DIFFERS}
        shown = [(each, self._is_predicted(each)) for each in launches if each.outcome not in none]
        predicted = sum(yes for _, yes in shown)
        made = Tries(len(launches), predicted, len(shown) - predicted)
        for first, _ in sorted(shown, key=lambda each: not each[1])[:1]:
            name = self._memory.names[first.first[0]] if first.first[0] >= 0 else ""
            made = replace(
                made, waits=self._waits(first), error=first.error, differ=first.differ, first=(name, first.first[1]),
                stuck=first.outcome is ChipOutcome.STUCK and not first.waits,
            )  # fmt: skip
        return made

    def _is_predicted(self, seen: LaunchSeen) -> bool:
        match self._plan.sign:
            case Sign.TRAP:
                return seen.outcome is ChipOutcome.TRAP
            case Sign.HANG | Sign.DATA | Sign.NONE:
                differs = self._plan.sign is not Sign.HANG and seen.outcome is ChipOutcome.DIFFERS
                ends = self._by_cluster(seen).values()
                return differs or any(asked <= found for found in ends for asked in self._asked)

    def _by_cluster(self, seen: LaunchSeen) -> dict[int, set[tuple[int, int, int]]]:
        """By the first CTA of a cluster, the warps that gave up: rank, number, position of the wait."""
        found: dict[int, set[tuple[int, int, int]]] = {}
        for cta, warp, site in seen.waits:
            first, rank = _rank(self._kernel.launch, cta)
            found.setdefault(first, set()).add((rank, warp, self._plain.sites[site - 1]))
        return found

    def _waits(self, seen: LaunchSeen) -> tuple[WarpsAtWait, ...]:
        """Those of one cluster: of the one that is as predicted, if there is one."""
        clusters = self._by_cluster(seen)
        pairs = [(first, asked) for first in clusters for asked in self._asked or [set[tuple[int, int, int]]()]]
        ordered = sorted(pairs, key=lambda each: (each[1] <= clusters[each[0]], len(each[1] & clusters[each[0]])))
        chosen, asked = ordered[-1] if ordered else (-1, set())
        at: dict[tuple[int, int], list[int]] = {}
        for rank, warp, position in sorted(clusters.get(chosen, ())):
            at.setdefault((rank, position), []).append(warp)
        body, module = self._kernel.function.body, self._kernel.module
        return tuple(
            WarpsAtWait(rank, tuple(warps), source_of(body[position], module),
                        all((rank, warp, position) in asked for warp in warps))
            for (rank, position), warps in sorted(at.items())
        )  # fmt: skip


def _rank(launch: Launch, cta: int) -> tuple[int, int]:
    """The first CTA of a CTA's cluster, and its rank there; followed together, CTAs have their numbers in the grid."""
    if launch.together:
        return 0, cta
    (x, y, _), (a, b, c) = launch.grid, launch.cluster
    i, j, k = cta % x, cta // x % y, cta // (x * y)
    first = i // a * a + x * (j // b * b + y * (k // c * c))
    return first, i % a + a * (j % b + b * (k % c))


def _verdict(sign: Sign, tries: Tries, *, delayed: bool) -> tuple[ChipVerdict, str]:
    if tries.seen and sign in (Sign.DATA, Sign.NONE) and not delayed and not tries.waits:
        return ChipVerdict.NOT_SEEN, "its results vary without delays, which may have other causes"
    if tries.seen:
        return ChipVerdict.CONFIRMED, ""
    if tries.otherwise:
        return ChipVerdict.OTHERWISE, ""
    return ChipVerdict.NOT_SEEN, sign.value if sign is Sign.NONE else ""
