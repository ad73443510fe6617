"""How sure a finding is and whose it is, what has to be late for it, and which findings are waived, in words."""

from pipesim.answers.views.check import CheckReport, Counterexample
from pipesim.answers.views.conclusion import Basis
from pipesim.findings.kind import Owner
from pipesim.findings.trials import never_seen
from pipesim.findings.waivers import Waiver, kind_name
from pipesim.prove.counterexample.late import Late
from pipesim.report.text.words import count, listed, number, place

MOST_NAMED = 6  #: waived findings of a sentence


def sureness_words(shown: Counterexample) -> list[str]:
    """``possible: load is held up for 1 lap of full``, and whose the line is; the rest says :func:`basis_words`."""
    said: list[str] = []
    match shown.basis:
        case Basis.POSSIBLE:
            late = f": {late_words(shown.late)}" if shown.late is not None else ""
            said.append(f"possible, in a schedule that PTX permits{late}")
        case Basis.LETTER:
            tried = never_seen(kind_name(shown.finding).replace("-", "_"))
            seen = "; it was " * bool(tried) + tried
            said.append(f"by the letter: PTX leaves it undefined, and no measured hardware does it{seen}")
        case Basis.CERTAIN:
            pass
    return [*said, *owner_words(shown)]


def basis_words(shown: Counterexample) -> list[str]:
    """What :func:`sureness_words` leaves out: that it is certain, that the line is the user's."""
    certain = ["certain"] if shown.basis is Basis.CERTAIN else []
    return [*certain, *(["your line"] if shown.place and not owner_words(shown) else [])]


def owner_words(shown: Counterexample) -> list[str]:
    """Whose the line is, where it is not the user's."""
    match shown.origin.owner:
        case Owner.LIBRARY:
            return ["the line is a library's"]
        case Owner.COMPILER:
            return ["the instruction is the compiler's: it has no line of the source"]
        case Owner.USER:
            return []


def late_words(late: Late) -> str:
    """What has to be late, and how long."""
    what = f"a transfer of {late.agent}" if late.transfer else late.agent
    at = f" at {place(late.line)}" if late.line else ""
    if late.group:
        return f"{what} is held up{at} for {count(late.laps, 'lap')} of {late.group}"
    return f"{what} is held up{at} while others make {count(late.moves, 'move')}"


def waived_words(report: CheckReport) -> str:
    """``1 finding waived (stale-wait at ring.py:20: the reason)``; "" if none is."""
    named = [_named(shown) for shown in report.waived]
    if not named:
        return ""
    more = [f"{number(len(named) - MOST_NAMED)} more"] if named[MOST_NAMED:] else []
    return f"{count(len(named), 'finding')} waived ({'; '.join([*named[:MOST_NAMED], *more])})"


def _named(shown: Counterexample) -> str:
    why = shown.waived.reason or shown.waived.said if shown.waived is not None else ""
    at = f" at {place(shown.place)}" if shown.place else ""
    return f"{kind_name(shown.finding)}{at}: {why}"


def spared_words(report: CheckReport) -> str:
    """The findings that do not fail the check: those waived, and those not sure enough; "" if there are none."""
    below = [shown for shown in report.refutations if shown.waived is None and not shown.basis.fails(report.fail_on)]
    kinds = listed(list(dict.fromkeys(f"{kind_name(shown.finding)}, {shown.basis.value}" for shown in below)))
    weak = f"{count(len(below), 'finding')} less sure than --fail-on {report.fail_on.value} ({kinds})" if below else ""
    return " and ".join(filter(None, (waived_words(report), weak)))


def unused_words(waiver: Waiver) -> str:
    """A waiver that matches no finding."""
    if waiver.identity is not None:
        named = f"{waiver.identity.kind} of {waiver.identity.role} in {waiver.identity.function}"
        text = f" at {waiver.identity.text!r}" if waiver.identity.text else ""
        return f"{waiver.said}: {named}{text} is not found any longer"
    what = f"ignore[{waiver.kind}]" if waiver.line else ""
    return f"{' '.join(filter(None, (place(waiver.said) if waiver.line else waiver.said, what)))} matches no finding"
