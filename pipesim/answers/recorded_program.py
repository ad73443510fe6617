"""The program that a trace is compared with: the one that it was recorded of, or another one that was named."""

from __future__ import annotations

from collections.abc import Mapping

from pipesim.errors import EvidenceError, UnknownProtocolError
from pipesim.model.program import Program
from pipesim.protocols.catalog import BUILT_IN
from pipesim.targets import Target, find
from pipesim.trace.schema import TraceMeta

NAME_IT = "name the protocol to compare it with"


def recorded_program(
    meta: TraceMeta,
    target: Target | None = None,
    given: Mapping[str, int] | None = None,
    *,
    place: str = "",
    correction: str = NAME_IT,
) -> Program:
    """The program of a trace: the protocol that it names (or ``target``) with its parameters and its CTAs.

    A trace may name a built-in protocol only: it never makes us run a file. ``given`` replaces recorded values and
    supplies those that the trace lacks. ``place``: the trace's file, ``correction``: how a protocol is named, both for
    the errors. UnknownProtocolError if the protocol is not built in, EvidenceError if the trace has a parameter that
    the protocol does not have or lacks one that it has; raises as ``Target.build`` does for values.
    """
    target = _built_in(meta, correction) if target is None else target
    given = given or {}
    _require_same_parameters(meta, target, given, place)
    recorded = {} if target.program is not None else meta.params
    return target.build({**recorded, **given}, grid=meta.grid)


def named_program(meta: TraceMeta, target: Target, given: Mapping[str, int] | None = None) -> Program:
    """The program of a protocol that somebody chose for the trace, which may be another one than was recorded.

    It takes those of the recorded parameters that it has, and its defaults for the others. Raises as ``Target.build``.
    """
    recorded = {} if target.program is not None else {n: v for n, v in meta.params.items() if n in target.defaults}
    return target.build({**recorded, **(given or {})}, grid=meta.grid)


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
