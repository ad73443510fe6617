"""Kernels beside protocols: two programs that do the same, and one operation, count or order that is not the same."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from pipesim.model.ops import Op, Operation, operand, with_operand
from pipesim.model.program import Program
from pipesim.targets import find
from tools.corpus.modular_pairs import PAIRS
from tools.corpus.operation_order import Comparison, compared, names_of_protocol

Code = list[Operation]


def ring(**changes: int) -> Program:
    """Hopper's GEMM without the stores of its epilogue."""
    return find("gemm_sm90").build({"tiles": 1, "k_iters": 6, **changes})


def with_code(program: Program, warp: int, change: Callable[[Code], Code]) -> Program:
    """The program with another code of one warp, whose operations all have the line of the first."""
    code = [list(each) for each in program.code]
    code[warp] = change(code[warp])
    lines = tuple(
        tuple(each) if len(each) == len(ops) else (each[0],) * len(ops)
        for each, ops in zip(program.lines, code, strict=True)
    )
    return replace(program, code=tuple(map(tuple, code)), lines=lines)


def beside(kernel: Program, protocol: Program) -> Comparison:
    """Compared by the names that the protocol has."""
    return compared(kernel, names_of_protocol(kernel), protocol)


def places(code: Code, kind: Op) -> list[int]:
    """Where operations of a kind stand."""
    return [at for at, op in enumerate(code) if op[0] == kind]


def dropped(kind: Op) -> Callable[[Code], Code]:
    """The code without its last operation of a kind."""
    return lambda code: code[: places(code, kind)[-1]] + code[places(code, kind)[-1] + 1 :]


def changed(kind: Op, name: str, by: int) -> Callable[[Code], Code]:
    """The code with another operand in its last operation of a kind."""

    def change(code: Code) -> Code:
        at = places(code, kind)[-1]
        code[at] = with_operand(code[at], name, operand(code[at], name) + by)  # type: ignore[arg-type]
        return code

    return change


@pytest.mark.parametrize(
    ("warp", "change", "said"),
    [
        (0, dropped(Op.WAIT), "empty[1] of CTA 0, warp 0: only the protocol: 1 x WAIT"),
        (0, dropped(Op.TMA_LOAD), "full[1] of CTA 0, warp 0: only the protocol: 1 x TMA_LOAD bytes 16384 to CTA 0"),
        (4, dropped(Op.ARRIVE), "empty[1] of CTA 0, warp 4: only the protocol: 1 x ARRIVE count 1"),
        (0, changed(Op.ARRIVE, "expect", 128), "only the kernel: 1 x ARRIVE count 1 expect 32896"),
        (0, changed(Op.TMA_LOAD, "bytes", 16), "only the kernel: 1 x TMA_LOAD bytes 16400"),
        (5, changed(Op.WAIT, "parity", -1), "full[1] of CTA 0, warp 5: only the kernel: 1 x WAIT parity 0"),
    ],
)
def test_a_changed_operation_is_the_one_difference(warp: int, change: Callable[[Code], Code], said: str) -> None:
    lines = beside(with_code(ring(), warp, change), ring()).lines
    assert len(lines) == 1
    assert said in lines[0]


@pytest.mark.slow
def test_every_pair_names_all_groups_of_its_protocol() -> None:
    for pair in PAIRS:
        protocol = find(pair.protocol).build(pair.parameters)
        assert {each.name for each in protocol.barriers} == set(pair.groups), pair.kernel
