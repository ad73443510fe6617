"""One configuration of a sweep, wherever it is computed: its program is made, proved and simulated.

What goes wrong with it is part of its answer, so that none is lost from the sweep.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import assert_never

from pipesim.answers.sweep.measure import MOST_STATES, MOST_STEPS, proof, resources_of, simulated, why_not
from pipesim.answers.sweep.space import Params
from pipesim.answers.verify_parts import Subject
from pipesim.answers.views.sweep import Configuration, Reached
from pipesim.errors import PipesimError, UsageError, internal_error
from pipesim.model.ending import Ending
from pipesim.model.finding import Verdict
from pipesim.model.program import Program
from pipesim.process.limits import Limit, LimitReachedError
from pipesim.process.watch import current
from pipesim.timed.profile import Profile

_OF_VERDICT = {Verdict.REFUTED: Reached.REFUTED, Verdict.UNKNOWN: Reached.UNDECIDED}


@dataclass(frozen=True)
class Question:
    """What is asked of every configuration. ``prove``: whether it must be proved to be usable."""

    profile: Profile
    prove: bool = True
    max_states: int = MOST_STATES
    max_steps: int = MOST_STEPS


@dataclass(frozen=True)
class SweepPart:
    """One configuration, to be computed in any process: what is swept, and of what.

    ``subject`` makes the program where it is computed; where it cannot be made there, it comes as ``program``.
    """

    params: Params
    subject: Subject | Program

    def build(self) -> Program:
        """Its program. Raises as ``Target.build`` does."""
        return self.subject if isinstance(self.subject, Program) else self.subject.program()


def carry_out(part: SweepPart, asked: Question) -> Configuration:
    """The answer of one configuration, in a process of any kind. What a protocol prints goes to standard error."""
    with redirect_stdout(sys.stderr):
        return tried(part.params, part.build, asked)


def tried(params: Params, build: Callable[[], Program], asked: Question) -> Configuration:
    """Make the program, prove it and simulate it. LimitReachedError where the time of the whole sweep is used up."""
    named = dict(params)
    try:
        return _judged(named, build, asked)
    except UsageError as error:
        return Configuration(named, Reached.REFUSED, error.fact)
    except LimitReachedError as reached:
        if reached.limit is Limit.TIME:
            raise
        current().resume()
        return Configuration(named, Reached.FAILED, reached.in_words())
    except MemoryError:
        return Configuration(named, Reached.FAILED, "there is not enough memory")
    except Exception as error:  # noqa: BLE001  # it is reported with its configuration, and the others go on
        return failed(params, error)


def _judged(named: dict[str, int], build: Callable[[], Program], asked: Question) -> Configuration:
    program = build()
    resources = resources_of(program)
    ran = simulated(program, asked.profile, asked.max_steps)
    state, why = _state_of(ran.outcome, ran.why), ran.why
    if asked.prove:
        found = proof(program, asked.max_states)
        if found.verdict is not Verdict.PROVED:
            state, why = _OF_VERDICT[found.verdict], why_not(found)
    return Configuration(named, state, why, resources, ran.times)


def _state_of(outcome: Ending, why: str) -> Reached:
    match outcome:
        case Ending.FINISHED:
            return Reached.UNFINISHED if why else Reached.USABLE
        case Ending.DEADLOCK | Ending.FAULT:
            return Reached.UNFINISHED
        case Ending.UNKNOWN:
            return Reached.UNFINISHED if why else Reached.CUT
        case Ending.DEADLINE | Ending.TRAP:
            raise AssertionError("a simulation has no deadline, and its traps are faults")
        case _:
            assert_never(outcome)


def failed(params: Params, error: BaseException) -> Configuration:
    """A configuration without an answer: the sweep was ended, its process died, or pipesim failed."""
    if isinstance(error, KeyboardInterrupt):
        return Configuration(dict(params), Reached.NOT_REACHED, "interrupted")
    if isinstance(error, BrokenExecutor):
        return Configuration(dict(params), Reached.FAILED, "its process ended before it had an answer")
    said = error if isinstance(error, PipesimError) else internal_error(error)
    return Configuration(dict(params), Reached.FAILED, said.fact)
