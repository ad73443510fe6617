"""What a command or a call is given, resolved: a built-in name, file.py:function, a program's file, an object."""

from __future__ import annotations

import difflib
import inspect
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from reprlib import repr as brief
from typing import TYPE_CHECKING

from pipesim.bounds import MAX_GRID, MAX_PARAMETER
from pipesim.errors import (
    ParameterError,
    ProtocolError,
    TooManyOperationsError,
    UnknownProtocolError,
)
from pipesim.lang.author import NOT_OURS, first_line, hint, in_words, raised_at
from pipesim.lang.global_words import GridProgram
from pipesim.lang.protocol import Protocol
from pipesim.model.coverage import LENIENT, Strictness
from pipesim.model.program import Program
from pipesim.model.program_json import PROGRAM, loads
from pipesim.model.words import TURNS
from pipesim.protocol_files import function_of, makers_of, only_maker
from pipesim.protocols.catalog import BUILT_IN, ProtocolFunction
from pipesim.protocols.limits import require_fits

if TYPE_CHECKING:
    from pipesim.prove.repair.kinds import Ranked, Repair
    from pipesim.ptx.extract import Extraction
    from pipesim.ptx.kernel import EditableKernel
    from pipesim.ptx.launch.values import Launch
    from pipesim.ptx.source_files import SourceFiles

Maker = Callable[[dict[str, int], bool], Program]  #: with all parameters, and whether every role is recorded twice

#: Suffixes of what a kernel is written in, and of what has its machine code.
SOURCES = (".cu", ".mojo")  #: what is compiled to look for kernels in it
_SOURCES = (".cu", ".cuh", ".cpp", ".cc", ".cxx", ".h", ".hpp", ".mojo")
COMPILED = (".cubin", ".fatbin", ".o", ".so", ".a", ".out")
_PROGRAM_FILE = replace(PROGRAM, name="program", error=UnknownProtocolError)


@dataclass(frozen=True)
class Target:
    """What a command's first argument names: a function that makes a protocol, or a program that is ready.

    ``defaults`` are the function's parameters in its order. ``spelling`` is what a command line calls it,
    "" where it has no name there. ``strictness``: the optional rules that its programs are checked for.
    ``description``: what the function's docstring says, of which ``summary`` is the first line. ``maker``: what makes
    the program of all parameters, where another process has the function (:mod:`pipesim.protocol_process`);
    ``changer``: what :meth:`changed` is asked of there, ``word_changer``: of :meth:`word_changes`.
    ``kernel``: what the program was read from, of a kernel's PTX, and ``launch_words`` how a command line names its
    launch, of which this is ``guessed``; ``other``: in one that is guessed otherwise. ``sources``: where its source
    lines are read. ``editable``: its file, of which lines can be written otherwise and read again. ``watch``: is called
    with the operations of each program that is made, where many sizes are tried, each a unit of work.
    """

    name: str
    function: ProtocolFunction | None
    program: Program | None
    defaults: dict[str, int]
    summary: str
    spelling: str = ""
    strictness: Strictness = LENIENT
    description: str = ""
    maker: Maker | None = None
    changer: Callable[[dict[str, int], Repair], Program | None] | None = None
    word_changer: Callable[[dict[str, int]], tuple[Ranked, ...]] | None = None
    kernel: Extraction | None = None
    sources: SourceFiles | None = field(default=None, repr=False, compare=False)
    editable: EditableKernel | None = None
    launch_words: tuple[str, ...] = ()
    guessed: str = ""
    other: Callable[[], Target] | None = field(default=None, repr=False, compare=False)
    watch: Callable[[int], None] | None = field(default=None, repr=False, compare=False)

    def with_strictness(self, strictness: Strictness) -> Target:
        """The same target, its programs checked for these optional rules."""
        return replace(self, strictness=strictness)

    def timed(self) -> Target:
        """The same target for a simulation: of a kernel's PTX the program also has what its warps compute."""
        return self if self.kernel is None else replace(self, program=self.kernel.timed)

    def with_setting(self, name: str, value: int, kernel: Extraction | None = None) -> Target:
        """The same kernel with another policy, or another CTA, which ``launch_words`` says as well.

        ``kernel``: where it was read so already.
        """
        assert self.kernel is not None
        kernel, setting = kernel or self.kernel.with_setting(name, value), f"{name}={value}"
        editable = self.editable and replace(self.editable, sets=(*self.editable.sets, setting))
        words = (*self.launch_words, "--set", setting)
        return replace(self, program=kernel.program, kernel=kernel, editable=editable, launch_words=words)

    @property
    def followed(self) -> Target:
        """The kernel as far as it is followed, without laps left out."""
        assert self.kernel is not None
        kernel = self.kernel.followed
        return replace(self, program=kernel.program, kernel=kernel)

    def with_settings(self, settings: Mapping[str, int], kernel: Extraction | None = None) -> Target:
        """The same kernel with several of them; ``kernel``: where it was read so already."""
        found = self
        for name, value in settings.items():
            found = found.with_setting(name, value, kernel)
        return found

    def build(
        self,
        params: Mapping[str, int] | None = None,
        *,
        grid: int | None = None,
        twice: bool = True,
        most: int | None = None,
    ) -> Program:
        """The flat program with these parameters (defaults for the rest); it fits the hardware, or ConfigurationError.

        ``grid``: CTAs of the launch, whole clusters; if None, one cluster, or what a flat program says. ``twice`` and
        ``most``: see ``Protocol.flatten``.
        """
        require_grid(grid)
        given = dict(params or {})
        if self.program is None:
            program = self._flatten(given, twice=twice, most=most)
        elif given:
            raise ParameterError(
                f"{self.name} is a {'flat program' if self.kernel is None else 'kernel'} and takes no parameters",
                cause=f"given: {', '.join(given)}",
                correction="flatten its protocol again with other parameters"
                if self.kernel is None
                else "give words of its parameters with --set OFFSET=VALUE",
            )
        else:
            program = self.program
            if most is not None and sum(map(len, program.code)) > most:
                raise TooManyOperationsError(f"{program.name} has more than {most:,} operations")
        if grid is not None and program.words_cta >= 0:
            raise ParameterError(
                f"a launch of {grid} CTAs of {self.name}, whose CTAs talk",
                cause=f"its description says how many there are: {program.words_cta}",
                correction="give its parameter with -p, if it has one",
            )
        if grid is not None and grid % program.ctas:
            raise ParameterError(
                f"a launch of {grid} CTAs of {self.name}, whose clusters have {program.ctas}",
                cause="a launch consists of whole clusters",
                correction=f"use {-(-grid // program.ctas) * program.ctas}, or another multiple of {program.ctas}",
            )
        copies = program.grid if grid is None else grid // program.ctas
        program = program if copies == program.grid else replace(program, grid=copies)
        require_fits(program)
        if self.watch is not None:
            self.watch(sum(map(len, program.code)))
        return program.with_strictness(self.strictness)

    def changed(self, params: Mapping[str, int], repair: Repair) -> Program | None:
        """The program of CTAs that talk in which its roles do something else; None if that is not known."""
        from pipesim.grid_corrections import changed_grid, ordered_grid  # with the engine, which few commands need

        values = self.defaults | dict(params)
        if self.changer is not None:
            found = self.changer(values, repair)
        else:
            made, protocol = self._grid(values)

            def make(turns: tuple[int, ...], resident: int) -> GridProgram:
                return protocol.flatten_grid(values, turns, resident or None, twice=False)

            if made is None:
                found = ordered_grid(make, repair, _turns(values), protocol.grid)
            else:
                found = changed_grid(made, repair, protocol.grid, protocol.resident)
        return found and found.with_strictness(self.strictness)

    def word_changes(self, params: Mapping[str, int]) -> tuple[Ranked, ...]:
        """Corrections of what CTAs that talk do to words."""
        from pipesim.grid_corrections import of_words  # with the engine, which few commands need

        values = self.defaults | dict(params)
        if self.word_changer is not None:
            return self.word_changer(values)
        made, _ = self._grid(values)
        return tuple(of_words(made)) if made is not None else ()

    def _grid(self, values: dict[str, int]) -> tuple[GridProgram | None, Protocol]:
        """None where what is recorded depends on the answers of atomics: more than that a lock has been taken."""
        protocol = self._call({name: values[name] for name in self.defaults})
        made = protocol.flatten_grid(values, _turns(values), twice=False)
        return None if made.memory.observed else made, protocol

    def _flatten(self, given: dict[str, int], *, twice: bool, most: int | None) -> Program:
        for name, value in given.items():
            if name not in (*self.defaults, TURNS):
                near = difflib.get_close_matches(name, self.defaults, n=1, cutoff=0.5)
                raise ParameterError(
                    f"{self.name} has no parameter {name!r}",
                    correction=f"did you mean {near[0]}?" if near else f"it has {', '.join(self.defaults) or 'none'}",
                )
            if type(value) is not int:
                raise ParameterError(f"{name} takes a whole number, not {value!r}")
            if not -MAX_PARAMETER <= value <= MAX_PARAMETER:
                raise ParameterError(f"{name} takes a whole number of 64 bits", correction=f"for example {name}=4")
        values = self.defaults | given
        if self.maker is not None:
            return self.maker(values, twice)
        protocol = self._call({name: values[name] for name in self.defaults})
        if TURNS in given and (protocol.grid == 1 or TURNS in self.defaults):
            raise ParameterError(f"{self.name} has no order of atomics that {TURNS} is")
        try:
            if protocol.grid > 1:
                return _grid_program(protocol, values, twice=twice, most=most)
            return protocol.flatten(values, twice=twice, most=most)
        except SystemExit as error:  # sys.exit() in a role must not end the command as if it had succeeded
            raise ProtocolError(f"a role of {self.name} calls sys.exit()", place=raised_at(error)) from error

    def _call(self, values: dict[str, int]) -> Protocol:
        assert self.function is not None
        try:
            protocol = self.function(**values)
        except NOT_OURS:
            raise
        except BaseException as error:
            raise ProtocolError(
                f"{self.name} raised {in_words(error)}",
                place=raised_at(error),
                correction=hint(error) or "call the function in Python to see the whole traceback",
            ) from error
        if not isinstance(protocol, Protocol):
            raise ProtocolError(
                f"{self.name} returned {type(protocol).__name__}, not a Protocol",
                place=first_line(self.function),
                cause="a function without a return gives None" if protocol is None else "",
                correction="end it with: return p",
            )
        return protocol


def _grid_program(protocol: Protocol, values: dict[str, int], *, twice: bool, most: int | None) -> Program:
    """The program of CTAs that talk, with what is not known of what they do by it."""
    from pipesim.prove.atomic_orders import judged  # with the engine, which few commands need

    turns = _turns(values)

    def make(order: tuple[int, ...], resident: int) -> GridProgram:
        return protocol.flatten_grid(values, order, resident or None, twice=twice and order == turns, most=most)

    return judged(make, turns, protocol.grid)


def _turns(values: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(int(digit) - 1 for digit in str(values.get(TURNS, 0)) if digit != "0")


def require_grid(ctas: object) -> None:
    """ParameterError for a number of CTAs that no launch has; None is one cluster, or what a flat program says."""
    if ctas is not None and (type(ctas) is not int or not 1 <= ctas <= MAX_GRID):
        raise ParameterError(f"a launch of {brief(ctas)} CTAs", correction=f"use 1 to {MAX_GRID:,}")


def built_in(name: str) -> ProtocolFunction:
    """The function that makes the built-in protocol of this name."""
    function: ProtocolFunction = getattr(import_module(BUILT_IN[name]), name)
    return function


def find(text: str, *, launch: str = "", sets: Sequence[str] = ()) -> Target:
    """The target that ``text`` names. UnknownProtocolError with the nearest names if there is none.

    ``launch`` and ``sets`` are for a kernel's PTX: its launch file, and words of the parameters, ``OFFSET=VALUE``, or
    boxes of tensor maps, ``--box OFFSET=TYPE:SIZES`` (:func:`pipesim.ptx.launch.settings.with_settings`).
    """
    if text.endswith(".ptx"):
        return _from_kernel(Path(text), launch, sets)
    if Path(text).suffix in (*_SOURCES, *COMPILED):
        raise _not_compiled(text)
    if launch or sets:
        raise ParameterError(
            f"{text} takes no {'launch file' if launch else 'words or boxes of parameters'}",
            cause="only a kernel's PTX has a launch file",
            correction="leave --launch, --set and --box out, or name a .ptx file",
        )
    if text in BUILT_IN:
        return _spelled(text, built_in(text))
    path, _, function = text.rpartition(":")
    if path.endswith(".py") and function:
        return _spelled(text, function_of(Path(path), function))
    if text.endswith(".json"):
        return replace(_from_program(Path(text)), spelling=text)
    if text.removesuffix(":").endswith(".py"):
        file = text.removesuffix(":")
        name, found = only_maker(file)
        return _spelled(f"{file}:{name}", found)
    if Path(text).exists():
        raise _not_compiled(text)
    near = difflib.get_close_matches(text, BUILT_IN, n=3, cutoff=0.4)
    if Path(f"{text}.py").is_file():
        near = [f"{text}.py"]
    raise UnknownProtocolError(
        f"there is no protocol {text!r}",
        correction=f"did you mean {' or '.join(near)}?"
        if near
        else "see `pipesim list`, or give file.py:function, a program's .json or a kernel's .ptx",
    )


def _not_compiled(text: str) -> UnknownProtocolError:
    """A kernel's source, or what it was compiled to, in place of PTX."""
    if not Path(text).exists():
        return UnknownProtocolError(f"there is no file {text}", correction="check the path")
    ptx, name = Path(text).with_suffix(".ptx").name, shlex.quote(text)
    made = f"`pipesim new --ptx {name}` writes the PTX that it has, and a launch file"
    if Path(text).suffix in _SOURCES:
        made = f"have its compiler write PTX, for example {ptx}"
    if Path(text).suffix == ".cu":
        made = f"nvcc -arch=sm_90a -lineinfo -ptx {name}, then `pipesim new --ptx {shlex.quote(ptx)}`"
    return UnknownProtocolError(f"{text} is not PTX", correction=f"{made}; `pipesim check` finds the kernels of a path")


def protocols_of(path: Path) -> list[Target]:
    """The targets of a Python file, one for each function that makes a protocol; the file is run once.

    Raises as :func:`makers_of`, and ProtocolError for a function whose parameters have no whole numbers as defaults.
    """
    return [_spelled(f"{path}:{name}", function) for name, function in makers_of(path).items()]


def target_of(protocol: ProtocolFunction | Program) -> Target:
    """A function that makes a protocol, or a flat program, as :func:`find` gives what a text names."""
    if isinstance(protocol, Program):
        return Target(protocol.name, None, protocol, dict(protocol.params), f"flat program {protocol.name}")
    given: object = protocol  # whatever a test passes
    if not callable(given):
        made = isinstance(given, Protocol)
        raise ProtocolError(
            f"expected a protocol's function or a flat program, not an object of type {type(given).__name__}",
            cause="the function was called: its result was passed" if made else "",
            correction="give the function itself, and its parameters by name"
            if made
            else "for a built-in protocol give pipesim.find(NAME).build()",
        )
    name = getattr(protocol, "__name__", str(protocol))
    return replace(_target(name, protocol), spelling=_spelling(name, protocol))


def _spelling(name: str, function: ProtocolFunction) -> str:
    """What a command line calls a function: its built-in name, or ``file.py:function`` if its file has it so."""
    if name in BUILT_IN and built_in(name) is function:
        return name
    module = sys.modules.get(getattr(function, "__module__", ""))
    file = getattr(module, "__file__", None)
    if file is None or not Path(file).is_file() or getattr(module, name, None) is not function:
        return ""  # of a notebook's cell or of standard input there is no file to name
    path = Path(file)
    return f"{path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}:{name}"


def _spelled(name: str, function: ProtocolFunction) -> Target:
    """A target that a command line calls what its name is."""
    return replace(_target(name, function), spelling=name)


def _target(name: str, function: ProtocolFunction) -> Target:
    suspends = inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function)
    if suspends:
        raise ProtocolError(
            f"{name} is a generator or a coroutine",
            place=first_line(function),
            correction="write it as a plain function that ends with: return p",
        )
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise ProtocolError(
            f"{name} is not a function written in Python", correction="give a Python function"
        ) from None
    defaults: dict[str, int] = {}
    for parameter in parameters:
        if type(parameter.default) is not int:
            raise ProtocolError(
                f"{name}: parameter {parameter} has no whole number as its default value",
                place=first_line(function),
                correction=f"leave {parameter} out"
                if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
                else f"write {parameter.name}: int = 4",
            )
        defaults[parameter.name] = parameter.default
    description = inspect.getdoc(function) or ""
    return Target(name, function, None, defaults, description.partition("\n")[0], description=description)


def _from_kernel(path: Path, launch: str, sets: Sequence[str]) -> Target:
    from pipesim.ptx.kernel import ptx_text  # a quarter of the package, for few commands

    words = ("--launch", launch) if launch else ()
    return kernel_target(ptx_text(path), path, Path(launch) if launch else None, sets, words)


def kernel_target(
    text: str, path: Path, launch: Path | Launch | None, sets: Sequence[str], words: tuple[str, ...], spelling: str = ""
) -> Target:
    """The kernel of a PTX text in a launch, of which ``path`` is the name. ``words``: how a command line names the
    launch; ``spelling``: what it names besides, if not the path. Raises PtxError, LaunchFileError or ParameterError.
    """
    from pipesim.ptx.extract import extract
    from pipesim.ptx.kernel import EditableKernel, launch_of
    from pipesim.ptx.launch.settings import setting_words
    from pipesim.ptx.source_files import current_sources

    found = extract(*launch_of(text, path, launch, sets))
    editable = EditableKernel(path, launch, tuple(sets), text)
    name = found.program.name
    words = (*words, *(word for each in sets for word in setting_words(each)))
    made = Target(name, None, found.program, {}, f"kernel {name} of {path}", spelling or str(path), kernel=found)
    return replace(made, sources=current_sources(), editable=editable, launch_words=words)


def _from_program(path: Path) -> Target:
    program = loads(_PROGRAM_FILE.read_text(path), str(path))
    return Target(str(path), None, program, dict(program.params), f"flat program {program.name}")
