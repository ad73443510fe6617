"""Advice: a protocol is simulated as it is, then with each change, and the changes are sorted by what they gain.

Which parameters are numbers of stages is seen by what they do: one more, and a group of barriers is larger, while
agents and CTAs stay as they are.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from pipesim.answers.progress import SILENT, Progress
from pipesim.answers.sweep.measure import MOST_STATES, OF_VERDICT, resources_of, simulate_once, why_not
from pipesim.answers.sweep.sweep import value_of
from pipesim.answers.views.conclusion import heading
from pipesim.answers.views.sweep import Advice, AdvisedChange, AdviseReport, ChangeKind, Metric, Outcome, Times
from pipesim.errors import ParameterError, PipesimError, UsageError
from pipesim.model.edits import Listing, listing, replace_operations, with_listings
from pipesim.model.finding import Verdict
from pipesim.model.ops import Op, Operation, Space, operand, with_operand
from pipesim.model.program import Program
from pipesim.prove.check import check
from pipesim.targets import Target
from pipesim.timed.profile import OF_INSTRUCTIONS, Profile
from pipesim.timed.work import OVERHEAD, SCALE

_QUICKER = "_quicker"  #: what the name of a work ends with that takes less time
_FARTHEST = 4  #: how much more or less of a parameter is tried until one is a value that the protocol takes
_SLOWER = ("copy.latency", "copy.latency_loaded", "copy.cold")
_LOAD_RATES = ("copy.bytes_per_kcycle", "copy.device_bytes_per_kcycle")
_SIGNALS = ("arrive.latency", "wait.retry", "wait.poll", "sync.latency")


@dataclass(frozen=True)
class Variant:
    """A change carried out: what is to be simulated. ``refused``: the program cannot be made, and why.

    ``same_operations``: only times differ, so that the verdict is that of the protocol.
    """

    change: AdvisedChange
    program: Program
    profile: Profile
    same_operations: bool = True
    refused: str = ""


def changes(
    target: Target, params: Mapping[str, int], ctas: int | None, program: Program, profile: Profile, percent: int
) -> Iterator[Variant]:
    """All changes of a protocol whose ``program`` has these parameters."""
    yield from _stages(target, params, ctas, program, profile)
    for role, loop in _works(program):
        change = AdvisedChange(ChangeKind.WORK, role=role, loop=loop)
        yield _with_less_work(Variant(change, program, profile), role, loop, percent)
    reads = _lines_of(program, lambda op: op[0] == Op.READ and not _of_registers(program, op))
    if reads:
        faster = _faster(_shorter(profile, ("read.issue",), percent), ("read.bytes_per_kcycle",), percent)
        yield _quicker(Variant(AdvisedChange(ChangeKind.READS), program, faster), reads, percent)
    kinds = {op[0] for op in program.operations}
    if Op.ENGINE_WORK in kinds:
        yield _with_faster_matrix(Variant(AdvisedChange(ChangeKind.MATRIX), program, profile), percent)
    if Op.TMA_LOAD in kinds:
        yield Variant(AdvisedChange(ChangeKind.LOAD_LATENCY), program, _shorter(profile, _SLOWER, percent))
        yield Variant(AdvisedChange(ChangeKind.LOAD_RATE), program, _faster(profile, _LOAD_RATES, percent))
    yield Variant(AdvisedChange(ChangeKind.SIGNALS), program, _shorter(profile, _SIGNALS, percent))


# stages


def _stages(
    target: Target, params: Mapping[str, int], ctas: int | None, program: Program, profile: Profile
) -> Iterator[Variant]:
    values = target.defaults | dict(params) if target.program is None else {}
    for name, value in values.items():
        more, why = _next(target, values, name, range(value + 1, value + 1 + _FARTHEST), ctas)
        if more is not None and _rings_grow(program, more[1]):
            yield Variant(AdvisedChange(ChangeKind.MORE_STAGES, name, more[0]), more[1], profile, same_operations=False)
        fewer, _ = _next(target, values, name, range(value - 1, max(0, value - 1 - _FARTHEST), -1), ctas)
        if fewer is None or not _rings_grow(fewer[1], program):
            continue
        yield Variant(AdvisedChange(ChangeKind.FEWER_STAGES, name, fewer[0]), fewer[1], profile, same_operations=False)
        if more is None:
            change = AdvisedChange(ChangeKind.MORE_STAGES, name, value + 1)
            yield Variant(change, program, profile, same_operations=False, refused=why)


def _next(
    target: Target, values: Mapping[str, int], name: str, tried: range, ctas: int | None
) -> tuple[tuple[int, Program] | None, str]:
    """The first of these values that the protocol takes, and its program; else why it takes none."""
    why = ""
    for value in tried:
        try:
            return (value, target.build({**values, name: value}, grid=ctas)), ""
        except UsageError as error:
            why = error.fact
        except PipesimError:
            break
    return None, why


def _rings_grow(small: Program, large: Program) -> bool:
    """True if a group of barriers is larger in the second, none is smaller, and nothing else of the shape differs."""
    if small.agents != large.agents or small.ctas != large.ctas:
        return False
    before, after = (Counter(barrier.name for barrier in each.barriers) for each in (small, large))
    return before.keys() == after.keys() and before < after


# times


def _works(program: Program) -> list[tuple[str, str]]:
    """The (role, loop) in which a role works for a number of cycles, in the order of the program."""
    found: dict[tuple[str, str], None] = {}
    for agent, role in enumerate(each.role for each in program.agents):
        for pc, loop in _work_places(program, agent):
            op = program.code[agent][pc]
            if program.lines[agent][pc] in program.work_of_line or (op[0] == Op.WORK and operand(op, "cycles")):
                found[role, loop] = None
    return list(found)


def _work_places(program: Program, agent: int) -> Iterator[tuple[int, str]]:
    """Where an agent works, each with the name of the loop that it is in ("": in none)."""
    inside: list[str] = []
    for pc, op in enumerate(program.code[agent]):
        match op[0]:
            case Op.LOOP_BEGIN:
                inside.append(program.loops[operand(op, "loop")])
            case Op.LOOP_END:
                inside.pop()
            case Op.WORK:
                yield pc, inside[-1] if inside else ""
            case Op.READ if _of_registers(program, op):  # what is computed with them
                yield pc, inside[-1] if inside else ""


def _of_registers(program: Program, op: Operation) -> bool:
    return program.accesses[operand(op, "access")].space == Space.REGISTERS


def _with_less_work(what: Variant, role: str, loop: str, percent: int) -> Variant:
    program = what.program

    def places(agent: int) -> Iterator[int]:
        if program.agents[agent].role == role:
            yield from (pc for pc, name in _work_places(program, agent) if name == loop)

    lines = {program.lines[agent][pc] for agent in range(len(program.agents)) for pc in places(agent)}

    def given(agent: int) -> Iterator[int]:
        return (pc for pc in places(agent) if program.code[agent][pc][0] == Op.WORK)

    return _quicker(replace(what, program=_rescale_operations(program, given, percent)), lines, percent)


def _with_faster_matrix(what: Variant, percent: int) -> Variant:
    """The tensor cores alone: what it takes to issue a multiplication stays."""
    program = what.program
    lines = _lines_of(program, lambda op: op[0] == Op.ENGINE_WORK)
    program = _rescale_operations(
        program, lambda agent: (pc for pc, op in enumerate(program.code[agent]) if op[0] == Op.ENGINE_WORK), percent
    )
    return _quicker(replace(what, program=program), lines, percent, overhead=False)


def _lines_of(program: Program, wanted: Callable[[Operation], bool]) -> set[int]:
    return {
        line
        for code, lines in zip(program.code, program.lines, strict=True)
        for op, line in zip(code, lines, strict=True)
        if wanted(op)
    }


def _quicker(what: Variant, lines: set[int], percent: int, *, overhead: bool = True) -> Variant:
    """The named works of these lines under names of their own, for which the profile says this percentage less."""
    values, work = dict(what.profile.values), []
    for each in what.program.work:
        if each.line not in lines:
            work.append(each)
            continue
        name = each.name + _QUICKER
        for of in (OVERHEAD, SCALE) if overhead else (SCALE,):
            if each.name + of in values:
                values[name + of] = _less(values[each.name + of], percent)
        if not overhead and each.name + OVERHEAD in values:
            values[name + OVERHEAD] = values[each.name + OVERHEAD]
        values.setdefault(name + SCALE, _less(1000, percent))
        spins = tuple((kind, _less(n, percent) if kind == "spin" else n) for kind, n in each.amounts)
        work.append(replace(each, name=name, amounts=spins))
    return replace(what, program=replace(what.program, work=tuple(work)), profile=replace(what.profile, values=values))


def _rescale_operations(program: Program, places: Callable[[int], Iterator[int]], percent: int) -> Program:
    """The program whose operations at these places take this percentage fewer cycles."""
    edited: dict[int, Listing] = {}
    for agent in range(len(program.code)):
        code = program.code[agent]
        shorter = {
            pc: with_operand(code[pc], "cycles", _less(operand(code[pc], "cycles"), percent)) for pc in places(agent)
        }
        if shorter:
            edited[agent] = replace_operations(listing(program, agent), shorter)
    return with_listings(program, edited)


def _shorter(profile: Profile, fields: tuple[str, ...], percent: int) -> Profile:
    """These times are this percentage shorter, also in a program whose other instructions have prices of their own."""
    names = (*fields, *(OF_INSTRUCTIONS[name] for name in fields if name in OF_INSTRUCTIONS))
    return replace(profile, values=profile.values | {name: max(1, _less(profile[name], percent)) for name in names})


def _faster(profile: Profile, fields: tuple[str, ...], percent: int) -> Profile:
    """What moves at these rates takes this percentage less time."""
    return replace(profile, values=profile.values | {name: profile[name] * 100 // (100 - percent) for name in fields})


def _less(value: int, percent: int) -> int:
    return value * (100 - percent) // 100


PERCENT = 20  #: by how much times are changed, unless a person asks for another amount


def advise(
    target: Target,
    params: Mapping[str, int],
    profile: Profile,
    *,
    ctas: int | None = None,
    percent: int = PERCENT,
    progress: Progress = SILENT,
) -> AdviseReport:
    """What limits the protocol with these parameters, and what each change would bring.

    A protocol that is refuted or does not finish gets no advice. ParameterError for a percentage outside of 1 to 90.
    """
    if not 1 <= percent <= 90:
        raise ParameterError(f"a change of {percent} %", correction="give 1 to 90")
    target = target.timed()
    program = target.build(params, grid=ctas)
    found = check(program, MOST_STATES)
    before = simulate_once(program, profile)
    metric = Metric.RUN if before.times is None or before.times.period_millicycles is None else Metric.PERIOD
    advice: list[Advice] = []
    if before.times is not None and found.verdict is not Verdict.REFUTED:
        tried = list(changes(target, params, ctas, program, profile, percent))
        with progress.configurations(program.name, len(tried)) as step:
            for n, each in enumerate(tried, 1):
                advice.append(_advice(each, before.times, metric, found.verdict))
                step(n, len(tried))
    return AdviseReport(
        heading=heading(program),
        profile=profile.name,
        device=profile.device,
        percent=percent,
        verdict=found.verdict,
        resources=resources_of(program),
        metric=metric,
        times=before.times,
        value=0 if before.times is None else value_of(before.times, metric, None) or 0,
        advice=tuple(sorted(advice, key=_gain)),
        why=why_not(found) or before.why,
        assumed=profile.assumed,
    )


def _gain(each: Advice) -> tuple[int, int]:
    """The largest gain first; what could not be tried last."""
    return (1, 0) if each.gain_permille is None else (0, -each.gain_permille)


def _advice(each: Variant, before: Times, metric: Metric, verdict: Verdict) -> Advice:
    if each.refused:
        return Advice(each.change, Outcome.REFUSED, each.refused)
    resources = resources_of(each.program)
    why = ""
    if not each.same_operations:
        found = check(each.program, MOST_STATES)
        verdict, why = found.verdict, why_not(found)
    if verdict is Verdict.REFUTED:
        return Advice(each.change, Outcome.REFUTED, why, verdict, resources)
    ran = simulate_once(each.program, each.profile)
    if ran.times is None:
        return Advice(each.change, Outcome.UNFINISHED if ran.why else Outcome.CUT, ran.why, verdict, resources)
    metric = _common(before, ran.times, metric)
    was, value = value_of(before, metric, None), value_of(ran.times, metric, None)
    same_work = each.same_operations or (ran.times.work, ran.times.unit) == (before.work, before.unit)
    gain = round(1000 * (was - value) / was) if was and value is not None and same_work else None
    return Advice(each.change, OF_VERDICT[verdict], why, verdict, resources, ran.times, value, gain, metric)


def _common(before: Times, after: Times, metric: Metric) -> Metric:
    """By what both are compared: the whole run where the period of the second is not known, or of another loop."""
    known = after.period_millicycles is not None and after.iterations == before.iterations
    return metric if known else Metric.RUN
