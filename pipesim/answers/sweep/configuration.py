"""One configuration of a sweep, wherever it is computed: its program is made, proved and simulated.

Any error in it is part of its answer, so that no configuration is lost from the sweep.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from itertools import product
from math import prod
from typing import assert_never

from pipesim.answers.progress import Stage
from pipesim.answers.sweep.measure import (
    MOST_STATES,
    MOST_STEPS,
    OF_VERDICT,
    resources_of,
    simulate_once,
    why_not,
)
from pipesim.answers.verify import Subject, failure
from pipesim.answers.views.sweep import Configuration, Outcome
from pipesim.errors import ParameterError, UsageError
from pipesim.model.ending import Ending
from pipesim.model.finding import Verdict
from pipesim.model.program import Program
from pipesim.process.limits import Limit, LimitReachedError
from pipesim.process.watch import current
from pipesim.prove.check import check
from pipesim.timed.profile import Profile

MOST_CONFIGURATIONS = 100_000  #: of one sweep: a day on a few processors
Params = tuple[tuple[str, int], ...]  #: the values of one configuration, in the order of the axes


def axes_of(given: Mapping[str, Iterable[int]]) -> dict[str, tuple[int, ...]]:
    """The axes with their values as they are given, each value once. ParameterError for an axis without values."""
    axes = {name: tuple(dict.fromkeys(values)) for name, values in given.items()}
    for name, values in axes.items():
        if not values:
            raise ParameterError(f"{name} has no value", correction=f"for example {name}=2..8 or {name}=2,4,8")
    number = prod(map(len, axes.values()))
    if number > MOST_CONFIGURATIONS:
        raise ParameterError(
            f"this sweep has {number:,} configurations; at most {MOST_CONFIGURATIONS:,} are swept together",
            cause=", ".join(f"{name} has {len(values):,} values" for name, values in axes.items()),
            correction="give fewer values, or sweep one part after the other",
        )
    return axes


def configurations(axes: Mapping[str, tuple[int, ...]]) -> list[Params]:
    """Every combination, the last axis changing fastest."""
    return [tuple(zip(axes, values, strict=True)) for values in product(*axes.values())]


@dataclass(frozen=True)
class Question:
    """What is computed for every configuration. ``prove``: whether it must be proved to be usable."""

    profile: Profile
    prove: bool = True
    max_states: int = MOST_STATES
    max_steps: int = MOST_STEPS


@dataclass(frozen=True)
class SweepAnswer:
    """A configuration and what it is an answer about.

    ``program``: a hash of its program, "" where none could be made. ``reused``: it is from the results file, and its
    program is still the same.
    """

    configuration: Configuration
    program: str = ""
    reused: bool = False


@dataclass(frozen=True)
class SweepPart:
    """One configuration, to be computed in any process: what is swept, and of what.

    ``subject`` makes the program where it is computed; where it cannot be made there, it is the program. ``kept``: the
    answer that the results file has, to be used if the program is the same.
    """

    params: Params
    subject: Subject | Program
    kept: SweepAnswer | None = None

    def build(self) -> Program:
        """Its program. Raises as ``Target.build`` does."""
        return self.subject if isinstance(self.subject, Program) else self.subject.program()


def carry_out(part: SweepPart, asked: Question) -> SweepAnswer:
    """The answer of one configuration, in a process of any kind. What a protocol prints goes to standard error."""
    with redirect_stdout(sys.stderr):
        return evaluate(part.params, part.build, asked, part.kept)


def evaluate(
    params: Params, build: Callable[[], Program], asked: Question, kept: SweepAnswer | None = None
) -> SweepAnswer:
    """Make the program, prove it and simulate it, unless ``kept`` is the answer of the same program.

    LimitReachedError where the time of the whole sweep is used up.
    """
    named = dict(params)
    digest = ""
    try:
        program = build()
        digest = digest_of(program)
        if kept is not None and kept.program == digest:
            return replace(kept, reused=True)
        return SweepAnswer(_evaluate_program(named, program, asked), digest)
    except UsageError as error:
        refused = SweepAnswer(Configuration(named, Outcome.REFUSED, error.fact), digest)
        return replace(refused, reused=kept == refused)
    except LimitReachedError as reached:
        if reached.limit is Limit.TIME:
            raise
        current().resume()
        return SweepAnswer(Configuration(named, Outcome.FAILED, reached.in_words()), digest)
    except Exception as error:  # noqa: BLE001  # it is reported with its configuration, and the others continue
        return SweepAnswer(failed_answer(params, error), digest)


def digest_of(program: Program) -> str:
    """A hash of everything in a program but the source lines, which say no more than where its text is."""
    values = [getattr(program, field.name) for field in fields(program) if field.name != "sources"]
    return hashlib.sha256(json.dumps(values, default=_plain, sort_keys=True).encode()).hexdigest()


def _plain(value: object) -> object:
    if is_dataclass(value):
        return [getattr(value, field.name) for field in fields(value)]
    if isinstance(value, frozenset):
        return sorted(each.value for each in value)
    assert isinstance(value, Enum), f"a program has no field of type {type(value).__name__}"
    return value.name


def _evaluate_program(named: dict[str, int], program: Program, asked: Question) -> Configuration:
    resources = resources_of(program)
    ran = simulate_once(program, asked.profile, asked.max_steps)
    state, why = _state_of(ran.outcome, ran.why), ran.why
    if asked.prove:
        found = check(program, asked.max_states)
        if found.verdict is not Verdict.PROVED:
            state, why = OF_VERDICT[found.verdict], why_not(found)
    return Configuration(named, state, why, resources, ran.times)


def _state_of(outcome: Ending, why: str) -> Outcome:
    match outcome:
        case Ending.FINISHED:
            return Outcome.UNFINISHED if why else Outcome.USABLE
        case Ending.DEADLOCK | Ending.FAULT:
            return Outcome.UNFINISHED
        case Ending.UNKNOWN:
            return Outcome.UNFINISHED if why else Outcome.CUT
        case Ending.DEADLINE | Ending.TRAP:
            raise AssertionError("a simulation has no deadline, and its traps are faults")
        case _:
            assert_never(outcome)


def failed_answer(params: Params, error: BaseException) -> Configuration:
    """A configuration without an answer: the sweep was ended, its process died, or pipesim failed."""
    found = failure(Stage.SIMULATE, "", error)
    return Configuration(dict(params), Outcome.NOT_REACHED if found.interrupted else Outcome.FAILED, found.said)
