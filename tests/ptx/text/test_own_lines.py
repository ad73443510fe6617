"""Which of the lines into which an instruction was inlined is named."""

import pytest

from pipesim.ptx.text.instruction import Frame, Instruction, SourceLine
from pipesim.ptx.text.locations import with_own_lines

ROLE, LIBRARY = "k.cu:90 kernel > k.cu:20 role", "/usr/local/cuda/include/"
TWICE = [f"k.cu:{call} kernel > k.cu:{line} role" for call in (90, 91) for line in (20, 21, 22)]


def at(chain: str, opcode: str = "mbarrier") -> Instruction:
    """``FILE:LINE FUNCTION > ...``, the outermost first."""
    parts = [each.replace(":", " ").split() for each in chain.split(" > ")]
    found = tuple(Frame(file, int(line), name) for file, line, name in parts)
    return Instruction(opcode, (), (), None, 7, SourceLine(*found[0][:3], found), 0)


def named(*body: Instruction) -> str:
    return " ".join(f"{each.source.file}:{each.source.line}" for each in with_own_lines(body) if each.source)


@pytest.mark.parametrize(
    ("chains", "said"),
    [  # a role and what wraps an instruction; roles of two groups, a helper and what it calls; headers; libraries
        ((f"{ROLE} > a.h:2 wait", "k.cu:80 kernel > a.h:2 wait", ROLE.replace("20", "21")), "k.cu:20 k.cu:80 k.cu:21"),
        ([f"{each} > k.cu:{n} copy > k.cu:1 f" for each in TWICE for n in (5, 6)], "k.cu:20 k.cu:20 k.cu:21 k.cu:21"),
        ([f"k.cu:9 kernel > a.h:{n} f" for n in range(3)], "k.cu:9 k.cu:9 k.cu:9"),
        ([f"k.cu:9 kernel > a.h:{n} f" for n in range(1, 5)], "a.h:1 a.h:2 a.h:3 a.h:4"),
        ([f"{LIBRARY}f.h:7 f > k.cu:{n} run > {LIBRARY}b:3 g" for n in (4, 5)], "k.cu:4 k.cu:5"),
        ((f"{LIBRARY}a.h:9 f > {LIBRARY}b.h:3 g",), f"{LIBRARY}a.h:9"),
        ([f"{LIBRARY}a.h:9 f > {LIBRARY}b.h:{n} g" for n in range(1, 5)], f"{LIBRARY}b.h:1 {LIBRARY}b.h:2"),
    ],
)  # fmt: skip
def test_the_innermost_line_that_is_no_helpers_is_named(chains: list[str], said: str) -> None:
    assert named(*map(at, chains)).startswith(said)


def test_lines_of_addresses_and_parameters_tell_no_functions_apart() -> None:
    ops = ((5, "mbarrier"), (6, "add"), (7, "cvta"))
    assert named(*(at(f"k.cu:20 kernel > k.cu:{n} wait", op) for n, op in ops)) == "k.cu:20 k.cu:20 k.cu:20"
