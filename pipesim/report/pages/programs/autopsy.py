"""``pipesim autopsy``: the launches of a core dump, their CTAs by the state they hang in, and who waits for whom."""

from collections.abc import Mapping, Sequence
from typing import assert_never

from pipesim.answers.views.autopsy import (
    UNKNOWN_LANES,
    UNKNOWN_PLACE,
    AutopsyReport,
    AwaitedWord,
    DumpedCtas,
    DumpedLaunch,
    PredictedHang,
    WordWriter,
    WriterState,
)
from pipesim.answers.views.check import Brief
from pipesim.answers.views.launches import DumpsAlike, HangCause, HangReport, ProcessDump
from pipesim.model.finding import Deadlock, Verdict
from pipesim.model.tables import number_runs
from pipesim.ptx.names.paths import kernel_name
from pipesim.report.findings.brief import shortened
from pipesim.report.findings.examination import barrier_lines
from pipesim.report.findings.finding import claim_of, deadlock_lines, headline, led_past_words, names_of
from pipesim.report.pages.checks.check import correction_lines
from pipesim.report.text.console import BAD, GOOD, UNSURE, mark
from pipesim.report.text.layout import middle, wrap, wrap_parts
from pipesim.report.text.source import command_lines, with_hint, with_source
from pipesim.report.text.words import count, listed, number, place

_MOST_GROUPS = 4
_MOST_WORDS, _MOST_WRITERS = 4, 4
_LONGEST = 30  #: characters of the numbers of CTAs


def autopsy_lines(report: AutopsyReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells."""
    lines: list[str] = []
    several = any(each.device for each in report.launches)
    for launch in report.launches:
        lines += [*([""] if lines else []), *_launch_lines(launch, width, several=several)]
    for word in report.words[:_MOST_WORDS]:
        lines += ["", *_word_lines(word, report, width)]
    for note in report.notes:
        lines += ["", *wrap(f"of the dump, {note}", width, f"{UNSURE} ")]
    return with_hint([*lines, "", *_verdict(report, width)], width)


def _word_lines(word: AwaitedWord, report: AutopsyReport, width: int) -> list[str]:
    """A word of global memory that is waited for: what it holds, what it should, and who could store that."""
    kernels = _kernels(report)
    first = word.waits[0]
    of = f" of {kernels[first.launch]}" if len(kernels) > 1 else ""
    has = f", which is {word.value}" if word.value else ""
    what = f"the {'lock' if word.lock else 'word'} {word.name} in global memory"
    lines = wrap(f"{what}{of}{has}", width, "  ", "    ")
    for wait in word.waits[:_MOST_GROUPS]:
        who = _ctas(wait.launch, wait.ctas, kernels)
        for_what = f"it to be {wait.wanted}" if wait.wanted else "it"
        said = f"{wait.warp} of {who} {'wait' if len(wait.ctas) > 1 else 'waits'} for {for_what}"
        lines += with_source(said, wait.line, width, "    ", "      ")
    if len(word.waits) > _MOST_GROUPS:
        lines += wrap(f"and {count(len(word.waits) - _MOST_GROUPS, 'more wait')}", width, "    ")
    for writer in word.writers[:_MOST_WRITERS]:
        lines += wrap(_writer_words(writer, kernels), width, "    ", "      ")
    if not word.writers:
        none = "no store or atomic operation of the kernels in the dump" if word.whole else "none that was found"
        more = "; a kernel that has not begun is not in it" if word.whole else ""
        lines += wrap(f"{none} ends this wait{more}", width, "    ", "      ")
    if word.cycle:
        names = [_ctas(launch, (cta,), kernels) for launch, cta in (*word.cycle, word.cycle[0])]
        lines += wrap(f"circular wait: {' → '.join(names)}", width, "    ", "      ")
    return lines


def _kernels(report: AutopsyReport) -> dict[int, str]:
    """What a sentence calls each launch: its kernel, and which it is if that was launched more than once."""
    named = {each.number: (kernel_name(each.kernel), f" on device {each.device}") for each in report.launches}
    if len(set(named.values())) < len(named):
        named = {each: (name, f" (launch {each + 1})") for each, (name, _) in named.items()}
    every = [name for name, _ in named.values()]
    return {each: name + which if every.count(name) > 1 else name for each, (name, which) in named.items()}


def _ctas(launch: int, ctas: Sequence[int], kernels: Mapping[int, str]) -> str:
    """``CTA 3``, ``CTAs 0 to 2 of writer``."""
    return _named(ctas) + (f" of {kernels[launch]}" if len(kernels) > 1 else "")


def _named(ctas: Sequence[int]) -> str:
    named = number_runs(ctas)
    if len(named) > _LONGEST:
        named = f"{number(ctas[0])} and {count(len(ctas) - 1, 'other')}"
    return f"{'CTA' if len(ctas) == 1 else 'CTAs'} {named}"


def _writer_words(writer: WordWriter, kernels: Mapping[int, str]) -> str:
    """Why those who could store what is waited for do not."""
    who, one = _ctas(writer.launch, writer.ctas, kernels), len(writer.ctas) == 1
    has, takes = ("has", "waits") if one else ("have", "wait")
    value, would = f" {writer.value}" if writer.value and one else "", "would" if writer.sure else "could"
    store = f"store{value}" if not value.startswith(" +") else f"add{value.replace('+', '')}"
    at = f" ({place(writer.line)})" if writer.line else ""
    led = f": the branch at {place(writer.branch)} leads past it" if writer.branch else ""
    match writer.state:
        case WriterState.HOLDS | WriterState.MAY_HOLD:
            held = has if writer.state is WriterState.HOLDS else "may have"
            since = f"{'' if held == has or one else 'one of '}{who} {held} it since {place(writer.taken)}"
            if writer.waits_for:
                back = f"{would} give it back{at}" if writer.line else "does not give it back"
                return f"{since}, and {back}, but {takes} for {writer.waits_for}"
            return f"{since}, and ended without giving it back{at}{led}"
        case WriterState.SKIPPED if writer.waits_for:
            return f"{who} did not {store}{at}{led}"
        case WriterState.SKIPPED:
            return f"{who} {'is' if one else 'are'} not in the dump, and {'does' if one else 'do'} not {store}{at}{led}"
        case WriterState.NOT_BEGUN:
            return f"{who} would {store}{at}, and {has} not begun"
        case WriterState.WOULD:
            but = f", but {takes} for {writer.waits_for}" if writer.waits_for else ""
            return f"{writer.warp} of {who} {would} {store} next{at}{but}"
        case WriterState.DONE:
            all_ = "if the word was 0 at first, that is all that was added"
            return f"{who} {has} ended, and did {store}{at}: {all_}"
        case WriterState.MAY:
            return f"{who} could {store}{at}; whether {'it' if one else 'they'} did is not known: not in the dump"
        case _:
            assert_never(writer.state)


def autopsy_brief(report: AutopsyReport) -> Brief:
    """The report in at most 2 kB: the first hang, with who holds or did not store the word that is waited for."""
    hung = [each for each in report.findings if isinstance(each, Deadlock)]
    kernels = _kernels(report)
    writers = [_writer_words(writer, kernels) for word in report.words for writer in word.writers[:1]]
    lines = dict.fromkeys(place(each.line) for found in hung[:1] for each in found.blocked if each.line)
    predicted = [each.predicted.shown for each in report.launches if each.predicted and each.predicted.shown]
    corrections = [each.said for shown in predicted for each in shown.corrections]

    def made(most: int) -> Brief:
        said = middle(" ".join(" ".join(_verdict(report, 2 * most)).split()[1:]), 2 * most)
        if not hung:
            return Brief("unknown", said)
        claim, at = "; ".join([claim_of(hung[0]), *writers[:1]]), [middle(each, most // 2) for each in lines]
        correction = middle(next(iter(corrections), ""), most)
        return Brief("hangs", said, len(hung), hung[0].kind, "", middle(claim, 2 * most), tuple(at[:2]), correction)

    return shortened(made)


def _launch_lines(launch: DumpedLaunch, width: int, *, several: bool) -> list[str]:
    sizes = [
        f"grid {_shape(launch.grid)} {'CTA' if launch.ctas == 1 else 'CTAs'}",
        f"block {_shape(launch.block)} threads",
    ]
    if launch.cluster != (1, 1, 1):
        sizes.append(f"cluster {_shape(launch.cluster)}")
    device = [f"device {launch.device}"] if several else []
    head = [*sizes, *device, launch.arch, launch.detail.value]
    name = middle(kernel_name(launch.kernel) or "an unknown kernel", width // 2)
    lines = wrap_parts(head, width, f"{name}   ", "  ")
    if not launch.groups:
        return [*lines, "", *wrap("no CTA of it is in the dump: all had ended, or none had begun", width, "  ")]
    gone = launch.ctas - launch.started
    if gone > 0:
        are, they = ("CTA of it is", "it") if gone == 1 else ("CTAs of it are", "they")
        lines += wrap(f"{number(gone)} {are} not in the dump: {they} had ended, or had not begun", width, "  ")
    for group in launch.groups[:_MOST_GROUPS]:
        lines += ["", *_group_lines(launch, group, width)]
    if launch.predicted is not None:
        lines += _predicted_lines(launch.predicted, width)
    if len(launch.groups) > _MOST_GROUPS:
        rest = sum(each.ctas for each in launch.groups[_MOST_GROUPS:])
        lines += ["", *wrap(f"and {count(rest, 'more CTA')}, in other states", width, "  ")]
    return lines


def _predicted_lines(found: PredictedHang, width: int) -> list[str]:
    """Whether check finds this hang, in its own words, and how to ask it for more."""
    lines, shown = [], found.shown
    if found.reason:
        lines = wrap(f"not checked: {found.reason}", width, f"{UNSURE} ")
    elif shown is not None and isinstance(shown.finding, Deadlock):
        others = "while a warp waits for global memory, all others" if found.spins else "all warps"
        said = f"{'check predicts' if found.by_check else 'its PTX reaches'} this hang: {others} wait for the same"
        if not found.replayed:
            said = f"its PTX reaches another hang: {number(found.same)} of {count(found.of, 'warp')} wait for the same"
        lines = wrap(said, width, f"{GOOD if found.replayed else UNSURE} ")
        past = shown.finding.led_past
        lines += [] if past or found.spins else wrap(claim_of(shown.finding), width, "  ", "    ")
        for each in past:
            lines += with_source(led_past_words(each), each.line, width, "  ", "    ")
        lines += correction_lines(shown, width)
    if found.assumes:
        lines += wrap(f"check assumes that {'; '.join(found.assumes)}", width, f"{UNSURE} ")
    if not (found.reason or found.by_check or found.spins) and (shown is not None or not found.files):
        does = "refutes it otherwise" if found.verdict is Verdict.REFUTED else "does not predict this hang"
        lines += wrap(f"check {does}: its verdict is {found.verdict.value}", width, f"{UNSURE} ")
    if found.files:
        lines += command_lines("  see: ", ["pipesim", "check", found.files[0]], width, whole=True)
    return ["", *lines]


def _group_lines(launch: DumpedLaunch, group: DumpedCtas, width: int) -> list[str]:
    lines = wrap(_which(launch, group), width, "  ")
    if any(each.waiting or each.pending != each.count for each in group.barriers):
        lines += ["", *barrier_lines(group.barriers, width, "parity")]
    if group.hangs:
        lines += ["", *headline(group.deadlock, width), "", *deadlock_lines(group.deadlock, width)]
    elif group.deadlock.blocked and group.stopped:
        said = "an exception stopped the kernels: whether these waits would have ended is not known"
        lines += ["", *wrap(said, width, f"{UNSURE} "), "", *deadlock_lines(group.deadlock, width)]
    elif group.deadlock.blocked:
        known = all(each.does not in (UNKNOWN_PLACE, UNKNOWN_LANES) for each in group.others)
        runs = "a warp runs" if known else "where a warp waits is not known"
        said = f"not known to hang: {runs}, so that what the others wait for may come"
        lines += ["", *wrap(said, width, f"{UNSURE} "), "", *deadlock_lines(group.deadlock, width)]
    for each in group.others:
        does = f"stopped by an exception: {each.exception}" if each.exception else each.does
        lines += with_source(f"{names_of(each.warps)}: {does}", each.line, width, "  ", "      ")
    return lines


def _which(launch: DumpedLaunch, group: DumpedCtas) -> str:
    """``CTA 37 of 64``; CTAs that hang alike are shown together."""
    alike = ", all in the same state" if group.ctas > 1 else ""
    return f"{_named(group.numbers)} of {number(launch.ctas)}{alike}"


def _shape(shape: Sequence[int]) -> str:
    """``8``, ``8 × 4``: without sizes of 1 at the end."""
    sizes = [number(n) for n in shape]
    while len(sizes) > 1 and sizes[-1] == "1":
        sizes.pop()
    return " × ".join(sizes)


def _verdict(report: AutopsyReport, width: int) -> list[str]:
    hung = [each for each in report.launches if any(group.hangs for group in each.groups)]
    for launch, each in report.exceptions[:1]:
        more = count(len(report.exceptions) - 1, "more exception")
        at = f" ({place(each.line)})" if each.line else ""
        said = f"{middle(kernel_name(launch.kernel), width // 2)}: {each.exception}{at}"
        said += f", and {more}" if len(report.exceptions) > 1 else ""
        return wrap(f"stopped by an exception, and no hang: {said}", width, f"{BAD} ")
    if not hung:
        runs = any(group.others for launch in report.launches for group in launch.groups)
        said = "in each CTA a warp runs, or it is not known where it waits" if runs else "no warp is in the dump"
        return wrap(f"unknown: {said}", width, f"{UNSURE} ")
    kernels = _kernels(report)
    names = ", ".join(dict.fromkeys(kernels[each.number] for each in hung))
    return wrap(f"hangs: {names}", width, f"{BAD} ")


def hang_lines(report: HangReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells."""
    if report.cause is None and not report.dumps:
        return []  # the program ended by itself, and has said what it has to say
    lines = wrap(hang_sentence(report), width, f"{mark(ok=False)} ")
    for each in report.dumps:
        lines += wrap(_words(each), width, "  ", "    ")
    for group in report.alike:
        lines += ["", *_dump_lines(group, width, alone=len(report.dumps) == 1)]
    return lines


def hang_sentence(report: HangReport) -> str:
    """Why the program was dumped, and how many dumps there are."""
    if report.cause is None:
        return f"an exception stopped the program: {len(report.complete)} of {count(len(report.dumps), 'core dump')}"
    why = report.cause.value
    if report.cause is HangCause.STOOD_STILL:
        why += f" for {report.seconds:g} s"
    return f"the program hung, and was ended ({why}): {len(report.complete)} of {count(len(report.dumps), 'core dump')}"


def _words(dump: ProcessDump) -> str:
    rank = f", rank {dump.rank}" if dump.rank else ""
    return f"process {dump.process}{rank}: {dump.nbytes / 1e6:,.1f} MB, {dump.end.value}: {dump.file}"


def _dump_lines(group: DumpsAlike, width: int, *, alone: bool) -> list[str]:
    """``ranks 0 and 2 are in the same state``, and the autopsy."""
    several = len(group.dumps) > 1
    head = f"{_names(group.dumps)} {'are in the same state' if several else 'is in this state'}"
    lines = [] if alone else [*wrap(head, width), ""]
    if group.autopsy is None:
        return [*lines, *wrap(f"cannot be read: {group.problem}", width, f"{UNSURE} ")]
    return [*lines, *autopsy_lines(group.autopsy, width)]


def _names(dumps: Sequence[ProcessDump]) -> str:
    noun = "rank" if all(each.rank for each in dumps) else "process"
    names = [each.rank if noun == "rank" else str(each.process) for each in dumps]
    plural = "" if len(dumps) == 1 else "s" if noun == "rank" else "es"
    return f"{noun}{plural} {listed(names)}"
