"""What every kind of finding is, read off :mod:`pipesim.findings`."""

import difflib
from typing import assert_never

from pipesim.answers.views.kinds import AssumptionReport, ExampleForm, KindLine, KindReport
from pipesim.errors import UsageError
from pipesim.findings.assumptions import ASSUMPTIONS, strict_words
from pipesim.findings.catalog import BY_NAME
from pipesim.findings.kind import FindingKind, FlatExample, ProtocolExample, PtxExample
from pipesim.findings.trials import never_seen
from pipesim.model.coverage import Assumption


def kind_lines() -> tuple[KindLine, ...]:
    """All kinds, findings before warnings."""
    return tuple(KindLine(kind.name, kind.title, kind.warns) for kind in BY_NAME.values())


def assumption_lines() -> tuple[KindLine, ...]:
    """All assumptions."""
    return tuple(KindLine(kind.value, text.clause, warning=False) for kind, text in ASSUMPTIONS.items())


def kind_named(text: str) -> KindReport | AssumptionReport:
    """The kind or the assumption of this name, in any case, with hyphens or underscores.

    UsageError with the nearest if there is none.
    """
    name = text.lower().removeprefix("--strict-").replace("-", "_")
    assumptions = {kind.value.replace("-", "_"): kind for kind in ASSUMPTIONS}
    if name in assumptions:
        return _assumption(assumptions[name])
    if name not in BY_NAME:
        near = difflib.get_close_matches(name, [*BY_NAME, *assumptions], n=3, cutoff=0.5)
        raise UsageError(
            f"there is no kind {text!r}",
            correction=f"did you mean {' or '.join(near)}?" if near else "`pipesim explain` lists them all",
        )
    return _report(BY_NAME[name])


def _assumption(kind: Assumption) -> AssumptionReport:
    text = ASSUMPTIONS[kind]
    measured = _with_tries(text.measured, kind.value)
    return AssumptionReport(kind.value, text.clause, text.what, text.relies, measured, kind.switch, strict_words(kind))


def _with_tries(text: str, name: str) -> str:
    """A text with what trials on a GPU have shown."""
    tried = never_seen(name)
    return f"{text} On trial it was {tried}." if tried else text


def _report(kind: FindingKind) -> KindReport:
    written, example, corrected = _example(kind)
    return KindReport(
        kind.name, kind.title, kind.warns, kind.traps, kind.what, _with_tries(kind.shows, kind.name), kind.corrected,
        kind.switches,
        kind.ptx, kind.certainty, written, example, corrected,
    )  # fmt: skip


def _example(kind: FindingKind) -> tuple[ExampleForm, str, str]:
    match kind.example:
        case ProtocolExample() as protocol:
            return ExampleForm.PROTOCOL, protocol.text(kind.name).rstrip("\n"), ""
        case FlatExample() as flat:
            return ExampleForm.OPERATIONS, flat.wrong, flat.right
        case PtxExample() as ptx:
            return ExampleForm.PTX, ptx.wrong, ptx.right
        case other:
            assert_never(other)
