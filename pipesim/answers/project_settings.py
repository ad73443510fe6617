"""``[tool.pipesim]`` of ``pyproject.toml``: what a project checks, what fails there, and what it ignores."""

import os
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from glob import escape
from pathlib import Path
from typing import Any

from pipesim.answers.views.check import CheckReport, CheckStep, Counterexample
from pipesim.answers.views.conclusion import Basis
from pipesim.bounds import MAX_SOURCE_BYTES
from pipesim.errors import UsageError
from pipesim.findings.waivers import (
    BASELINE,
    Identity,
    Waiver,
    baseline_text,
    comments_at,
    identity_of,
    ignored,
    kind_of,
    read_baseline,
)
from pipesim.inputs import InputKind
from pipesim.model.finding import FaultReport, Verdict

TextOf = Callable[[str], str]  #: the text of a source line ``file:number``, "" of one that cannot be read


@dataclass(frozen=True)
class TriagePolicy:
    """Findings less sure than ``fail_on`` do not fail; nor do those that a waiver matches.

    ``baseline``: a waiver for each finding that was there before, of a ``file``; ``update``: it is to be written, so
    that whatever is found is in it. ``project``: waivers of the settings, which are about all of the project's targets;
    ``whole``: these are checked.
    """

    fail_on: Basis = Basis.POSSIBLE
    waivers: tuple[Waiver, ...] = ()
    project: tuple[Waiver, ...] = ()
    whole: bool = False
    baseline: tuple[Waiver, ...] = ()
    file: Path | None = None
    update: bool = False


class Triage:
    """The triage of the reports of one command, so that it is known in the end which waivers matched nothing.

    ``text_of`` is that of a line without its comment, ``whole_text_of`` with it.
    """

    def __init__(self, policy: TriagePolicy, text_of: TextOf, whole_text_of: TextOf) -> None:
        self._policy = policy
        self._text_of = text_of
        self._whole_text_of = whole_text_of
        self._used: set[Waiver] = set()
        self._comments: dict[Waiver, None] = {}
        self._functions: set[str] = set()
        self._found: list[Identity] = []  # without those that another waiver sets aside
        self._complete = True

    def of(
        self,
        report: CheckReport,
        lines: Sequence[str],
        *,
        last: bool = False,
        beside: Callable[[], CheckReport] | None = None,
    ) -> CheckReport:
        """The report with its findings looked up; the ``last`` one says which waivers matched nothing.

        ``lines``: those that the program has, where comments may stand. ``beside``: the report and findings at other
        lines, also of those that one change corrects: asked for where each that is known is set aside.
        """
        places = (line for shown in report.refutations for line in (shown.place, shown.origin.call))
        comments = comments_at((*lines, *places), self._whole_text_of)
        self._comments |= dict.fromkeys(comments)
        waivers = (*comments, *self._policy.waivers, *self._policy.project, *self._policy.baseline)
        function, again = report.heading.protocol, Counter[Identity]()
        found: list[Counterexample] = []
        for shown in report.refutations:
            text = self._text_of(shown.origin.call or shown.place)
            other = shown.finding.other_line if isinstance(shown.finding, FaultReport) else ""
            text += f" | {self._text_of(other)}" if other not in ("", shown.place) else ""
            plain = identity_of(shown.finding, function, shown.names, text)
            identity = replace(plain, nth=again[plain])
            again[plain] += 1
            at = (shown.place, other, shown.origin.call)
            waiver = next((each for each in waivers if each.matches(identity, at)), None)
            self._used |= {each for each in waivers if each.matches(identity, at)}
            if waiver is None or waiver.identity is not None:
                self._found.append(identity)
            if waiver is None and self._policy.update:
                waiver = Waiver(identity.kind, f"baseline {self._policy.file}", identity=identity)
            found.append(replace(shown, identity=identity, waived=waiver))
        if _has_all_findings(report):
            self._functions.add(function)
        else:
            self._complete = False
        known = replace(
            report, refutations=tuple(found), fail_on=self._policy.fail_on, unused=self.unused() if last else ()
        )
        if beside is not None and known.waived and not known.failing:
            return self.of(beside(), lines, last=last)
        return known

    def unused(self) -> tuple[Waiver, ...]:
        """The waivers that matched nothing (of a baseline: of functions that were checked); () if it is not known."""
        given = (*self._comments, *self._policy.waivers, *(self._policy.project if self._policy.whole else ()))
        checked = self._functions if not self._policy.update else set()
        old = (each for each in self._policy.baseline if each.identity and each.identity.function in checked)
        return tuple(each for each in (*given, *old) if each not in self._used) if self._complete else ()

    def give_up(self) -> None:
        """Something was not checked: which waivers match nothing is not known."""
        self._complete = False

    def baseline(self) -> str:
        """The baseline as it is now: of functions that were not checked what it had before."""
        old = (each.identity for each in self._policy.baseline if each.identity is not None)
        return baseline_text([*self._found, *(each for each in old if each.function not in self._functions)])


def _has_all_findings(report: CheckReport) -> bool:
    """Whether a finding that is not in the report was looked for."""
    left = {each.step for each in report.left_out} & {CheckStep.CTAS, CheckStep.HIDDEN, CheckStep.OTHERS}
    return report.verdict is Verdict.PROVED or (report.verdict is Verdict.REFUTED and not left)


FILE = "pyproject.toml"
_TEXT = InputKind("settings file", MAX_SOURCE_BYTES, UsageError, "check the path")
_KEYS = ("targets", "launch", "fail-on", "baseline", "ignore")
_IGNORE_KEYS = ("kind", "pattern", "reason")


@dataclass(frozen=True)
class ProjectSettings:
    """``targets``: what ``check`` takes where a command line names nothing; ``launches``: the launch files of kernels.

    Paths are relative to the current folder. ``ignore``: the waivers, each with a reason.
    """

    targets: tuple[str, ...] = ()
    launches: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fail_on: Basis | None = None
    baseline: Path | None = None
    ignore: tuple[Waiver, ...] = ()

    def launches_of(self, name: str) -> tuple[str, ...]:
        """The launch files of a kernel, () for the one beside it."""
        return self.launches.get(_below(Path(), os.path.relpath(name)), ()) if name.endswith(".ptx") else ()

    def launch_of(self, name: str) -> str:
        """The one launch file of a kernel, "" for the one beside it. UsageError if there are several."""
        files = self.launches_of(name)
        if len(files) > 1:
            raise UsageError(
                f"{name} has {len(files)} launch files", place=FILE, correction=f"give --launch {files[0]}"
            )
        return next(iter(files), "")


def read_settings(folder: Path) -> ProjectSettings:
    """Those of the nearest ``pyproject.toml`` at or above a folder, which are none where it has no such table.

    UsageError for a key that there is not, or a value of another type.
    """
    path = next((each / FILE for each in (folder, *folder.parents) if (each / FILE).is_file()), None)
    if path is None:
        return ProjectSettings()
    text = _TEXT.read_text(path)
    if "tool.pipesim" not in text and "[tool]" not in text:
        return ProjectSettings()
    try:
        tool = tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not TOML", cause=str(error)) from error
    given = tool.get("pipesim", {}) if isinstance(tool, dict) else {}
    return settings_of(given, str(path), Path(os.path.relpath(path.parent)))


def settings_of(given: object, place: str, folder: Path) -> ProjectSettings:
    """The settings of a table; ``folder``: that of the file, which its paths are relative to."""
    table = _table(given, _KEYS, place)
    given_launches = _table(table.get("launch", {}), None, place, "launch")
    launches = {name: [each] if isinstance(each, str) else each for name, each in given_launches.items()}
    level, baseline = table.get("fail-on"), table.get("baseline")
    levels = {basis.value: basis for basis in Basis}
    if level is not None and level not in levels:
        raise _wrong("fail-on", f"one of {', '.join(levels)}", level, place)
    if baseline is not None and not isinstance(baseline, str):
        raise _wrong("baseline", "the name of a file", baseline, place)
    if not all(isinstance(files, list) and all(isinstance(e, str) for e in files) for files in launches.values()):
        raise _wrong("launch", "the name of a file for each kernel, or a list of names", given_launches, place)
    ignore = table.get("ignore", [])
    if not isinstance(ignore, list):
        raise _wrong("ignore", "a list of tables", ignore, place)
    return ProjectSettings(
        targets=tuple(each for pattern in _texts(table, "targets", place) for each in _expand(folder, pattern, place)),
        launches=_launches(folder, launches, place),
        fail_on=levels.get(str(level)),
        baseline=folder / baseline if baseline is not None else None,
        ignore=tuple(_waiver(each, place) for each in ignore),
    )


def policy_of(
    settings: ProjectSettings,
    *,
    fail_on: str | None = None,
    strict: bool = False,
    ignores: Sequence[str] = (),
    baseline: Path | None = None,
    update: bool = False,
    whole: bool = False,
) -> TriagePolicy:
    """What fails: as a command line says, else the settings. ``strict``: a rule was asked for that is of the letter.

    ``baseline``: that of the command line, else that of the settings is read, unless it is to be written (``update``)
    and is not there. ``whole``: all targets of the settings are checked. UsageError where it cannot be read.
    """
    level = Basis(fail_on) if fail_on is not None else settings.fail_on
    path = baseline or settings.baseline
    if update and path is None:
        raise UsageError("--update-baseline writes the file of --baseline", correction="give it as well")
    known = path is not None and not (update and not path.exists())
    if path is not None and known and not path.exists():
        raise UsageError(f"there is no baseline {path}", correction="--update-baseline writes what is found to it")
    return TriagePolicy(
        level or (Basis.LETTER if strict else Basis.POSSIBLE),
        tuple(map(ignored, ignores)),
        settings.ignore,
        whole,
        read_baseline(BASELINE.read_text(path), str(path)) if path is not None and known else (),
        path,
        update,
    )


def _waiver(given: object, place: str) -> Waiver:
    table = _table(given, _IGNORE_KEYS, place, "ignore")
    kind, pattern, reason = (table.get(name, "") for name in _IGNORE_KEYS)
    if not kind or not reason or not all(isinstance(each, str) for each in (kind, pattern, reason)):
        raise _wrong("ignore", 'tables with texts, as { kind = "race", pattern = "tile", reason = "…" }', given, place)
    return Waiver(kind_of(kind, place), f"{FILE}: {kind}{f':{pattern}' if pattern else ''}", reason, pattern)


def _table(given: object, keys: Sequence[str] | None, place: str, name: str = "") -> Mapping[str, Any]:
    where = f"tool.pipesim{f'.{name}' if name else ''}"
    if not isinstance(given, dict):
        raise _wrong(name or where, "a table", given, place)
    for key in given if keys is not None else ():
        if key not in (keys or ()):
            near = get_close_matches(key, keys or (), n=1, cutoff=0.4)
            raise UsageError(
                f"[{where}] has no key {key!r}",
                place=place,
                correction=f"did you mean {near[0]}?" if near else f"its keys are {', '.join(keys or ())}",
            )
    return given


def _texts(table: Mapping[str, Any], name: str, place: str) -> list[str]:
    given = table.get(name, [])
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise _wrong(name, "a list of texts", given, place)
    return given


def _wrong(name: str, wanted: str, given: object, place: str) -> UsageError:
    return UsageError(f"tool.pipesim: {name} takes {wanted}, not {given!r}", place=place)


def _below(folder: Path, name: str) -> str:
    return (folder / name).as_posix()


def _launches(folder: Path, given: Mapping[str, Sequence[str]], place: str) -> dict[str, tuple[str, ...]]:
    """The launch files of each kernel; ``{kernel}`` in one is the kernel's name. One that is named precedes patterns.

    UsageError where nothing matches, for the kernels or the files of one.
    """
    found: dict[str, tuple[str, ...]] = {}
    for name in sorted(given, key=_is_pattern):
        for kernel in _expand(folder, name, place, "kernel"):
            if kernel not in found:
                patterns = [each.replace("{kernel}", escape(Path(kernel).stem)) for each in given[name]]
                files = [_files(folder, each) for each in patterns]
                found[kernel] = tuple(dict.fromkeys(file for each in files for file in each))
                if not found[kernel]:
                    raise UsageError(f"no file matches the launch {' or '.join(patterns)} of {kernel}", place=place)
    return found


def _is_pattern(text: str) -> bool:
    return any(mark in text for mark in "*?[")


def _files(folder: Path, pattern: str) -> list[str]:
    """The files of a pattern, or the file as it is named."""
    if not _is_pattern(pattern):
        return [_below(folder, pattern)]
    return sorted(path.as_posix() for path in folder.glob(pattern))


def _expand(folder: Path, pattern: str, place: str, what: str = "target") -> list[str]:
    """The files of a pattern, or the target as it is: ``file.py``, ``file.py:function``, a built-in name."""
    if _is_pattern(pattern):
        found = _files(folder, pattern)
        if not found:
            raise UsageError(f"no file matches the {what} {pattern}", place=place)
        return found
    return [_below(folder, pattern) if "." in pattern or "/" in pattern else pattern]
