"""Kernels that were found in a path: the launch of each, known or guessed, and verdicts, which are kept.

A kept verdict is a file in ``$XDG_CACHE_HOME/pipesim/verdicts``, whole or not there, under the hash of everything that
it depends on: PTX, launch, options, sources, and pipesim itself. Its first line is the hash of the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pipesim.answers.spread import spread
from pipesim.answers.views.conclusion import exit_code
from pipesim.answers.views.kernels import KernelRow
from pipesim.bounds import MAX_LAUNCH_BYTES
from pipesim.errors import LaunchFileError, LimitError, PipesimError, UsageError
from pipesim.inputs import InputKind, source_roots
from pipesim.launches.files.embedded_ptx import FoundKernel
from pipesim.model.coverage import Strictness
from pipesim.model.finding import Verdict
from pipesim.process.files import cache_folder, write_whole
from pipesim.process.watch import current
from pipesim.ptx.names.paths import kernel_name

if TYPE_CHECKING:  # what a list of kernels, and one of known verdicts, do without
    from pipesim.answers.project_settings import TriagePolicy
    from pipesim.ptx.launch.values import Launch
    from pipesim.targets import Target

_BESIDE = InputKind("JSON file", MAX_LAUNCH_BYTES, LaunchFileError, "give what the compiler wrote")
_KEPT = InputKind("kept verdict", 1 << 16, UsageError, "remove it")
_MOST_KEPT = 8_192
_SIGNATURE, _ARGUMENT = re.compile(r"tt\.func public @[^\n]*"), re.compile(r"[(,] ?%([\w.]+): ")
_SCRATCH = ("global_scratch", "profile_scratch")  #: the last parameters of a Triton kernel
_SOURCE = re.compile(r'^\s*\.file\s+\d+\s+"([^"]+)"', re.MULTILINE)


class LaunchBeside(NamedTuple):
    """A JSON file beside a PTX file: a launch file, or what Triton says, with the line that names the parameters."""

    file: str = ""
    text: str = ""
    is_launch: bool = False
    signature: str | None = None
    said: str = ""  #: of a launch that was made for a function
    guessed: str = ""  #: what of that is guessed
    other: str = ""  #: the launch with other guesses
    words: tuple[str, ...] = ()  #: the options that it was made by
    written: tuple[str, ...] = ()  #: sizes of the launches in a source, as ``--set`` has them


#: How kernels are checked: the last five members of a question.
HowChecked = tuple["Strictness", "int | None", "float | None", "TriagePolicy", "tuple[Path, ...]"]


@dataclass(frozen=True)
class FoundQuestion:
    """A kernel in one launch, as a command names it, and how it is to be checked; ``policy``: what fails."""

    path: str
    kernel: FoundKernel
    known: LaunchBeside
    sets: tuple[str, ...]
    strictness: Strictness
    max_states: int | None
    time_limit: float | None
    policy: TriagePolicy
    roots: tuple[Path, ...]

    @property
    def row(self) -> KernelRow:
        """What is known of it before it is checked."""
        kernel = self.kernel
        title = kernel_name(kernel.name, arguments=True) if kernel.name else kernel.file.name
        launch = self.known.said or (Path(self.known.file).name if self.known.is_launch else "")
        made = KernelRow(
            kernel.name, title, kernel.origin, kernel.arch, kernel.has_mbarriers, launch, guessed=self.known.guessed
        )
        if kernel.problem:
            return replace(made, said=kernel.problem, exit_code=PipesimError.exit_code)
        said = "no PTX: there is machine code only, and nothing is said of it"
        return made if kernel.text else replace(made, said=said)

    def key(self) -> str:
        """The hash of everything that the verdict depends on, but pipesim itself."""
        folder, (text, named) = self.kernel.file.parent, _digest(self.kernel.text)
        files = [path for each in named for path in (Path(each), folder / each, folder / Path(each).name)]
        strict = sorted(each.value for each in self.strictness)
        known = replace(self, kernel=replace(self.kernel, text=text), strictness=Strictness())
        return sha256(repr((known, strict, Path.cwd(), *stamps(files))).encode()).hexdigest()

    def by_other_guesses(self) -> Target:
        """The kernel in a launch that is guessed otherwise. Raises as below."""
        from pipesim.launches.guess import OTHER

        known = self.known._replace(text=self.known.other) if self.known.is_launch else self.known
        launch, row = replace(self, known=known).launch(OTHER)
        return self.target(launch, row.needs)

    def launch(self, size: int = 0) -> tuple[Launch, KernelRow]:
        """The launch, and the row with what of it is guessed, and needed. PtxError, LaunchFileError, ParameterError."""
        from pipesim.launches.guess import SIZE, with_sizes
        from pipesim.ptx.coverage import missing_options
        from pipesim.ptx.flow.slice import slice_of
        from pipesim.ptx.kernel import open_launch
        from pipesim.ptx.launch.file import read_launch
        from pipesim.ptx.launch.image import Image
        from pipesim.ptx.launch.settings import with_settings
        from pipesim.ptx.text.read import read_module

        kernel, row, guessed = self.kernel, self.row, dict[str, str]()
        module = read_module(kernel.text, self._ptx.name, kernel.name)
        function, launch = open_launch(module, kernel.name, kernel.file)
        if self.known.is_launch:
            launch = read_launch(self.known.text, self.known.file, open_block=True)
        else:
            if self.known.signature is not None:
                launch = _of_triton(launch, _BESIDE.parse_json(self.known.text), self.known.signature)
            launch, guessed = with_sizes(launch, function, size or SIZE, told=self.known.signature is not None)
        launch = with_settings(launch, function, self.sets)
        given = {each.partition("=")[0].partition(".")[0] for each in self.sets}
        asked = {each.partition("=")[0] for each in self.sets[len(self.known.written) :]}
        parts = [" ".join(each for each in self.known.written if each.partition("=")[0] not in asked)]
        parts = [f"{parts[0]} as the source launches it"] if parts[0] else [row.launch] if row.launch else []
        guesses = [name for name in ("grid", "cluster", "block", "shared") if name in guessed.keys() - given]
        decides = row.guessed or ", ".join(guessed[name] for name in guesses if name != "shared")
        needs = [] if all(launch.block) else ["--set block=THREADS"]
        needs += missing_options(Image(launch, function), slice_of(function).wanted)
        parts += [f"{', '.join(guessed[name] for name in guesses)} guessed"] if guesses else []
        return launch, replace(row, launch="; ".join(parts), needs=tuple(needs), guessed=decides)

    @property
    def _ptx(self) -> Path:
        """What the PTX is called."""
        return self.kernel.file if self.kernel.file.suffix == ".ptx" else Path(f"{self.kernel.file}.ptx")

    def target(self, launch: Launch, needs: Iterable[str]) -> Target:
        """The kernel in this launch as a target. Raises PtxError, LaunchFileError or ParameterError."""
        from pipesim.targets import kernel_target

        if not all(launch.block):
            raise LaunchFileError(f"{self.kernel.name} needs {' '.join(needs)}", cause="nothing says its threads")
        words = ("--entry", self.kernel.name, *self.known.words)
        found = kernel_target(self.kernel.text, self._ptx, launch, self.sets, words, self.path)
        return found.with_strictness(self.strictness)


@lru_cache(maxsize=16)
def _digest(text: str) -> tuple[str, tuple[str, ...]]:
    """The hash of a PTX text, of which a library has many kernels, and the source files that it names."""
    return sha256(text.encode()).hexdigest(), tuple(dict.fromkeys(_SOURCE.findall(text)))


def stamps(files: Iterable[Path]) -> Iterator[tuple[str, int, int]]:
    """The files that there are, and when they were changed."""
    for path in files:
        with suppress(OSError, ValueError):
            found = path.stat()
            yield str(path), found.st_size, found.st_mtime_ns


def beside(kernel: FoundKernel) -> Iterator[LaunchBeside]:
    """What says how a kernel is launched: each launch file of it, as ``launches`` writes them, else Triton's words."""
    first = kernel.file.with_suffix(".json")
    numbered = {each.stem.removeprefix(f"{first.stem}-"): each for each in first.parent.glob(f"{first.stem}-*.json")}
    for path in (first, *(numbered[n] for n in sorted(filter(str.isdecimal, numbered), key=int))):
        if kernel.file.suffix == ".ptx" and path.is_file():
            text = _BESIDE.read_text(path)
            try:
                said = _BESIDE.parse_json(text, str(path))
            except PipesimError:
                said = {"format": ""}  # a launch file that is damaged: what is wrong is said where it is read
            known = said if isinstance(said, dict) else {}
            if "format" in known and known.get("entry", kernel.name) == kernel.name:
                yield LaunchBeside(str(path), text, is_launch=True)
            elif path == first and {"num_warps", "shared"} <= known.keys():
                source = path.with_suffix(".source")
                line = _SIGNATURE.search(_BESIDE.read_text(source)) if source.is_file() else None
                yield LaunchBeside(str(path), text, signature=line[0] if line else "")


def _of_triton(launch: Launch, said: dict[str, Any], signature: str) -> Launch:
    """The launch with the boxes, names, cluster and shared memory that Triton says. LaunchFileError for other words."""
    from pipesim.launches.offline import tensor_map
    from pipesim.ptx.launch.values import Parameter, TensorMap

    names = [*_ARGUMENT.findall(signature), *_SCRATCH]
    names = names if len(names) == len(launch.parameters) else [""] * len(launch.parameters)
    boxes, parameters = iter(said.get("tensordesc_meta") or ()), []
    try:
        for name, (_, content) in zip(names, launch.parameters, strict=True):
            box = next(boxes, None) if isinstance(content, TensorMap) else None
            if box is not None and isinstance(content, TensorMap):
                content = replace(tensor_map(box, (), (), tf32=False), earlier=content.earlier)
            parameters.append(Parameter(name, content))
        x, y, z = said.get("cluster_dims") or (int(said.get("num_ctas", 1)), 1, 1)
        cluster = launch.cluster if launch.cluster != (1, 1, 1) else (int(x), int(y), int(z))
        launch = replace(launch, cluster=cluster, grid=cluster, dynamic_shared=int(said["shared"]))
        return replace(launch, parameters=tuple(parameters))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise LaunchFileError("Triton's words on this kernel are not as expected", cause=repr(error)) from None


def check_all(
    asked: Sequence[FoundQuestion], jobs: int, done: Callable[[int], None], *, keeps: bool = True
) -> tuple[list[KernelRow], int]:
    """The row of each, in their order, and how many were known from before; ``keeps``: verdicts are looked up and kept.

    ``done`` is called with the number that are over. KeyboardInterrupt where none is; else the others are unknown.
    """
    folder = cache_folder("verdicts")
    pipesim = repr(sorted(stamps(Path(__file__).parents[1].rglob("*.py")))) if keeps else ""
    files = [folder / sha256(f"{pipesim}{each.key()}".encode()).hexdigest() if keeps else None for each in asked]
    rows = {n: row for n, path in enumerate(files) if path and (row := _read(path)) is not None}
    known = len(rows)
    rows |= {n: each.row for n, each in enumerate(asked) if not each.kernel.text}
    left, over = [n for n in range(len(asked)) if n not in rows], count(len(rows) + 1)

    def keep(n: int, answer: tuple[KernelRow, bool]) -> None:
        path = files[left[n]]
        if path is not None and answer[1]:
            body = json.dumps(asdict(answer[0]))
            text = f"{sha256(f'{path.name}{body}'.encode()).hexdigest()}\n{body}"
            with suppress(UsageError, OSError):  # a folder that cannot be written only costs time
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_whole(path, text.encode(), force=True, private=True)

    answers = spread([asked[n] for n in left], check_one, _failed, lambda _: done(next(over)), jobs, keep)
    with suppress(OSError):
        old = sorted((path.stat().st_mtime_ns, path) for path in folder.iterdir()) if keeps and left else []
        for _, path in old[: max(0, len(old) - _MOST_KEPT)]:
            path.unlink(missing_ok=True)
    rows |= {n: row for n, (row, _) in zip(left, answers, strict=True)}
    return [rows[n] for n in range(len(asked))], known


def _read(path: Path) -> KernelRow | None:
    """A kept verdict; None if there is none, or it is damaged."""
    try:
        digest, _, body = _KEPT.read_text(path).partition("\n")
        data = _KEPT.parse_json(body) if digest == sha256(f"{path.name}{body}".encode()).hexdigest() else None
        return data and KernelRow(**(data | {"needs": tuple(data["needs"])}))
    except (PipesimError, ValueError, TypeError, KeyError):
        return None


def _failed(asked: FoundQuestion, error: BaseException) -> tuple[KernelRow, bool]:
    why = "interrupted" if isinstance(error, KeyboardInterrupt) else "its process ended, as of too little memory,"
    said = f"unknown: {why} before there was a verdict"
    return replace(asked.row, verdict="unknown", said=said, exit_code=LimitError.exit_code), False


def check_one(asked: FoundQuestion) -> tuple[KernelRow, bool]:
    """The row of one kernel, and whether it is the same whenever it is asked for: no limit ended it. Never raises."""
    from pipesim.answers.budget import Budget, protocol_seconds
    from pipesim.answers.project_settings import Triage
    from pipesim.launches.checks import checked_target
    from pipesim.ptx.source_files import lines_read_from
    from pipesim.report.findings.brief import in_one_line
    from pipesim.report.text.source import text_of, whole_text_of

    row, made = asked.row, list["Target"]()

    def target() -> Target:
        nonlocal row
        launch, row = asked.launch()
        made.append(asked.target(launch, row.needs))
        return made[0]

    current().start(protocol_seconds(asked.time_limit))
    with source_roots(asked.roots):
        found = checked_target(target, asked.max_states, Budget(asked.time_limit))
        current().stop()
        cut = isinstance(found, LimitError)
        if isinstance(found, PipesimError):
            verdict, said, code = Verdict.UNKNOWN, f"unknown: {found.fact.removeprefix('unknown: ')}", found.exit_code
        else:
            with lines_read_from(made[0].sources):
                report = Triage(asked.policy, text_of, whole_text_of).of(found, made[0].build().sources)
                other = partial(checked_target, asked.by_other_guesses, asked.max_states, Budget(asked.time_limit))
                report = report.with_guess(row.guessed, other)
            verdict, said, code = report.verdict, in_one_line(report), exit_code(report)
            cut = report.cut is not None or (verdict is Verdict.UNKNOWN and asked.time_limit is not None)
    if row.needs and verdict is Verdict.UNKNOWN and not cut:
        said, code = f"needs {' '.join(row.needs)}", LimitError.exit_code
    else:
        row = replace(row, needs=())
    row = replace(row, verdict=verdict.value, said=said, exit_code=code)
    return row, not cut and code in (0, 1, LimitError.exit_code)
