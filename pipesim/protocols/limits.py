"""Ranges of parameters, and what fits on the hardware (PTX ISA; CUDA programming guide, compute capability 9.0)."""

import functools
import inspect
from collections.abc import Callable, Set
from dataclasses import replace
from typing import ParamSpec

from pipesim.errors import ConfigurationError, ParameterError
from pipesim.lang.protocol import Protocol
from pipesim.model.barrier import MAX_COUNT
from pipesim.model.groups import COUNTS_BYTES, EXPECTS, TOUCHES_MEMORY
from pipesim.model.ops import Op, Operation, Space, operand
from pipesim.model.program import Program
from pipesim.model.tables import Access

P = ParamSpec("P")

MAX_SMEM = 227 * 1024  #: shared memory that one CTA can have, in bytes
MAX_THREADS = 1024  #: threads of one CTA
MAX_TMEM = 256 * 1024  #: tensor memory of one SM, in bytes: 128 lanes of 512 columns of 4 bytes (PTX ISA, tcgen05)
COPY_MULTIPLE = 16  #: a bulk copy moves a multiple of this many bytes


#: The least and the most of the parameters that have the same range in most protocols, and what they are multiples of.
USUAL: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("tiles", "k_iters", "k_tiles", "kv_blocks"), (0, 1 << 16)),
    **dict.fromkeys(("epilogue", "work", "softmax", "correction", "scale", "atomic", "order_delay"), (0, 1 << 24)),
    **dict.fromkeys(("residual", "first_tile_only", "fence", "fused", "pingpong", "pair_cta", "nvfp4"), (0, 1)),
    **dict.fromkeys(("all_stages", "epilogue_load", "lookahead", "drain", "tma"), (0, 1)),
    **dict.fromkeys(("consumer_warps", "clc_stages", "epi_stages"), (1, 8)),
    "block_k": (16, 128, 16),
    "cta_group": (1, 2),
    "stages": (1, 32),
}


def ranges(**own: tuple[int, ...]) -> Callable[[Callable[P, Protocol]], Callable[P, Protocol]]:
    """ParameterError for a parameter outside of its own range, (): what the function says, or of the usual one."""

    def of(make: Callable[P, Protocol]) -> Callable[P, Protocol]:
        defaults = {name: each.default for name, each in inspect.signature(make).parameters.items()}

        @functools.wraps(make)
        def checked(*args: P.args, **kwargs: P.kwargs) -> Protocol:
            for name, value in (defaults | dict(zip(defaults, args, strict=False)) | kwargs).items():
                low, high, *step = own.get(name, USUAL.get(name, ())) or (value, value)
                require(name, value, low, high, multiple_of=step[0] if step else 1)
            return make(*args, **kwargs)

        return checked

    return of


def require(name: str, value: int, low: int, high: int, *, multiple_of: int = 1, one_of: tuple[int, ...] = ()) -> None:
    """Raise ParameterError unless ``value`` is a whole number in ``low..high``, of the given multiple or set."""
    if type(value) is not int:
        raise ParameterError(f"{name} takes a whole number, not {value!r}")
    if one_of and value not in one_of:
        raise ParameterError(f"{name} = {value}", correction=f"use {' or '.join(map(str, one_of))}")
    if not low <= value <= high:
        raise ParameterError(f"{name} = {value} is out of range", correction=f"use {low:,} to {high:,}")
    if value % multiple_of:
        raise ParameterError(
            f"{name} = {value} is not a multiple of {multiple_of}",
            cause="a bulk copy moves whole units of 16 bytes" if multiple_of == COPY_MULTIPLE else "",
            correction=f"use {value // multiple_of * multiple_of:,} or {(value // multiple_of + 1) * multiple_of:,}",
        )


def require_k_group(k_group_size: int, stages: int) -> None:
    """Raise ParameterError unless tiles of K are grouped by 1, 2 or 4, and a group fits into the stages."""
    require("k_group_size", k_group_size, 1, 4, one_of=(1, 2, 4))
    if k_group_size > stages:
        raise ParameterError(
            f"k_group_size = {k_group_size} with stages = {stages}",
            cause="a group is that many stages with one pair of barriers",
            correction=f"use stages = {k_group_size} or more, or a smaller k_group_size",
        )


def require_fits(program: Program) -> None:
    """Raise ConfigurationError if a CTA of ``program`` is larger than the hardware, or moves too much in one phase."""
    if program.smem_bytes > MAX_SMEM:
        raise ConfigurationError(
            f"{program.name} needs {program.smem_bytes:,} bytes of shared memory; a CTA has {MAX_SMEM:,}",
            cause=_largest_tile(program),
            correction="use fewer stages or smaller tiles",
        )
    warps = {(agent.cta, agent.warp) for agent in program.agents}  # lanes that diverged are agents of the same warp
    for access in program.accesses:
        if access.space == Space.SHARED and access.offset + access.nbytes > program.smem_bytes:
            raise ConfigurationError(
                f"{program.name}: bytes {access.offset:,} to {access.offset + access.nbytes:,} are accessed, "
                f"beyond its {program.smem_bytes:,} bytes of shared memory",
                place=_first_use(program, access),
                correction=_more_memory(program),
            )
    for tile in program.tiles:
        if tile.space == Space.SHARED and tile.offset + tile.slots * tile.nbytes > program.smem_bytes:
            raise ConfigurationError(
                f"{program.name}: {tile.name} ends beyond its {program.smem_bytes:,} bytes of shared memory",
                correction=_more_memory(program),
            )
    _require_tensor_memory(program)
    _require_registers(program)
    threads = 32 * max(sum(1 for cta, _ in warps if cta == rank) for rank in range(program.ctas))
    if threads > MAX_THREADS:
        raise ConfigurationError(
            f"{program.name} needs {threads:,} threads; a CTA has at most {MAX_THREADS:,}",
            correction="use fewer warps",
        )
    _require_warp_numbers(program)
    for agent, code in enumerate(program.code):
        for pc, op in _of_kind(code, COUNTS_BYTES):
            expected = _expected_bytes(op)
            if expected > MAX_COUNT and not program.coverage.extracted:  # of a kernel it is a finding: tx_range
                raise ConfigurationError(
                    f"{program.agent_name(agent)} expects {expected:,} bytes in one phase of "
                    f"{program.barrier_name(operand(op, 'barrier'))}",
                    place=program.line(agent, pc),
                    cause=f"an mbarrier counts up to {MAX_COUNT:,} bytes a phase",
                    correction="split the tile over several phases, or make it smaller",
                )
            if op[0] == Op.TMA_LOAD and operand(op, "bytes") % COPY_MULTIPLE and not program.coverage.extracted:
                raise ConfigurationError(
                    f"{program.agent_name(agent)} copies {operand(op, 'bytes'):,} bytes",
                    place=program.line(agent, pc),
                    cause=f"a bulk copy moves a multiple of {COPY_MULTIPLE} bytes",
                )


def _require_warp_numbers(program: Program) -> None:
    """The warps of a CTA are numbered from 0 on: setmaxnreg and wgmma go by groups of four of them."""
    for number, agent in enumerate(program.agents):
        if agent.warp >= MAX_THREADS // 32:
            raise ConfigurationError(
                f"{program.name}: {program.agent_name(number)} is in warp {agent.warp} of its CTA",
                cause=f"a CTA has at most {MAX_THREADS:,} threads, which are warps 0 to {MAX_THREADS // 32 - 1}",
                correction="number its warps from 0 on",
            )


def _expected_bytes(op: Operation) -> int:
    """The bytes that an operation makes a phase expect."""
    if op[0] in EXPECTS:
        return operand(op, "expect")
    return operand(op, "bytes") if op[0] == Op.EXPECT_TX else 0


def _of_kind(code: tuple[Operation, ...], kinds: Set[int]) -> list[tuple[int, Operation]]:
    """The operations of these kinds, each with its place."""
    return [(pc, op) for pc, op in enumerate(code) if op[0] in kinds]


def _more_memory(program: Program) -> str:
    """What to change of a kernel that was read; of a program that was written by hand nothing is known."""
    launch = "correct its place or size, or give the dynamic_shared_bytes of the launch in the launch file"
    return launch if program.coverage.extracted else ""


def _first_use(program: Program, access: Access) -> str:
    """The line of the first operation on these bytes, of whichever CTA."""
    uses = (
        program.line(agent, pc)
        for agent, code in enumerate(program.code)
        for pc, op in _of_kind(code, TOUCHES_MEMORY)
        if replace(program.accesses[operand(op, "access")], cta=access.cta) == access
    )
    return next(uses, "")


def _require_tensor_memory(program: Program) -> None:
    used = max((t.offset + t.slots * t.nbytes for t in program.tiles if t.space == Space.TENSOR), default=0)
    if used > MAX_TMEM:
        raise ConfigurationError(
            f"{program.name} needs {used:,} bytes of tensor memory; an SM has {MAX_TMEM:,}",
            correction="use fewer or smaller accumulators",
        )


def _require_registers(program: Program) -> None:
    """``setmaxnreg`` takes multiples of 8, 24 to 256."""
    for agent, code in enumerate(program.code):
        for pc, op in _of_kind(code, {Op.SETMAXNREG}):
            if operand(op, "registers") % 8 or not 24 <= operand(op, "registers") <= 256:
                raise ConfigurationError(
                    f"{program.agent_name(agent)} asks for {operand(op, 'registers')} registers a thread",
                    place=program.line(agent, pc),
                    cause="setmaxnreg takes multiples of 8, 24 to 256 (PTX ISA)",
                )


def _largest_tile(program: Program) -> str:
    shared = [tile for tile in program.tiles if tile.space == Space.SHARED]
    if not shared:
        return ""
    tile = max(shared, key=lambda t: t.slots * t.nbytes)
    return f"{tile.name} alone is {tile.slots} slots of {tile.nbytes:,} bytes"
