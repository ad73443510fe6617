"""What the model says of each case, beside what a chip did. Needs no GPU: it reads stored results.

Where the model allows several outcomes, a chip agrees that shows some of them. Where it says nothing, neither do we.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import mode

import numpy as np

from hwkernels.experiments.catalogue import Case, Experiment
from hwkernels.experiments.results import FAILED, Outcome
from hwkernels.experiments.sequences import Code, completed, parse
from hwkernels.recorder.clocks import CLOCK_SKEW_CYCLES, Line, read_line
from hwkernels.recorder.decode import TIMER_STEPS
from hwkernels.recorder.layout import ANCHOR
from pipesim.model import barrier
from pipesim.model.barrier import FRESH, LIVE, BarrierState, Effect, word_of

FINISHED_STORE = 3  #: ``kind`` of the experiment ``finished``: written by a thread, overwritten by a copy
FAILS = "the launch fails"
SILENT = "–"  #: shown if the model does not cover a question


@dataclass(frozen=True)
class Verdict:
    """What the model says, what was seen, both short, and whether they agree (None: the model says nothing)."""

    model: str
    seen: str
    agrees: bool | None


@dataclass(frozen=True)
class Predicted:
    """What the model does with a sequence: which parity has completed after each operation, "!" where it traps."""

    answers: str
    state: BarrierState
    trapped: bool


def verdict(experiment: Experiment, case: Case, outcome: Outcome) -> Verdict:
    """The verdict on one stored case. A case without an answer agrees with nothing."""
    if any(name.startswith(FAILED) for name in outcome.outcomes):
        return Verdict(SILENT, ", ".join(sorted(outcome.outcomes)), agrees=False)
    return _VERDICTS[experiment.name](case, outcome)


def predict(text: str) -> Predicted:
    """What the model does with a sequence of operations."""
    state, answers = FRESH, ""
    for code, operand in parse(text):
        state, _, fault = _apply(state, code, operand)
        if fault is not None and fault.traps:
            return Predicted(answers + "!", state, trapped=True)
        answers += "-" if state.life != LIVE else "0" if barrier.passes(state, 0) else "1"
    return Predicted(answers, state, trapped=False)


def _apply(state: BarrierState, code: Code, operand: int) -> Effect:
    match code:
        case Code.INIT:
            return barrier.init(state, operand)
        case Code.EXPECT_TX:
            return barrier.add_tx(state, operand)
        case Code.ARRIVE:
            return barrier.arrive(state, operand)
        case Code.ARRIVE_EXPECT_TX:
            return barrier.arrive(state, 1, operand)
        case Code.COMPLETE_TX:
            return barrier.add_tx(state, -operand)
        case Code.ARRIVE_DROP:
            return barrier.arrive_drop(state, operand)
        case Code.ARRIVE_NO_COMPLETE:
            return barrier.arrive_no_complete(state, operand)
        case Code.INVAL:
            return barrier.inval(state)


def _counts(outcome: Outcome) -> str:
    return ", ".join(f"{name.partition(':')[0]} {count:,}" for name, count in sorted(outcome.outcomes.items()))


def _hex(bits: int) -> str:
    return f"{bits:016x}"


def _sequence(case: Case, outcome: Outcome) -> Verdict:
    predicted = predict(case.text)
    bits = _hex(word_of(predicted.state))
    model = f"{predicted.answers} {FAILS}" if predicted.trapped else f"{predicted.answers} {bits}"
    if outcome.trapped:
        answers = "".join(completed(a) for a in outcome.data["answers"] if a & 4) + "!"
        # which of the last operations the chip noticed it at is not certain: a trap may come late
        return Verdict(model, f"{answers} {FAILS}", predicted.trapped)
    if list(outcome.outcomes) != ["finished"]:
        return Verdict(model, _counts(outcome), agrees=False)
    answers = "".join(completed(a) for a in outcome.data["answers"])
    seen = f"{answers} {_hex(outcome.data['words'][1])}"
    return Verdict(model, seen, seen == model and "repetitions_that_differ" not in outcome.data)


def _lanes(case: Case, outcome: Outcome) -> Verdict:
    a = case.arguments
    state = barrier.init(FRESH, a["m"])[0]
    trapped = False
    for count in [1] * a["n"] if a["apart"] else [a["n"]]:
        state, _, fault = barrier.arrive(state, count)
        trapped |= fault is not None and fault.traps
    model = FAILS if trapped else _hex(word_of(state))
    if outcome.trapped:
        return Verdict(model, FAILS, trapped)
    seen = ", ".join(_hex(bits) for bits in outcome.data["words"]) or _counts(outcome)
    return Verdict(model, seen, seen == model and list(outcome.outcomes) == ["finished"])


def _copy(case: Case, outcome: Outcome) -> Verdict:
    size, expected = case.arguments["bytes"], case.arguments["expected"]
    late = BarrierState(1, 0, expected - size)
    after = BarrierState(1, 1, expected - size, 1)
    if expected == size:
        model, allowed, words = "completes, all landed", {"completed, all landed"}, {word_of(after)}
    else:
        model = "hangs or completes early"
        allowed = {"hung", "completed early, all landed", "completed early, words missing"}
        words = {word_of(late), word_of(after)}
    agrees = set(outcome.outcomes) <= allowed and set(outcome.data["words"]) <= words
    return Verdict(model, _counts(outcome), agrees)


def _pieces(case: Case, outcome: Outcome) -> Verdict:
    data, size = outcome.data, case.arguments["bytes"]
    found = ", ".join(f"{e:,} ({n})" for e, n in zip(data["expected"][:8], data["early"][:8], strict=True)) or "none"
    more = len(data["expected"]) - 8
    seen = f"early at {found}" + (f" and {more} more" if more > 0 else "")
    if data["expected"]:
        step = int(np.gcd.reduce([*data["expected"], size]))
        seen += f"; all multiples of {step}"
    return Verdict("early at sums of pieces of any size", seen, data["at_once"] == [case.arguments["runs"]])


def _laps(case: Case, outcome: Outcome) -> Verdict:
    a = case.arguments
    state = barrier.init(FRESH, 1)[0]
    ever = barrier.passes(state, a["parity"])
    for _ in range(a["phases"]):
        state = barrier.arrive(state, 1)[0]
        ever |= barrier.passes(state, a["parity"])
    now = barrier.passes(state, a["parity"])
    returned, waiting = "returned", "still waiting at the deadline"
    if now:
        model, allowed = "returns", {returned}
    elif ever and not a["held"]:
        model, allowed = "returns or continues to wait", {returned, waiting}
    else:
        model, allowed = "continues to wait", {waiting}
    return Verdict(model, _counts(outcome), set(outcome.outcomes) <= allowed)


def _remote(case: Case, outcome: Outcome) -> Verdict:
    if case.arguments["exited"]:
        return Verdict(FAILS, FAILS if outcome.trapped else _counts(outcome), outcome.trapped)
    return Verdict("the wait returns", _counts(outcome), list(outcome.outcomes) == ["the wait returned"])


def _finished(case: Case, outcome: Outcome) -> Verdict:
    """A control that does not tear proves nothing about its case: that is a disagreement too."""
    a, names = case.arguments, set(outcome.outcomes)
    torn = any(name.endswith("torn") for name in names)
    ended = all(name.endswith(("torn", "whole")) for name in names)
    if a["control"]:
        return Verdict("torn", _counts(outcome), ended and torn)
    if a["kind"] == FINISHED_STORE:
        return Verdict("not ordered without a fence", _counts(outcome), ended)
    return Verdict("whole, as assumed", _counts(outcome), ended and not torn)


def _timer_step(_: Case, outcome: Outcome) -> Verdict:
    steps = {int(name.split()[0]): count for name, count in outcome.outcomes.items()}
    usual = mode([step for step, count in steps.items() for _ in range(count)])
    seen = ", ".join(f"{step} ns {steps[step]:,}" for step in sorted(steps))
    return Verdict(f"at most {TIMER_STEPS} usual steps", seen, max(steps) <= TIMER_STEPS * usual)


def _reading_cost(_: Case, outcome: Outcome) -> Verdict:
    names = ("%clock", "%clock64", "%globaltimer", "%globaltimer_lo")
    costs = outcome.data["median_millicycles"][1:]
    seen = ", ".join(f"{name} {cost / 1000:.1f}" for name, cost in zip(names, costs, strict=True))
    return Verdict(SILENT, f"{seen} cycles", None)


def _quarters(case: Case, outcome: Outcome) -> Verdict:
    data = outcome.data
    model = f"within {CLOCK_SKEW_CYCLES} cycles"
    if case.arguments["mode"] == 2:
        late = [max(data["most_behind"][quarter::4]) for quarter in range(4)]
        low, middle, high = data["spread"]
        seen = (
            f"apart by {low} to {high} cycles (median {middle}); quarters 0 to 3 are at most "
            f"{', '.join(str(n) for n in late)} after the first"
        )
        return Verdict(model, seen, high <= CLOCK_SKEW_CYCLES)
    bounds = list(zip(data["low"], data["high"], strict=True))
    seen = "minus warp 0's: " + ", ".join(f"{low} to {high}" for low, high in bounds)
    return Verdict(model, seen, all(low <= CLOCK_SKEW_CYCLES and high >= -CLOCK_SKEW_CYCLES for low, high in bounds))


def _timer_agreement(_: Case, outcome: Outcome) -> Verdict:
    data = outcome.data
    if not data:
        return Verdict("one timer", _counts(outcome), agrees=False)
    low, middle, high = data["spread"]
    seen = (
        f"one release is seen over {low} to {high} ns (median {middle}); minus CTA 0's: "
        f"above {max(data['low'])} ns, below {min(data['high'])} ns everywhere"
    )
    return Verdict("one timer", seen, max(data["low"]) <= 0 <= min(data["high"]))


def _pingpong(case: Case, outcome: Outcome) -> Verdict:
    """Of each message, whether its sending can be earlier than its receipt, where both are placed with their errors."""
    model = "placed times and messages agree"
    ctas, size = case.arguments["ctas"], case.arguments["cluster"]
    if outcome.outcomes != {"CTAs finished": ctas}:
        return Verdict(model, _counts(outcome), agrees=False)
    lines = [_line(outcome, cta) for cta in range(ctas)]
    origin = min(line.timers[0] for line in lines)
    messages = 0
    for cta, line in enumerate(lines):
        to = cta - cta % size + (cta + 1) % size
        sent = np.array(outcome.data["sent"][cta], dtype=np.int64) - line.cycles[0]
        received = np.array(outcome.data["received"][to], dtype=np.int64) - lines[to].cycles[0]
        earliest = line.place(sent, origin) - line.error_ps(sent)
        latest = lines[to].place(received, origin) + lines[to].error_ps(received)
        if (wrong := earliest > latest).any():
            lap = int(np.argmax(wrong))
            return Verdict(model, f"lap {lap}: CTA {cta} → CTA {to} arrives before it was sent", agrees=False)
        messages += len(sent)
    return Verdict(model, f"they agree in all {messages:,} messages", agrees=True)


def _line(outcome: Outcome, cta: int) -> Line:
    anchors = np.array(outcome.data["anchors"][cta], dtype=np.uint64).reshape(2, len(ANCHOR.names or ()))
    return read_line(np.array([tuple(row) for row in anchors.tolist()], dtype=ANCHOR), f"CTA {cta}")


def _latency(_: Case, outcome: Outcome) -> Verdict:
    if list(outcome.outcomes) != ["returned"]:
        return Verdict(SILENT, _counts(outcome), agrees=False)
    least, middle, khz = (outcome.data[name][0] for name in ("least", "median", "sm_khz"))
    runs = outcome.outcomes["returned"]
    seen = f"at least {least:,} cycles, median {middle:,} ({runs:,} times at {khz / 1e6:.2f} GHz)"
    return Verdict(SILENT, seen, None)


_VERDICTS: dict[str, Callable[[Case, Outcome], Verdict]] = {
    "mbarrier": _sequence,
    "lanes": _lanes,
    "copies": _copy,
    "pieces": _pieces,
    "laps": _laps,
    "remote": _remote,
    "finished": _finished,
    "timer_step": _timer_step,
    "reading_cost": _reading_cost,
    "quarters": _quarters,
    "timer_agreement": _timer_agreement,
    "pingpong": _pingpong,
    "latency": _latency,
}
