"""The program that a trace is compared with: the one that it was recorded of, or another one that was named."""

from collections.abc import Mapping

from pipesim.bounds import MAX_OPERATIONS, OPERATIONS_A_RECORD, SPARE_OPERATIONS
from pipesim.errors import EvidenceError, TooManyOperationsError, UnknownProtocolError
from pipesim.model.ending import Ending
from pipesim.model.program import Program
from pipesim.protocols.catalog import BUILT_IN
from pipesim.targets import Target, find
from pipesim.trace.schema import TraceMeta

NAME_IT = "name the protocol to compare it with"


class LongRunError(EvidenceError):
    """The program of a trace has more operations than are made. ``target``, ``params``: what makes it."""

    def __init__(self, fact: str, target: Target, params: Mapping[str, int], place: str) -> None:
        correction = "record fewer iterations, or a window of them"
        super().__init__(fact, place=place, cause="only diff reads longer ones, by their laps", correction=correction)
        self.target, self.params = target, params


def recorded_program(
    meta: TraceMeta,
    target: Target | None = None,
    given: Mapping[str, int] | None = None,
    *,
    place: str = "",
    correction: str = NAME_IT,
    records: int | None = None,
) -> Program:
    """The program of a trace: the protocol that it names (or ``target``) with its parameters and its CTAs.

    A trace may name a built-in protocol only: it never makes us run a file. ``given`` replaces recorded values and
    supplies those that the trace lacks. ``place``: the trace's file, ``correction``: how a protocol is named, both for
    the errors. ``records``: how many the trace has, None for what its headers say. UnknownProtocolError if the protocol
    is not built in, EvidenceError if the trace has a parameter that the protocol does not have or lacks one that it
    has, or too few records for so large a program; raises as ``Target.build`` does for values.
    """
    twice = target is not None  # a built-in protocol was recorded twice in its tests
    target = _built_in(meta, correction) if target is None else target
    given = given or {}
    _require_same_parameters(meta, target, given, place)
    recorded = {} if target.program is not None else meta.params
    return _build(meta, target, {**recorded, **given}, place, records, twice=twice)


def named_program(
    meta: TraceMeta,
    target: Target,
    given: Mapping[str, int] | None = None,
    *,
    place: str = "",
    records: int | None = None,
) -> Program:
    """The program of a protocol that was chosen for the trace, which may be another one than was recorded.

    It takes those of the recorded parameters that it has, and its defaults for the others. ``place`` and ``records`` as
    of :func:`recorded_program`. EvidenceError for too few records; else raises as ``Target.build``.
    """
    recorded = {} if target.program is not None else {n: v for n, v in meta.params.items() if n in target.defaults}
    return _build(meta, target, {**recorded, **(given or {})}, place, records)


def most_operations(meta: TraceMeta, records: int | None = None) -> int:
    """The operations that a program of this trace may have.

    The records of a whole run that finished say how long it was. One that hung, and a window, may be of any program.
    """
    lost = bool(meta.window) or any(any(header.dropped) for header in meta.ctas)
    if records is None:
        records = sum(sum(header.written) for header in meta.ctas)
        lost = lost or not meta.ctas
    if lost or meta.status != Ending.FINISHED:
        return MAX_OPERATIONS
    return min(MAX_OPERATIONS, SPARE_OPERATIONS + OPERATIONS_A_RECORD * records)


def _build(
    meta: TraceMeta, target: Target, params: Mapping[str, int], place: str, records: int | None, *, twice: bool = True
) -> Program:
    most = most_operations(meta, records)
    try:
        if (records or 0) > 2 * MAX_OPERATIONS * max(len(meta.ctas), 1):  # an operation has two at most
            raise TooManyOperationsError("")
        return target.build(params, grid=meta.grid, most=most, twice=twice)
    except TooManyOperationsError as error:
        if most == MAX_OPERATIONS:
            fact = f"the program of these parameters has more than {most:,} operations"
            raise LongRunError(fact, target, params, place) from error
        raise EvidenceError(
            f"the program of these parameters has more than {most:,} operations, which the trace is too short for",
            place=place,
            cause="the parameters are not those of the recording",
            correction="record it again, or give the parameters with -p NAME=VALUE",
        ) from error


def _built_in(meta: TraceMeta, correction: str) -> Target:
    if meta.protocol not in BUILT_IN:
        raise UnknownProtocolError(
            f"the trace is of protocol {meta.protocol}, which is not built in", correction=correction
        )
    return find(meta.protocol)


def _require_same_parameters(meta: TraceMeta, target: Target, given: Mapping[str, int], place: str) -> None:
    unknown = sorted(meta.params.keys() - target.defaults.keys())
    lacking = sorted(target.defaults.keys() - meta.params.keys() - given.keys())
    if not unknown and not lacking:
        return
    only = f"the trace has {unknown[0]}" if unknown else f"the protocol has {lacking[0]}"
    raise EvidenceError(
        f"the trace was recorded with other parameters: only {only}",
        place=place,
        cause=f"it is of another version of {meta.protocol}",
        correction="record it again, or name the protocol, which then "
        + (f"ignores {unknown[0]}" if unknown else f"takes its default for {lacking[0]}"),
    )
