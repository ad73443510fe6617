"""Captures of pipesim's kernels that can be made, and which of them would determine what a calibration does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from pipesim.answers.spread import processors, spread
from pipesim.conform.fit.observation import Vector
from pipesim.conform.fit.propose import CandidateQuestion, information_of, one_by_one
from pipesim.errors import ConfigurationError, ParameterError, UsageError
from pipesim.model.program import Program
from pipesim.targets import find

_LARGER = (1, 2, 4)  #: what a parameter of a candidate is multiplied with, or divided by
_FULL = 132  #: CTAs of a launch on every SM
_MOST_OPERATIONS = 1_200  #: of a candidate's program: it is simulated many times
_SAME_AS = {"shared_bytes": "own_bytes"}
_FEW = 8  #: candidates that are not worth processes


def informed(questions: Sequence[CandidateQuestion], tell: Callable[[int, int], None]) -> list[Vector | None]:
    """What each candidate's capture would say, computed on all processors."""
    if len(questions) <= _FEW:
        return one_by_one(questions, tell)
    done = [0]

    def over(_: int) -> None:
        done[0] += 1
        tell(done[0], len(questions))

    return spread(questions, information_of, _nothing, over, processors())


def _nothing(_asked: CandidateQuestion, _error: BaseException) -> None:
    """Of a candidate whose process died, as of too little memory: it is not proposed."""


def candidates() -> Iterator[tuple[str, Program]]:
    """Captures that can be made: of each kernel the defaults, each parameter smaller and larger, and a CTA an SM."""
    from hwkernels.twins import REGISTRY, registered

    for name in REGISTRY:
        defaults, twin = dict(find(name).defaults), registered(name)
        seen = set()
        for params, ctas in _variations(defaults):
            params |= {mine: params[other] for mine, other in _SAME_AS.items() if mine in params}
            key = tuple(params.items()), ctas
            if key in seen:
                continue
            seen.add(key)
            try:
                twin.check(params, max(1, ctas // max(params.get("cluster", 1), 1)))
                program = find(name).build(params, grid=ctas)
            except (ParameterError, ConfigurationError, UsageError):
                continue
            if sum(map(len, program.code)) <= _MOST_OPERATIONS:
                yield _command(name, defaults, params, ctas), program


def _variations(defaults: Mapping[str, int]) -> Iterator[tuple[dict[str, int], int]]:
    ctas = defaults.get("cluster", 1)
    yield dict(defaults), ctas
    yield dict(defaults), _FULL // ctas * ctas
    for name, value in defaults.items():
        for factor in _LARGER:
            for other in ({value * factor, value // factor} if value > 1 else {0, 1, 2}) - {value}:
                yield dict(defaults) | {name: other}, max(other, 1) if name == "cluster" else ctas


def _command(name: str, defaults: Mapping[str, int], params: Mapping[str, int], ctas: int) -> str:
    words = ["pipesim", "capture", name]
    words += [word for key, value in params.items() if defaults[key] != value for word in ("-p", f"{key}={value}")]
    return " ".join([*words, *(["--ctas", str(ctas)] if ctas != defaults.get("cluster", 1) else [])])
