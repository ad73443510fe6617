"""A kernel's PTX file and its launch file, as a command line names them, to a flat program."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from pipesim.bounds import MAX_PTX_BYTES
from pipesim.errors import LaunchFileError, PtxError
from pipesim.inputs import InputKind
from pipesim.model.program import Program
from pipesim.ptx.emit.record import BARRIER_BYTES, FirstParities, Stream
from pipesim.ptx.emulate.cluster import EmulationLimits
from pipesim.ptx.emulation import emulate
from pipesim.ptx.extract import Extraction, emit, extract
from pipesim.ptx.flow.inline import inline_calls
from pipesim.ptx.flow.slice import slice_of
from pipesim.ptx.flow.uses import Uses, uses_of
from pipesim.ptx.launch.file import LAUNCH_FILE, launch_json, not_given, read_launch
from pipesim.ptx.launch.image import PARAMETERS, Image
from pipesim.ptx.launch.settings import has_tensor_maps, open_words, template, with_settings
from pipesim.ptx.launch.values import NO_SHAPE, GivenNames, Launch, NamedBarriers, NamedRole, NamedTile
from pipesim.ptx.names.resolve import with_source_names
from pipesim.ptx.prepare import Kernel, entry_of, prepare
from pipesim.ptx.source_files import enter_sources
from pipesim.ptx.text.body import STATEMENT, spelled
from pipesim.ptx.text.declarations import Function, Module
from pipesim.ptx.text.instruction import Guard, Instruction, Operand
from pipesim.ptx.text.operands import Names, NameScope, OperandError, operand, split
from pipesim.ptx.text.read import read_module

_REGISTER = re.compile(r"%[a-z]+\d+")
_NAMED = re.compile(r"[A-Za-z_$%][\w$]*")
_COMMENT = re.compile(r"\s*(?://.*)?")
_FLOW = frozenset({"bra", "brx", "call", "ret", "exit", "trap"})


def with_changed_lines(kernel: Kernel, text: list[str], lines: Mapping[int, str]) -> Kernel | None:
    """The kernel with these lines, by number, in its file's ``text``; None where the file has to be read again.

    So it is unless each of them is one instruction of the kernel itself, before and after, and not a branch, and names
    only what it named before or registers with numbers.
    """
    entry, own = kernel.entry, kernel.entry is kernel.function  # nothing is called
    at: dict[int, list[Instruction]] = {}
    for each in entry.body:
        at.setdefault(each.line, []).append(each)
    body, uses = list(entry.body), kernel.code.regions.uses
    reads, writes, needs = list(uses.reads), list(uses.writes), list(uses.needs)
    for number, new in lines.items():
        here = at.get(number, [])
        made = _instruction(here[0], text[number - 1], new, entry.registers) if len(here) == 1 else None
        if made is None:
            return None
        position = here[0].position
        body[position] = made
        if own:
            of_it = uses_of(replace(entry, body=(made,)))
            reads[position], writes[position], needs[position] = of_it.reads[0], of_it.writes[0], of_it.needs[0]
    changed = replace(entry, body=tuple(body))
    functions = tuple(changed if each is entry else each for each in kernel.module.functions)
    module = replace(kernel.module, functions=functions)
    known = (kernel.code.regions.graph, Uses(reads, writes, needs)) if own else ()
    return prepare(module, kernel.launch, *known)


def _instruction(old: Instruction, was: str, new: str, registers: Mapping[str, str]) -> Instruction | None:
    """The instruction of a line as another text of it has it; None of what is not one, or cannot be read by itself."""
    before, after = _whole(was), _whole(new)
    if before is None or after is None:
        return None
    opcode, modifiers = spelled(after["opcode"], after["modifiers"])
    if old.opcode in _FLOW or opcode in _FLOW:
        return None
    parts = split(before["operands"].strip())
    if len(parts) != len(old.operands):
        return None
    scope = NameScope(None, Names(), parsed=dict(zip(parts, old.operands, strict=True)))
    guard, given = old.guard, (after["guard"] or "").replace("@", "").strip()
    if given != (before["guard"] or "").replace("@", "").strip():
        name = given.lstrip("! ")
        if name and not (_REGISTER.fullmatch(name) and name in registers):
            return None
        guard = Guard(name, given.startswith("!")) if name else None
    operands: list[Operand] = []
    for part in split(after["operands"].strip()):
        if part not in scope.parsed:
            for name in _NAMED.findall(part):
                if not (_REGISTER.fullmatch(name) and name in registers):
                    return None
                scope.declared[name] = name, True
        try:
            operands.append(operand(part, scope))
        except OperandError:
            return None
    return old._replace(opcode=opcode, modifiers=modifiers, operands=tuple(operands), guard=guard)


def _whole(line: str) -> re.Match[str] | None:
    """The one instruction that a line is, None if it is not one."""
    found = STATEMENT.match(line)
    if found is None or found.lastgroup != "operands" or _COMMENT.fullmatch(line, found.end()) is None:
        return None
    return found


PTX = InputKind("PTX file", MAX_PTX_BYTES, PtxError, "give the PTX of one module, as its compiler wrote it")


def read_kernel(ptx: Path, launch: Path | None = None) -> Extraction:
    """Read a PTX file and a launch file: by default the one beside it. Raises PtxError or LaunchFileError."""
    return extract(*launch_of(ptx_text(ptx), ptx, launch, ()))


def ptx_text(ptx: Path) -> str:
    """The text of a PTX file. Raises PtxError for anything else."""
    return PTX.read_text(ptx)


def launch_of(text: str, ptx: Path, launch: Path | Launch | None, sets: Sequence[str]) -> tuple[Module, Launch]:
    """The module of this text and the launch; ``ptx`` names the text, and the launch file where ``launch`` does not.

    Raises PtxError or LaunchFileError.
    """
    launch = ptx.with_suffix(".json") if launch is None else launch
    if isinstance(launch, Path) and not launch.is_file():
        read_module(text, ptx.name)  # that it is not PTX is said first
        raise LaunchFileError(
            f"there is no launch file {launch}",
            cause="a kernel is read with the values of one launch: its grid, its block and its parameters",
            correction=f"name it with --launch FILE, or have it written by `pipesim new --ptx {ptx}`",
        )
    given = (
        read_launch(LAUNCH_FILE.read_text(launch), str(launch), open_block=True) if isinstance(launch, Path) else launch
    )
    module = read_module(text, ptx.name, given.entry)  # a file may have many kernels
    module = replace(module, sources=enter_sources(ptx, module.files.values()))
    entry = entry_of(module, given)
    given = with_source_names(replace(given, entry=entry.name), entry, module.sources)
    given = with_settings(given, entry, sets) if sets else given
    if isinstance(launch, Path) and given.block == NO_SHAPE:
        raise not_given(f"{launch}.block")
    return module, given


def names_in_force(made: Extraction) -> Launch:
    """The launch that a kernel was read in, with the names that reports use.

    Barriers and tiles of one name that are not at equal distances have an entry each, with their index in the name.
    """
    arrays: dict[str, dict[int, int]] = {}
    for (cta, offset), barrier in zip(made.places, made.program.barriers, strict=True):
        if not cta:
            arrays.setdefault(barrier.name, {})[barrier.stage] = offset
    barriers: list[NamedBarriers] = []
    for name, stages in arrays.items():
        first, *rest = offsets = [stages[n] for n in sorted(stages)]
        step = rest[0] - first if rest else BARRIER_BYTES
        if offsets == list(range(first, first + step * len(offsets), step)) if step > 0 else False:
            barriers.append(NamedBarriers(name, first, len(offsets), step))
        else:
            barriers += [NamedBarriers(f"{name}[{n}]", offset) for n, offset in sorted(stages.items())]
    tiles = [NamedTile(t.name, t.offset, t.nbytes, t.slots) for t in made.program.tiles if not t.cta]
    warps: dict[str, dict[int, None]] = {}
    for agent in made.program.agents:
        warps.setdefault(agent.role, {})[agent.warp] = None
    roles = [NamedRole(role, tuple(found)) for role, found in warps.items()]
    return replace(made.kernel.launch, names=GivenNames(tuple(barriers), tuple(tiles), tuple(roles)))


@dataclass(frozen=True)
class LaunchTemplate:
    """A launch file to fill in: its text and launch, and the words of its parameters without a value, for ``--set``.

    ``block``: PTX does not say how many threads a CTA has. ``tensor_maps``: some parameters are, or have, tensor maps.
    ``dynamic_shared``: the kernel has shared memory of which only the launch says the size.
    """

    text: str
    launch: Launch
    open_words: tuple[str, ...]
    block: bool
    tensor_maps: bool
    dynamic_shared: bool


def open_launch(module: Module, entry: str, ptx: Path) -> tuple[Function, Launch]:
    """A kernel with its calls inlined, and a launch filled in as far as PTX and its sources say it.

    ``ptx`` names the text, beside which sources are looked for. Raises PtxError or LaunchFileError.
    """
    kernel = entry_of(module, Launch(entry, (1, 1, 1), (32, 1, 1)))
    function = inline_calls(module, kernel)
    sources = enter_sources(ptx, module.files.values())
    return function, with_source_names(template(function, slice_of(function)), kernel, sources)


def launch_template(ptx: Path, entry: str = "") -> LaunchTemplate:
    """What a kernel's launch file has to say, filled in as far as PTX says it (:mod:`pipesim.ptx.launch.settings`).

    ``entry``: the kernel, where the file has several. Raises PtxError or LaunchFileError.
    """
    module = read_module(PTX.read_text(ptx), ptx.name)
    if not entry and len(module.entries) != 1:
        names = ", ".join(each.name for each in module.entries)
        raise LaunchFileError(
            f"{ptx} has {len(module.entries)} kernels",
            cause=f"they are {names}" if names else "it has functions only, or it is not PTX",
            correction="name one of them with --entry NAME",
        )
    function, made = open_launch(module, entry or module.entries[0].name, ptx)
    maps = has_tensor_maps(each.content for each in made.parameters)
    dynamic = any(each.external for each in function.shared)
    image = Image(made, function)
    words = tuple(image.place(PARAMETERS + offset) for offset in open_words(made, function))
    return LaunchTemplate(launch_json(made), made, words, made.block == NO_SHAPE, maps, dynamic)


class KernelReading(NamedTuple):
    """A program that was read from a file, with where its operations and its barriers are.

    ``lines``: for each agent and operation the line of the PTX file. ``offsets``: for each barrier its byte offset in
    shared memory. ``function``: the kernel with its calls inlined. ``streams``: what each agent did, with positions.
    ``instructions``: that were executed, of all warps.
    """

    program: Program
    lines: tuple[tuple[int, ...], ...]
    offsets: tuple[int, ...]
    function: Function
    streams: list[Stream]
    instructions: int


@dataclass(frozen=True)
class EditableKernel:
    """A PTX file and how one launch of it is named, or the launch; see :func:`pipesim.ptx.kernel.launch_of`."""

    ptx: Path
    launch: Path | Launch | None
    sets: tuple[str, ...]
    text: str

    def line(self, number: int) -> str:
        """The text of a line of the file, from 1 on."""
        return self.text.split("\n")[number - 1]

    def prepared(self, lines: Mapping[int, str] | None = None) -> Kernel:
        """The kernel with these lines instead, by number, ready to run. Raises PtxError or LaunchFileError."""
        if not lines:  # code of its own, which may be watched before it runs
            known = self._as_it_is.code.regions
            return prepare(self._as_it_is.module, self._as_it_is.launch, known.graph, known.uses)
        text = self.text.split("\n")
        found = with_changed_lines(self._as_it_is, text, lines)
        if found is not None:
            return found
        for number, new in lines.items():
            text[number - 1] = new
        return prepare(*launch_of("\n".join(text), self.ptx, self.launch, self.sets))

    @cached_property
    def _as_it_is(self) -> Kernel:
        return prepare(*launch_of(self.text, self.ptx, self.launch, self.sets))

    def read(
        self,
        lines: Mapping[int, str] | None = None,
        first: FirstParities | None = None,
        *,
        past_hangs: bool = False,
        limits: EmulationLimits | None = None,
    ) -> KernelReading:
        """The program with these lines instead, as :meth:`prepared` has them; ``first``: with other parities;
        ``past_hangs``: followed past a hang as well.
        """
        ready = replace(self.prepared(lines), leaves_laps_out=False)  # a change is tried on all that is followed
        emulation = emulate(ready, limits, first, past_hangs=past_hangs)
        body, made = ready.function.body, emit(ready, emulation)
        where = tuple(tuple(body[at].line for at in each.positions) for each in made.streams)
        offsets = tuple(offset for _, offset in made.places)
        return KernelReading(made.program, where, offsets, ready.function, made.streams, emulation.instructions)
