"""The tests of a protocol's file and of a kernel: one for each function and its cases, one for each launch."""

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pipesim.answers.budget import Budget, states_of
from pipesim.answers.check import check
from pipesim.answers.project_settings import Triage, policy_of, read_settings
from pipesim.answers.views.check import CheckReport
from pipesim.answers.views.conclusion import Conclusion
from pipesim.errors import ParameterError, PipesimError
from pipesim.model.coverage import LENIENT, Strictness, strictness_from
from pipesim.process.limits import LimitReachedError, limit_error
from pipesim.process.watch import Watch
from pipesim.ptx.source_files import lines_read_from
from pipesim.pytest_plugin.failure import NotProvedError, failure_of
from pipesim.report.text.source import text_of, whole_text_of
from pipesim.targets import Target, find, protocols_of

MARKER = "pipesim"


@dataclass(frozen=True)
class Case:
    """One test of a protocol: its parameters, and how it is checked.

    ``ctas``: of the launch, None for one cluster. ``time_limit`` in seconds and ``max_states``: None for the usual.
    """

    params: Mapping[str, int]
    ctas: int | None = None
    time_limit: float | None = None
    max_states: int | None = None
    strictness: Strictness = LENIENT

    @property
    def name(self) -> str:
        """``stages=2-tiles=5``; "" for the defaults."""
        return "-".join(f"{name}={value}" for name, value in self.params.items())


def cases_of(marks: Iterable[pytest.Mark]) -> list[Case]:
    """The cases of all markers, each once; that of the defaults where there is no marker.

    ParameterError for a marker with a value that is not what its name takes.
    """
    found = [case for mark in marks if mark.name == MARKER for case in _of_mark(mark)]
    return list({(case.name, case.strictness, case.ctas): case for case in found or [Case({})]}.values())


def _of_mark(mark: pytest.Mark) -> list[Case]:
    if mark.args:
        raise ParameterError(
            f"the marker pipesim takes no {mark.args[0]!r}",
            cause="its parameters are given by name",
            correction="for example @pytest.mark.pipesim(stages=2, tiles=[1, 5])",
        )
    given = dict(mark.kwargs)
    case = Case(
        {},
        ctas=_whole(given, "ctas"),
        time_limit=_seconds(given, "time_limit"),
        max_states=_whole(given, "max_states"),
        strictness=strictness_from(given.pop("strict", ())),
    )
    values = [_values(name, each) for name, each in given.items()]
    return [replace(case, params=dict(zip(given, chosen, strict=True))) for chosen in itertools.product(*values)]


def _values(name: str, given: object) -> Sequence[int]:
    values: list[object] = list(given) if isinstance(given, list | tuple | range) else [given]
    found = [value for value in values if type(value) is int]
    if len(found) < len(values):
        wrong = next(value for value in values if type(value) is not int)
        raise ParameterError(
            f"the marker pipesim: {name} takes a whole number or a list of them, not {wrong!r}",
            correction=f"for example {name}=[1, 5]",
        )
    return found


def _whole(given: dict[str, object], name: str) -> int | None:
    value = given.pop(name, None)
    if value is None or (type(value) is int and value > 0):
        return value
    raise ParameterError(f"the marker pipesim: {name} takes a whole number above 0, not {value!r}")


def _seconds(given: dict[str, object], name: str) -> float | None:
    value = given.pop(name, None)
    if value is None or (type(value) in (int, float) and 0 < value < math.inf):  # type: ignore[operator]
        return value  # type: ignore[return-value]
    raise ParameterError(f"the marker pipesim: {name} takes a number of seconds above 0, not {value!r}")


class ProtocolFile(pytest.File):
    """A Python file whose functions make protocols. It is run in this process, as a file of tests is."""

    def collect(self) -> Iterator[pytest.Item]:
        """A test for each function and each case that its markers ask for."""
        try:
            found = protocols_of(_short(self.path))
            if not found:
                find(str(_short(self.path)))  # which raises, and says what the file has instead
            for target in found:
                yield from self._tests(target)
        except PipesimError as error:
            raise self.CollectError(str(error)) from error

    def _tests(self, target: Target) -> Iterator[pytest.Item]:
        function = target.function
        assert function is not None, "a file has functions"
        name = target.name.rpartition(":")[2]
        marks = _marks_of(function)
        for case in cases_of(marks):
            item = CheckItem.from_parent(
                self,
                name=f"{name}[{case.name}]" if case.name else name,
                target=lambda: target,
                case=case,
                line=function.__code__.co_firstlineno - 1 if hasattr(function, "__code__") else None,
            )
            for mark in marks:
                item.add_marker(getattr(pytest.mark, mark.name).with_args(*mark.args, **mark.kwargs))
            yield item


class KernelFile(pytest.File):
    """A kernel's PTX with its launch files: a test for each launch."""

    def collect(self) -> Iterator[pytest.Item]:
        """A test for each launch file; without one the test says what to do about it."""
        for launch in launches_of(self.path, self.config) or [self.path.with_suffix(".json")]:
            yield CheckItem.from_parent(
                self, name=launch.stem, target=_kernel(_short(self.path), _short(launch)), case=Case({})
            )


def launches_of(kernel: Path, config: pytest.Config) -> list[Path]:
    """The launch files that the project names for a kernel, else those beside it."""
    return list(map(Path, read_settings(config.rootpath).launches_of(str(kernel)))) or launch_files(kernel)


def launch_files(kernel: Path) -> list[Path]:
    """``NAME.json`` and ``NAME-2.json``, ``NAME-3.json`` beside ``NAME.ptx``, as ``pipesim launches`` writes them.

    Not those of another kernel, which has a PTX file of this name.
    """
    numbered = re.compile(rf"{re.escape(kernel.stem)}(?:-(\d+))?")
    found = [
        (int(match[1] or 1), path)
        for path in kernel.parent.glob("*.json")
        if (match := numbered.fullmatch(path.stem))
        and (path.stem == kernel.stem or not path.with_suffix(".ptx").exists())
    ]
    return [path for _, path in sorted(found)]


class CheckItem(pytest.Item):
    """One protocol or launch at one choice of parameters: it passes where every schedule is proved to be right.

    ``target`` gives what is checked when the test runs; ``line``: where it is defined, counted from 0.
    """

    def __init__(self, *, target: Callable[[], Target], case: Case, line: int | None = None, **more: Any) -> None:
        super().__init__(**more)
        self._target = target
        self._case = case
        self._line = line

    def runtest(self) -> None:
        """Check it. NotProvedError with the report, PipesimError where there is nothing to check."""
        report = self._check_protocol()
        if report.conclusion is not Conclusion.AGREES:
            raise NotProvedError(report)

    def _check_protocol(self) -> CheckReport:
        case = self._case
        seconds = case.time_limit or self.config.getoption("--pipesim-time-limit")
        policy = policy_of(read_settings(self.config.rootpath), strict=bool(case.strictness))
        triage = Triage(policy, text_of, whole_text_of)
        with Watch(signals=()) as watch:  # of signals pytest has its own idea
            try:
                watch.start(seconds)
                target = self._target().with_strictness(case.strictness)
                program = target.build(case.params, grid=case.ctas)
                most = states_of(case.max_states, program)
                again = partial(
                    check, target, case.params, max_states=most, ctas=case.ctas, most_ranges=0, program=program,
                    budget=Budget(seconds),
                )  # fmt: skip
                report = again()
                watch.stop()
            except LimitReachedError as reached:
                raise limit_error(reached) from None
        with lines_read_from(target.sources):
            return triage.of(report, program.sources, beside=partial(again, beside=True))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The finding, its verdict first; an error of pipesim's in its four parts; anything else with its traceback."""
        short = self.config.getoption("tbstyle") == "line"
        return failure_of(excinfo.value, self.path, self._line, short=short) or super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The file and the line of what is checked."""
        return self.path, self._line, self.name


def _kernel(path: Path, launch: Path) -> Callable[[], Target]:
    """What reads the kernel; the launch file beside it need not be named, and so is not in the commands of a report."""
    return lambda: find(str(path), launch="" if launch.stem == path.stem else str(launch))


def _marks_of(function: object) -> list[pytest.Mark]:
    """The marks of a function, in the order in which they were applied."""
    found = getattr(function, "pytestmark", [])
    return [each for each in found if isinstance(each, pytest.Mark)]


def _short(path: Path) -> Path:
    """As a person would type it: relative where it lies below the current folder."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
